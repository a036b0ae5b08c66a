// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want int
		says string
	}{
		"help":              {[]string{"--help"}, exitPassed, "--provider"},
		"help of a command": {[]string{"preflight", "--help"}, exitPassed, "--provider"},
		"nothing":           {nil, exitUsage, "name a command"},
		"another command":   {[]string{"check"}, exitUsage, "name a command"},
		"an argument":       {[]string{"preflight", "now"}, exitUsage, `unexpected argument "now"`},
		"an output":         {[]string{"preflight", "-o", "yaml"}, exitUsage, `not "yaml"`},
		"a time":            {[]string{"preflight", "--timeout", "0s"}, exitUsage, "must be positive"},
		"no https":          {[]string{"preflight", "--git", "git@example.com:shop.git"}, exitUsage, "--git: it must be a URL like"},
		"a password":        {[]string{"preflight", "--provider", "https://me:hunter2@example.com"}, exitUsage, "--provider: leave user and password out"},
		"no cluster":        {[]string{"preflight", "--kubeconfig", "/does/not/exist"}, exitFailed, "find the cluster"},
		"no probe":          {[]string{"probe"}, exitFailed, "pods of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if got := Main(tc.args, &out, &out); got != tc.want || !strings.Contains(out.String(), tc.says) || strings.Contains(out.String(), "hunter2") {
				t.Errorf("exit code %d, want %d and %q in\n%s", got, tc.want, tc.says, &out)
			}
		})
	}
}

// TestPodsFulfilRestricted: the API server takes every pod of a preflight in a namespace that enforces Pod Security restricted, and refuses the one that is
// to be refused.
func TestPodsFulfilRestricted(t *testing.T) {
	l := &look{client: env.Client, namespace: env.Project(t), options: Options{Image: "tidewaiter:test"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "default"}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	objects := append(l.clients("10.0.0.1"), l.server(), l.users(probe.Users, false), l.users(mappedName, true), l.processes(), l.volume(), l.claim(),
		l.reach(0, []probe.Wanted{{URL: "https://example.com/$(HOME)"}}))
	for _, p := range l.policies() {
		objects = append(objects, p)
	}
	for _, o := range objects {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Errorf("%T %s: %v", o, o.GetName(), err)
		}
	}
	if err := env.Client.Create(t.Context(), l.privileged(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod: %v", err)
	}
}

func TestVersionAndClock(t *testing.T) {
	l, err := connect(Options{Kubeconfig: env.Kubeconfig(t, "tidewaiter-manager")})
	if err != nil {
		t.Fatal(err)
	}
	f := &preflight.Facts{Unread: map[string]string{}}
	if err := l.version(t.Context(), f); err != nil || !strings.HasPrefix(f.Version, "v1.") || l.ahead.Abs() > 5*time.Second || len(f.Unread) > 0 {
		t.Errorf("version %q, ahead %s, %v, %v", f.Version, l.ahead, f.Unread, err)
	}
}

// TestWanted: what pods are to reach comes from the flags, or from the gateway's configuration.
func TestWanted(t *testing.T) {
	const backends = `backends:
- {name: one, dialects: [anthropic], baseURL: "https://one.example.com", key: one, models: [{name: m, contextWindow: 1000}]}
- {name: again, dialects: [anthropic], baseURL: "https://one.example.com", key: two, models: [{name: m, contextWindow: 1000}]}
- {name: proxied, dialects: [anthropic], baseURL: "https://two.example.com", proxy: "http://proxy.example.com:3128", models: [{name: m, contextWindow: 1000}]}
- {name: secret, dialects: [anthropic], baseURL: "https://three.example.com", proxy: "http://proxy.example.com:3128", proxyKey: proxy, models: [{name: m, contextWindow: 1000}]}
`
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Project(t), Name: protocol.BackendsConfigMap}, Data: map[string]string{protocol.BackendsKey: backends},
	}
	if err := env.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	repository := []string{"https://git.example.com/shop.git/"}
	git := []probe.Wanted{{URL: "https://git.example.com/shop.git/info/refs?service=git-upload-pack"}}
	for name, tc := range map[string]struct {
		options Options
		want    []probe.Wanted
	}{
		"the configuration": {Options{Git: repository, SystemNamespace: config.Namespace}, []probe.Wanted{
			{URL: "https://one.example.com"}, {URL: "https://two.example.com", Proxy: "http://proxy.example.com:3128"}, {URL: "http://proxy.example.com:3128"},
		}},
		"flags":            {Options{Git: repository, Providers: []string{"https://api.example.com"}, SystemNamespace: config.Namespace}, []probe.Wanted{{URL: "https://api.example.com"}}},
		"no configuration": {Options{Git: repository, SystemNamespace: env.Project(t)}, nil},
	} {
		l := &look{client: env.Client, options: tc.options}
		servers, providers, err := l.wanted(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([][]probe.Wanted{git, tc.want}, [][]probe.Wanted{servers, providers}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWrite(t *testing.T) {
	found := []preflight.Finding{{Check: "git", Status: preflight.Failed, Seen: "nobody answers", Fix: "Repair it", Page: "docs/p.md"}, {Check: "room", Status: preflight.OK, Seen: "enough"}}
	for format, want := range map[string]string{
		"text": "failed   git                 nobody answers. Repair it. See docs/p.md.\nok       room                enough.\n",
		"json": `"status": "failed"`,
	} {
		var out bytes.Buffer
		if err := write(&out, format, found); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", format, err, &out)
		}
	}
}

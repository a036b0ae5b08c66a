// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"complete":         {[]string{"--namespace=s", "--replica=r", "--image=i"}, ""},
		"no image":         {[]string{"--namespace=s", "--replica=r"}, "--image is missing"},
		"user namespaces":  {[]string{"--namespace=s", "--replica=r", "--image=i", "--user-namespaces=sometimes"}, `--user-namespaces is "sometimes": it must be auto, true or false`},
		"no namespace":     {[]string{"--replica=r", "--image=i"}, "--namespace is missing"},
		"no replica":       {[]string{"--namespace=s", "--image=i"}, "--replica is missing"},
		"unknown format":   {[]string{"--namespace=s", "--replica=r", "--image=i", "--log-format=xml"}, `not "xml"`},
		"unknown flag":     {[]string{"--bogus"}, "unknown flag"},
		"surplus argument": {[]string{"--namespace=s", "--replica=r", "--image=i", "reconcile"}, `unexpected argument "reconcile"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			t.Setenv("POD_NAME", "")
			var o Options
			err := process.Parse("manager", &o, test.args, &bytes.Buffer{})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want something about %q", err, test.want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"--help"}, &out); err != nil {
		t.Error(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Options{}).Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(out.String(), "--"+f.Name) {
			t.Errorf("help does not tell of --%s", f.Name)
		}
	})
}

// replica of the manager, with the rights that it is installed with and no others.
type replica struct {
	*program.Program
	name, intake, health, metrics string
}

func startReplica(t *testing.T, name string) *replica {
	t.Helper()
	p := &replica{name: name, intake: addresses.Free(), health: addresses.Free(), metrics: addresses.Free()}
	p.Program = program.Start(t,
		[]string{"KUBECONFIG=" + env.Kubeconfig(t, "tidewaiter-manager"), "POD_NAMESPACE=" + kubetest.SystemNamespace, "POD_NAME=" + name},
		"--image=tidewaiter:test", "--leader-elect", "--intake-bind-address="+p.intake, "--health-probe-bind-address="+p.health, "--metrics-bind-address="+p.metrics)
	return p
}

func (p *replica) ready() bool { return program.Passes(p.health, "/readyz") }

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	gomega.NewWithT(t).Eventually(done, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), what)
}

// TestTwoReplicas runs two managers with the rights of dist/install.yaml: both get ready and serve, one of them
// reconciles, and when that one ends the other takes over.
func TestTwoReplicas(t *testing.T) {
	a, b := startReplica(t, "manager-a"), startReplica(t, "manager-b")
	until(t, "both are ready", func() bool { return a.ready() && b.ready() })
	leased := func(p *replica) bool {
		key := client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: p.name}
		return env.Client.Get(t.Context(), key, &coordinationv1.Lease{}) == nil
	}
	until(t, "both have Leases", func() bool { return leased(a) && leased(b) })
	first := attempt.Feature(t, env, env.Project(t), "first")
	accepted := func(f *v1alpha1.Feature) func() bool {
		return func() bool {
			now := &v1alpha1.Feature{}
			err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f), now)
			return err == nil && now.Status.ObservedGeneration == now.Generation && len(now.Status.Conditions) > 0
		}
	}
	until(t, "a Feature is reconciled", accepted(first))
	bundle := &corev1.ConfigMap{}
	until(t, "the project has the CA's bundle", func() bool {
		return env.Client.Get(t.Context(), client.ObjectKey{Namespace: first.Namespace, Name: protocol.CAConfigMap}, bundle) == nil
	})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(bundle.Data[protocol.CAKey])) {
		t.Fatalf("the bundle is none: %q", bundle.Data)
	}
	until(t, "scrapers have it too", func() bool {
		own := &corev1.ConfigMap{}
		err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: protocol.CAConfigMap}, own)
		return err == nil && own.Data[protocol.CAKey] == bundle.Data[protocol.CAKey]
	})
	for _, p := range []*replica{a, b} {
		wantStatus(t, p, pool, http.StatusUnauthorized)
		wantMetrics(t, p, pool)
	}

	leader, other := a, b
	if strings.Contains(b.Log(), "Starting workers") {
		leader, other = b, a
	}
	leader.End(t)
	if leased(leader) {
		t.Error("the Lease of a replica that ended in order is still there")
	}
	second := attempt.Feature(t, env, env.Project(t), "second")
	until(t, "the other replica reconciles", accepted(second))
	if !other.ready() {
		t.Error("the other replica is not ready any more")
	}
	for _, p := range []*replica{a, b} {
		if strings.Contains(p.Log(), "forbidden") {
			t.Errorf("%s lacks a right, see its log", p.name)
		}
	}
}

// wantStatus asks a replica for orders without a token, as a pod does that trusts the bundle.
func wantStatus(t *testing.T, p *replica, pool *x509.CertPool, want int) {
	t.Helper()
	if code, _ := kubetest.Ask(t, pool, protocol.IntakeService, "https://"+p.intake+protocol.OrdersPath, ""); code != want {
		t.Errorf("%s answers %d, want %d", p.name, code, want)
	}
}

// wantMetrics asks a replica for metrics.
func wantMetrics(t *testing.T, p *replica, pool *x509.CertPool) {
	t.Helper()
	env.WantMetrics(t, p.metrics, protocol.IntakeService, pool, `tidewaiter_features{namespace="`, "tidewaiter_slow_checkpoint_streaks_total 0", "rest_client_requests_total")
}

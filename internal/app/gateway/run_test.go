// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	program.Main(programs)
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// gateway is the process with the rights that it is installed with, as a pod sees it.
type gateway struct {
	*program.Program

	address, health, ledger, metrics string
	rotator                          *pki.Rotator
}

func start(t *testing.T, more ...string) *gateway {
	t.Helper()
	g := &gateway{address: addresses.Free(), health: addresses.Free(), ledger: addresses.Free(), metrics: addresses.Free()}
	g.Program = program.Start(t, []string{"KUBECONFIG=" + env.Kubeconfig(t, "tidewaiter-gateway"), "POD_NAMESPACE=" + kubetest.SystemNamespace, "POD_NAME=" + replica(g.address)},
		append([]string{"--proxy-bind-address=" + g.address, "--health-probe-bind-address=" + g.health, "--metrics-bind-address=" + g.metrics, "--ledger-bind-address=" + g.ledger, "--ledger=sqlite://" + filepath.Join(t.TempDir(), "ledger.db")}, more...)...)
	g.rotator = pki.NewRotator(pki.Options{Live: env.Client, Namespace: kubetest.SystemNamespace, Clock: clock.RealClock{}, Logger: testr.New(t)})
	return g
}

// replica is the name of the gateway that listens on an address.
func replica(address string) string {
	return "gateway-" + strings.NewReplacer(".", "-", ":", "-").Replace(address)
}

func (g *gateway) ready() bool { return program.Passes(g.health, "/readyz") }

// pool trusts the gateway's certificate.
func (g *gateway) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(g.rotator.Bundle())
	return pool
}

// connect asks for a tunnel for Git, and gives the status and the reason.
func (g *gateway) connect(t *testing.T, token, target string) string {
	t.Helper()
	return g.connectFor(t, coreegress.FieldGit, token, target)
}

func (g *gateway) connectFor(t *testing.T, list coreegress.Field, token, target string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", g.address, &tls.Config{RootCAs: g.pool(), ServerName: protocol.GatewayService + "." + kubetest.SystemNamespace + ".svc", MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := &http.Request{Header: http.Header{}}
	request.SetBasicAuth(list.User(), token)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: %s\r\n\r\n", target, target, request.Header.Get("Authorization"))
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get(protocol.ReasonHeader))
}

// TestGateway: with a certificate that a manager made, real tokens and real policies.
func TestGateway(t *testing.T) {
	// Another run of this test may have left one.
	left := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: pki.GatewaySecret}}
	if err := client.IgnoreNotFound(env.Client.Delete(t.Context(), left)); err != nil {
		t.Fatal(err)
	}
	g := start(t)
	until := func(what string, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(done, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), what)
	}
	until("it serves probes", func() bool { return program.Passes(g.health, "/healthz") })
	if g.ready() {
		t.Error("ready before there is a certificate")
	}
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("it is ready", g.ready)
	env.WantMetrics(t, g.metrics, protocol.GatewayService, g.pool(), "tidewaiter_backends_broken 0", "rest_client_requests_total")

	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	unpinned := attempt.Launch(t, env, attempt.Feature(t, env, project, "unpinned"))
	// The Feature's own Git host is listed where no policy says otherwise; it does not exist, so it is as far as one gets.
	if got := g.connect(t, login.Token, "git.example.com:443"); !strings.HasPrefix(got, "502") && !strings.HasPrefix(got, "504") {
		t.Errorf("the Feature's own Git host: %s", got)
	}
	for name, test := range map[string]struct{ token, target, want string }{
		"another host":        {login.Token, "evil.example:443", "403 HostNotAllowed"},
		"no token":            {"", "git.example.com:443", "407 Unauthenticated"},
		"bad token":           {"x.y.z", "git.example.com:443", "407 Unauthenticated"},
		"another audience":    {attempt.Token(t, env, login.Pod), "git.example.com:443", "407 Unauthenticated"},
		"a pod not yet known": {unpinned.Token, "git.example.com:443", "503 Unavailable"},
	} {
		if got := g.connect(t, test.token, test.target); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	allow := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "git"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{
			Git:   []v1alpha1.EgressHost{{Host: "localhost", Port: 1, AllowPrivate: true}},
			Agent: []v1alpha1.EgressHost{{Host: "registry.invalid"}, {Host: "*.anthropic.com"}},
		}},
	}}
	if err := env.Client.Create(t.Context(), allow); err != nil {
		t.Fatal(err)
	}
	until("a policy takes effect", func() bool { return g.connect(t, login.Token, "git.example.com:443") == "403 HostNotAllowed" })
	for target, want := range map[string]string{"127.0.0.1:443": "403 IPAddress", "localhost:1": "403 ForbiddenAddress", "169.254.169.254:80": "403 IPAddress", "registry.invalid:443": "403 HostNotAllowed"} {
		if got := g.connect(t, login.Token, target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	// The agent has a list of its own, and by it nothing of the other. The registry does not exist, so it is as far as one gets.
	for target, want := range map[string]string{"registry.invalid:443": "50", "api.anthropic.com:443": "403 ModelProvider", "localhost:1": "403 HostNotAllowed", "127.0.0.1:443": "403 IPAddress"} {
		if got := g.connectFor(t, coreegress.FieldAgent, login.Token, target); !strings.HasPrefix(got, want) {
			t.Errorf("%s for the agent: %s, want %s", target, got, want)
		}
	}
	if got := g.connectFor(t, coreegress.FieldAgent, "x.y.z", "registry.invalid:443"); got != "407 Unauthenticated" {
		t.Errorf("an agent without a token: %s", got)
	}
	if err := login.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempt.Start(t, env, login.Feature)
	until("the token of an earlier attempt is nothing", func() bool { return g.connect(t, login.Token, "evil.example:443") == "407 Unauthenticated" })
}

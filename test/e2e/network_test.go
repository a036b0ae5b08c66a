// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestAnOpenNetworkEndsTheAgent: somebody of the project opens the network of all pods. The agent is ended in order, nothing of
// its work is lost, and it goes on once the network is closed.
func TestAnOpenNetworkEndsTheAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("login", "echo form >> web/login.html; until [ -e \"$HOME/end\" ]; do sleep 0.2; done", nil)
	p.phase("login", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
	p.condition("login", v1alpha1.ConditionIsolated, v1alpha1.ReasonIsolated)
	opens := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "allow-all"}, Spec: networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	p.must(k8s.Create(p.ctx, opens), "open the network")
	p.phase("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	if m := p.condition("login", v1alpha1.ConditionIsolated, v1alpha1.ReasonNetworkOpened); !strings.Contains(m, "NetworkPolicy allow-all allows egress") {
		t.Errorf("the message is %q", m)
	}
	f := p.until("login", "the end of the attempt", func(f *v1alpha1.Feature) bool { return f.Status.Job != nil && f.Status.Job.EndTime != nil })
	if f.Status.Run == nil || f.Status.Run.Final == nil || f.Status.Run.Final.Outcome != "Stopped" || f.Status.Lost+f.Status.Failures > 0 {
		t.Errorf("the attempt did not end in order: %+v", f.Status.Run)
	}
	p.must(k8s.Delete(p.ctx, opens), "close the network")
	p.until("login", "the next attempt", func(f *v1alpha1.Feature) bool {
		return f.Status.Attempt == 2 && f.Status.Phase == v1alpha1.PhaseRunning
	})
	p.signal("login", "end")
	f = p.phase("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if !strings.Contains(p.history(f.Status.Branch), "form") {
		t.Error("the branch lacks the agent's change")
	}
}

// TestSUP1AgentReachesItsListAlone: through its proxy an agent reaches the hosts of egress.agent. Any other is refused with a message
// that names host and field, and so are addresses, names of the cluster, and what is not TLS.
func TestSUP1AgentReachesItsListAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	list := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "registries"}}
	list.Spec.Defaults = &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{Agent: []v1alpha1.EgressHost{
		{Host: gitServer.Host, AllowPrivate: true}, {Host: "kube-dns.kube-system.svc.cluster.local"},
		{Host: cluster.ProviderService + "." + providerProject + ".svc.cluster.local", AllowPrivate: true},
	}}}
	p.must(k8s.Create(p.ctx, list), "list hosts for agents")
	pods, err := k8s.Clientset.CoreV1().Pods(gitProject).List(p.ctx, metav1.ListOptions{Limit: 1})
	p.must(err, "list pods")
	refused := map[string]string{
		"evil.example:443":           `no policy lists evil.example:443: add host "evil.example" with port 443 to spec.defaults.egress.agent or spec.overrides.egress.agent of a SupervisorPolicy`,
		"kubernetes.default.svc:443": `no policy lists kubernetes.default.svc:443`,
		protocol.IntakeService + "." + cluster.SystemNamespace + ".svc:8443": `no policy lists`,
		gitServer.Host + ":80":                           `no policy lists`,
		"169.254.169.254:80":                             `is an IP address`,
		pods.Items[0].Status.PodIP + ":8443":             `is an IP address`,
		"localhost:8448":                                 `no policy lists localhost:8448`,
		"2130706433:443":                                 `is not a host name and port`,
		list.Spec.Defaults.Egress.Agent[2].Host + ":443": `serves models, and agents ask models through the gateway`,
		list.Spec.Defaults.Egress.Agent[1].Host + ":443": `has private addresses only: set allowPrivate of its entry in egress.agent of the SupervisorPolicy`,
	}
	p.feature("shopper", fmt.Sprintf(`
proxy=${HTTPS_PROXY#http://}
ask() { # what the proxy answers to a request line, without what it says of the connection
  timeout 20 bash -c 'exec 3<>/dev/tcp/$0/$1; printf "%%s HTTP/1.1\r\nHost: x\r\n\r\n" "$2" >&3; cat <&3' "${proxy%%:*}" "${proxy#*:}" "$1" | tr -d '\r' | sed -n '1p;$p'
}
printf '%%s' "$CA" > /tmp/ca.crt
{
  echo "== listed"
  GIT_SSL_CAINFO=/tmp/ca.crt git ls-remote "https://tidewaiter:$SERVER@%[1]s/%[2]s.git" HEAD 2>&1
  for target in %[3]s; do echo "== $target"; ask "CONNECT $target"; done
  echo "== plain"
  ask "GET http://%[1]s/"
} > /tmp/tried.txt || true
mv /tmp/tried.txt web/tried.txt`, gitServer.Host, p.repository, strings.Join(slices.Sorted(maps.Keys(refused)), " ")), func(s *v1alpha1.FeatureSpec) {
		s.Agent.Env = []v1alpha1.EnvVar{{Name: "CA", Value: string(gitServer.CA)}, {Name: "SERVER", Value: gitServer.Password}}
	})
	f := p.phase("shopper", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	got := p.history(f.Status.Branch)
	answered := func(to string) string {
		_, answer, _ := strings.Cut(got, "== "+to+"\n")
		answer, _, _ = strings.Cut(answer, "\n== ")
		return answer
	}
	if !strings.Contains(answered("listed"), "\tHEAD") {
		t.Errorf("the listed host: %s", answered("listed"))
	}
	for target, message := range refused {
		// Once in the status line and once in the body.
		if strings.Count(answered(target), message) != 2 {
			t.Errorf("%s: %s, want %s", target, answered(target), message)
		}
	}
	if !strings.Contains(answered("plain"), "use a URL that begins with https://") {
		t.Errorf("plain HTTP: %s", answered("plain"))
	}
	// The people of the project find it in the watchdog's log.
	log, err := k8s.Clientset.CoreV1().Pods(p.project).GetLogs(f.Status.Job.PodName, &corev1.PodLogOptions{Container: "watchdog"}).DoRaw(p.ctx)
	p.must(err, "read the watchdog's log")
	if !strings.Contains(string(log), `"target":"evil.example:443","status":403,"reason":"HostNotAllowed"`) {
		t.Errorf("the watchdog's log does not tell what was refused:\n%s", log)
	}
}

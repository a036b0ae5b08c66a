// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// empty says whether nothing of any Feature is left in the project.
func (p *place) empty(ctx context.Context) (bool, error) {
	for _, list := range []client.ObjectList{
		&v1alpha1.FeatureList{}, &v1alpha1.CheckpointList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
	} {
		if err := k8s.List(ctx, list, client.InNamespace(p.project), client.Limit(1)); err != nil {
			return false, err
		}
		raw, err := json.Marshal(list)
		if err != nil || !bytes.Contains(raw, []byte(`"items":[]`)) && !bytes.Contains(raw, []byte(`"items":null`)) {
			return false, err
		}
	}
	return true, nil
}

// TestWritersThatForkWhileFrozen: 200 writers, each write by a new process, are stopped and captured whole.
func TestWritersThatForkWhileFrozen(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("storm", `
for w in $(seq 1 200); do
  (while [ ! -e /tmp/stop ]; do date +%N | tee "web/w$w" > /dev/null; sleep 0.05; done) &
done
wait`, nil)
	p.until("storm", "a frozen and settled checkpoint", func(f *v1alpha1.Feature) bool {
		for _, c := range p.checkpoints("storm") {
			if c.Spec.Capture.Frozen && c.Spec.Capture.Settled && c.Spec.Capture.Processes >= 200 && c.Spec.Action == v1alpha1.ActionPromoted {
				return true
			}
		}
		return false
	})
	p.inAgent("storm", "touch /tmp/stop")
	p.phase("storm", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
}

// TestAgentThatFillsItsWorkspace: the volume is full, the checkpoint is not in its way.
func TestAgentThatFillsItsWorkspace(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("glutton", `
echo page > web/page.html
set +e
head -c 1G /dev/zero > build.bin; echo "full: $?"
rm build.bin
head -c 300M /dev/zero > /home/agent/more; echo "home full: $?"
echo after > web/after.html`, func(s *v1alpha1.FeatureSpec) {
		s.Workspace.Size = ptr.To(resource.MustParse("64Mi"))
	})
	f := p.phase("glutton", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, "after.html") || strings.Contains(got, "build.bin") {
		t.Errorf("the branch is not what was left in the workspace:\n%s", got)
	}
}

func TestWorkspaceLeftFullIsHeld(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: p.project}}
	policy.Spec.Defaults = &v1alpha1.Rules{Changes: &v1alpha1.ChangeRules{MaxFileSize: ptr.To(resource.MustParse("1Mi"))}}
	p.must(k8s.Create(p.ctx, policy), "create the policy")
	p.feature("hoarder", `head -c 1G /dev/zero > web/dump.bin || true`, nil)
	p.phase("hoarder", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
}

// TestSUP1AgentReachesNothing: no provider of models, no name service, no API server, no Git server, no other pod; intake and
// gateway refuse it, and so does its proxy where no policy lists hosts for agents: what Git may reach is not the agent's.
func TestSUP1AgentReachesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	var targets []string
	for name, port := range map[[2]string]int{
		{"default", "kubernetes"}: 443, {"kube-system", "kube-dns"}: 53, {gitProject, "git"}: 443,
		{providerProject, cluster.ProviderService}: 443,
	} {
		svc, err := k8s.Clientset.CoreV1().Services(name[0]).Get(p.ctx, name[1], metav1.GetOptions{})
		p.must(err, "find Service %s", name[1])
		targets = append(targets, fmt.Sprintf("%s/%d", svc.Spec.ClusterIP, port))
	}
	nodes, err := k8s.Clientset.CoreV1().Nodes().List(p.ctx, metav1.ListOptions{Limit: 1})
	p.must(err, "list nodes")
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			targets = append(targets, a.Address+"/10250", a.Address+"/6443")
		}
	}
	pods, err := k8s.Clientset.CoreV1().Pods(gitProject).List(p.ctx, metav1.ListOptions{Limit: 1})
	p.must(err, "list pods")
	targets = append(targets, pods.Items[0].Status.PodIP+"/8443", "169.254.169.254/80")
	gateway, err := k8s.Clientset.CoreV1().Services(cluster.SystemNamespace).Get(p.ctx, protocol.GatewayService, metav1.GetOptions{})
	p.must(err, "find the gateway")
	intake, err := k8s.Clientset.CoreV1().Services(cluster.SystemNamespace).Get(p.ctx, protocol.IntakeService, metav1.GetOptions{})
	p.must(err, "find intake")
	ca, err := k8s.Clientset.CoreV1().ConfigMaps(cluster.SystemNamespace).Get(p.ctx, protocol.CAConfigMap, metav1.GetOptions{})
	p.must(err, "find the CA, which anybody may know")
	p.feature("prisoner", fmt.Sprintf(`
query='\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01'
reach() { timeout 3 bash -c "exec 3<>/dev/tcp/$1" 2>/dev/null; }
ask() { timeout 3 bash -c "exec 3<>/dev/udp/$1; printf '$query' >&3; head -c1 <&3 | grep -q ." 2>/dev/null; }
{
  reach %[2]s && echo "control: reached the gateway"
  for t in %[1]s; do
    reach "$t" && echo "GOT tcp $t"
    ask "$t" && echo "GOT udp $t"
  done
  for path in /trusted /var/run/secrets/tidewaiter /var/run/secrets/kubernetes.io /etc/tidewaiter; do [ -e $path ] && echo "GOT $path"; done
  env | grep -iE 'token|password|secret' | sed 's/^/GOT env /'
  cat /proc/1/environ >/dev/null 2>&1 && echo 'GOT the environment of the runner'
  touch /run/tidewaiter/x 2>/dev/null && echo 'GOT to write beside the runner'
  rm -f /run/tidewaiter/runner 2>/dev/null && echo 'GOT to remove the runner'
  getent hosts kubernetes.default.svc && echo 'GOT a name'
  export GIT_SSL_NO_VERIFY=1 GIT_TERMINAL_PROMPT=0 GIT_PROXY_SSL_CAINFO=/tmp/ca.crt
  printf '%%s' "$CA" > /tmp/ca.crt
  speak() { echo "$1: $(timeout 20 git "${@:2}" ls-remote https://%[3]s/%[4]s.git 2>&1 && echo "GOT it")" | tr '\n' ' '; echo; }
  speak "as a client of the gateway" -c http.proxy=https://%[5]s
  speak "as the watchdog" -c http.proxy=https://tidewaiter:token@%[5]s
  speak "as an agent" -c http.proxy=https://tidewaiter-agent:token@%[5]s
  speak "by its proxy"
  speak "by its proxy as the watchdog" -c "http.proxy=${HTTPS_PROXY/:\/\//://tidewaiter:token@}"
  echo "intake: $(env -u https_proxy -u HTTPS_PROXY timeout 20 git ls-remote https://%[6]s/ 2>&1 && echo "GOT it")" | tr '\n' ' '; echo
} > /tmp/tried.txt || true
mv /tmp/tried.txt web/tried.txt`, strings.Join(targets, " "), gateway.Spec.ClusterIP+"/"+strconv.Itoa(protocol.GatewayPort), gitServer.Host, p.repository,
		gateway.Spec.ClusterIP+":"+strconv.Itoa(protocol.GatewayPort), intake.Spec.ClusterIP+":"+strconv.Itoa(protocol.IntakePort)), func(s *v1alpha1.FeatureSpec) {
		s.Agent.Env = []v1alpha1.EnvVar{{Name: "CA", Value: ca.Data[protocol.CAKey]}}
	})
	f := p.phase("prisoner", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	got := p.history(f.Status.Branch)
	if !strings.Contains(got, "control: reached the gateway") {
		t.Error("the agent could not even reach the gateway: its attempts prove nothing")
	}
	for line := range strings.Lines(got) {
		if strings.Contains(line, "GOT ") {
			t.Errorf("the agent got somewhere: %s", line)
		}
	}
	for who, status := range map[string]string{
		"as a client of the gateway: ": "407", "as the watchdog: ": "407", "as an agent: ": "407", "by its proxy: ": "403", "by its proxy as the watchdog: ": "403", "intake: ": "40",
	} {
		if _, answer, found := strings.Cut(got, who); !found || !strings.Contains(answer[:strings.IndexByte(answer, '\n')], status) {
			t.Errorf("%s: want status %s in\n%s", who, status, got)
		}
	}
}

// TestTokenSpeaksForItsOwnPodOnly: a pod's token cannot speak for another Feature, nor to the API server, nor for a pod that is gone.
func TestTokenSpeaksForItsOwnPodOnly(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	for _, name := range []string{"mine", "other"} {
		p.feature(name, `while [ ! -e web/stop ]; do sleep 1; done`, nil)
	}
	running := func(f *v1alpha1.Feature) bool {
		return conditionTrue(f, v1alpha1.ConditionAgentRunning) && f.Status.Job.PodName != ""
	}
	mine := p.until("mine", "the agent to run", running)
	other := p.until("other", "the agent to run", running)
	token := p.tokenOf(mine.Status.Job.PodName)

	ordersPath := fmt.Sprintf("%s?%s=%d", protocol.OrdersPath, protocol.VersionQuery, protocol.OrdersVersion)
	status, body := p.intake(http.MethodGet, ordersPath, token, nil)
	var orders protocol.Orders
	if status != http.StatusOK || json.Unmarshal(body, &orders) != nil || orders.Feature.Name != "mine" {
		t.Errorf("orders for mine's token: status %d, feature %q", status, orders.Feature.Name)
	}
	// A report with mine's token that claims an end can only end mine; other goes on.
	report, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: []protocol.Report{{
		Epoch: mine.Status.Attempt, Sequence: 1 << 40, Time: time.Now(), Final: &protocol.FinalReport{Outcome: protocol.OutcomeDelivered, Reason: protocol.ReasonDelivered},
	}}})
	p.must(err, "encode the report")
	p.intake(http.MethodPost, protocol.ReportsPath, token, report)
	f, err := k8s.Feature(p.ctx, p.project, "other")
	p.must(err, "read the other Feature")
	if f.Status.Run.Final != nil || f.UID != other.UID {
		t.Errorf("mine's token ended other: %+v", f.Status.Run.Final)
	}

	if status, _ := p.intake(http.MethodGet, ordersPath, "", nil); status != http.StatusUnauthorized {
		t.Errorf("no token: status %d, want 401", status)
	}
	foreign := p.tokenOf(p.bystander())
	if status, _ := p.intake(http.MethodGet, ordersPath, foreign, nil); status != http.StatusForbidden {
		t.Errorf("a pod of no Feature: status %d, want 403", status)
	}

	anonymous := rest.AnonymousClientConfig(k8s.Config)
	anonymous.BearerToken = token
	api, err := rest.HTTPClientFor(anonymous)
	p.must(err, "make a client")
	resp, err := api.Get(k8s.Config.Host + "/api/v1/namespaces/" + p.project + "/pods")
	p.must(err, "ask the API server")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token on the API server: status %d, want 401", resp.StatusCode)
	}
}

// tokenOf asks for a token as the kubelet of a pod's node does, which alone may: for Tidewaiter's audience, bound to the pod.
func (p *place) tokenOf(pod string) string {
	p.Helper()
	var o *corev1.Pod
	p.must(cluster.Until(p.ctx, "the pod to be on a node", func(ctx context.Context) (bool, error) {
		var err error
		o, err = k8s.Clientset.CoreV1().Pods(p.project).Get(ctx, pod, metav1.GetOptions{})
		return err == nil && o.Spec.NodeName != "", err
	}), "read the pod")
	sa := o.Spec.ServiceAccountName
	if sa == "" {
		sa = "default"
	}
	as := rest.CopyConfig(k8s.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + o.Spec.NodeName, Groups: []string{"system:nodes"}}
	kubelet, err := kubernetes.NewForConfig(as)
	p.must(err, "make a client")
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{protocol.TokenAudience}, ExpirationSeconds: ptr.To[int64](600),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: o.Name, UID: o.UID},
	}}
	var review *authenticationv1.TokenRequest
	// The API server's admission of nodes sees in a cache which node a pod is on.
	p.must(cluster.Until(p.ctx, "the node to be known as the pod's", func(ctx context.Context) (bool, error) {
		review, err = kubelet.CoreV1().ServiceAccounts(p.project).CreateToken(ctx, sa, request, metav1.CreateOptions{})
		return err == nil, err
	}), "ask for a token")
	return review.Status.Token
}

// bystander is a pod of the project that belongs to no Feature, and mounts a token for Tidewaiter's audience all the same.
func (p *place) bystander() string {
	p.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bystander", Namespace: p.project}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: protocol.TokenAudience, Path: "token"}}},
		}}}},
		Containers: []corev1.Container{{Name: "sleep", Image: k8s.Image, Command: []string{"sleep", "600"}, SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}}
	p.must(k8s.Create(p.ctx, pod), "make a bystander")
	return pod.Name
}

// intake asks a manager replica as a pod would.
func (p *place) intake(method, path, token string, body []byte) (int, []byte) {
	p.Helper()
	pods, err := k8s.Clientset.CoreV1().Pods(cluster.SystemNamespace).List(p.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=manager"})
	p.must(err, "find the manager")
	if len(pods.Items) == 0 {
		p.Fatal("no manager pod")
	}
	port, stop, err := k8s.Forward(cluster.SystemNamespace, pods.Items[0].Name, protocol.IntakePort)
	p.must(err, "reach intake")
	defer stop()
	req, err := http.NewRequestWithContext(p.ctx, method, fmt.Sprintf("https://localhost:%d%s", port, path), bytes.NewReader(body))
	p.must(err, "make a request")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// The port is forwarded, so the certificate's name cannot match; who answers is not what is tested here.
	http1 := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	resp, err := http1.Do(req)
	p.must(err, "ask intake")
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	p.must(err, "read intake's answer")
	return resp.StatusCode, answer
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// postgresVariable has the URL of an empty PostgreSQL database that pods of the cluster reach.
const postgresVariable = "TIDEWAITER_CLUSTER_POSTGRES"

// gatewayPods are those of the gateway that are ready and not about to end, the oldest first.
func (p *place) gatewayPods() []corev1.Pod {
	p.Helper()
	var pods corev1.PodList
	p.must(k8s.List(p.ctx, &pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "gateway"}), "list the gateway's pods")
	list := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	slices.SortFunc(list, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list
}

// runTwoGateways as docs/operate/high-availability.md says, until the test ends.
func (p *place) runTwoGateways() {
	p.Helper()
	url, kubectl := os.Getenv(postgresVariable), os.Getenv("TIDEWAITER_KUBECTL")
	if url == "" || kubectl == "" {
		p.Fatalf("%s or TIDEWAITER_KUBECTL is not set: run `make test-e2e`", postgresVariable)
	}
	text, err := os.ReadFile("../../docs/operate/high-availability.md")
	p.must(err, "read the documentation")
	found := regexp.MustCompile("(?s)## Run two gateways\n.*?```sh\n(.*?)```").FindSubmatch(text)
	if found == nil {
		p.Fatal("docs/operate/high-availability.md does not say how to run two gateways")
	}
	commands := regexp.MustCompile(`'postgres://[^']*'`).ReplaceAllString(string(found[1]), "'"+url+"'")
	commands = regexp.MustCompile(`(?m)^kubectl `).ReplaceAllLiteralString(commands, kubectl+" ")

	key := client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "tidewaiter-gateway"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: "tidewaiter-ledger"}}
	p.must(client.IgnoreNotFound(k8s.Delete(p.ctx, secret)), "remove the Secret of an earlier run")
	var before appsv1.Deployment
	p.must(k8s.Get(p.ctx, key, &before), "read the gateway's Deployment")
	p.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		var now appsv1.Deployment
		err := client.IgnoreNotFound(k8s.Delete(ctx, secret))
		if err == nil {
			err = k8s.Get(ctx, key, &now)
		}
		if err == nil {
			after := now.DeepCopy()
			after.Spec = before.Spec
			err = k8s.Patch(ctx, after, client.MergeFrom(&now))
		}
		if err == nil {
			err = cluster.Until(ctx, "one gateway", func(ctx context.Context) (bool, error) {
				err := k8s.Get(ctx, key, &now)
				return err == nil && now.Status.ObservedGeneration == now.Generation && now.Status.UpdatedReplicas == 1 && now.Status.Replicas == 1 && now.Status.ReadyReplicas == 1, err
			})
		}
		if err == nil { // for the tests that follow
			err = cluster.Until(ctx, "the gateway to know the provider", provider.Configured())
		}
		if err != nil {
			p.Errorf("give the gateway its own ledger back: %v", err)
		}
	})
	out, err := exec.CommandContext(p.ctx, "bash", "-euc", commands).CombinedOutput()
	p.must(err, "run two gateways: %s", out)
	p.must(cluster.Until(p.ctx, "the gateways to know the provider", provider.Configured()), "wait")
}

// answering is the gateway that waits for an answer to a Feature's agent; nil where the Feature has ended.
func (p *place) answering(feature, about string) (pod *corev1.Pod) {
	p.Helper()
	p.until(feature, "an answer under way, or the end", func(f *v1alpha1.Feature) bool {
		if f.Status.Phase == v1alpha1.PhaseDelivered {
			return true
		}
		asked, err := provider.Asked(p.ctx, about)
		p.must(err, "ask the provider")
		pods := p.gatewayPods()
		for _, a := range asked {
			for i := range pods {
				if a.Status == 0 && a.From == pods[i].Status.PodIP {
					pod = &pods[i]
				}
			}
		}
		return pod != nil
	})
	return pod
}

// TestGatewayReplicas is not parallel: the gateway is everybody's. Two of them on a PostgreSQL are killed in turns, in the middle of
// the calls of a real agent. It asks again and delivers, and what it was answered is recorded, once.
func TestGatewayReplicas(t *testing.T) {
	p := newPlace(t, 8*time.Minute)
	p.runTwoGateways()
	if pods := p.gatewayPods(); len(pods) != 2 {
		t.Fatalf("%d gateways are ready", len(pods))
	}
	// The model is slow to begin the first answers, and to end the last ones. Of an answer that breaks off the agent keeps what it has
	// seen, and does not ask for it again.
	const steps, whole = 6, 4
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: agentImage(t, "claude-code")}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		script := "turns:\n"
		for n := range steps {
			slow := "delay: 5s"
			if n >= whole {
				slow = "pause: 300ms"
			}
			script += fmt.Sprintf("- text: Step-%[1]d is taken with as many words as two lighthouses need for one night\n  run: mkdir -p web && echo step-%[1]d >> web/steps.html\n  %[2]s\n", n, slow)
		}
		s.Prompt = scripted("Write a page about pairs.", script+"- text: The page is written.")
	})
	killed := 0
	for ; killed < 6; killed++ {
		victim := p.answering("page", "Write a page about pairs.")
		if victim == nil {
			break
		}
		p.must(k8s.Delete(p.ctx, victim, client.GracePeriodSeconds(0)), "kill a gateway")
		p.must(cluster.Until(p.ctx, "two gateways", func(context.Context) (bool, error) {
			now := p.gatewayPods()
			return len(now) == 2 && now[0].UID != victim.UID && now[1].UID != victim.UID, nil
		}), "wait")
	}
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	history := p.history(f.Status.Branch)
	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json")), &list), "read the turns")
	sum, texts := v1alpha1.Usage{}, ""
	for n, turn := range list.Turns {
		if turn.Sequence != int64(n+1) {
			t.Errorf("turn %d has the number %d", n+1, turn.Sequence)
		}
		sum.Calls++
		sum.OutputTokens += turn.OutputTokens
		if turn.Status == http.StatusOK && turn.Reason == "Answered" {
			texts += p.view("features/page/turns", "output", "text", "call", strconv.FormatInt(turn.Sequence, 10))
		}
	}
	asked, err := provider.Asked(p.ctx, "Write a page about pairs.")
	p.must(err, "ask the provider")
	requests := len(asked)
	var missing []string
	for n := range steps {
		step := "Step-" + strconv.Itoa(n)
		switch times := strings.Count(texts, step+" "); {
		case times > 1:
			t.Errorf("the answer %s is recorded %d times:\n%s", step, times, texts)
		case times == 0 && n < whole:
			missing = append(missing, step)
		case times == 1 && !strings.Contains(history, strings.ToLower(step)+"\n"):
			t.Errorf("the branch lacks %s:\n%s", step, history)
		}
	}
	// One may be killed after the last word of an answer and before its record: the agent sees no end of that answer, and keeps what it has seen.
	if len(missing) > 1 {
		t.Errorf("the answers %q are not recorded:\n%s", missing, texts)
	}
	if used := f.Status.Run.Usage; used == nil || used.Calls != sum.Calls || used.OutputTokens != sum.OutputTokens {
		t.Errorf("usage %+v, and the turns have %+v", used, sum)
	}
	t.Logf("%d gateways were killed; the provider was asked %d times, and %d turns are recorded", killed, requests, len(list.Turns))
	if requests <= len(list.Turns) {
		t.Error("no gateway was killed in the middle of an answer")
	}
}

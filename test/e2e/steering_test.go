// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestLoopingAgentIsSteered: a real CLI whose model calls the same tool again and again is told so in the middle of its work, by words that its
// model gets and the CLI never sees. It does something else then, and delivers. People see the condition as long as it lasts. The loops of the others are
// found in TestAgentThatIsNotSteered and TestHeldAgentIsLetGo.
func TestLoopingAgentIsSteered(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{"codex", "qwen-code", "gemini-cli"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "whirlpools by "+runtime
			session(t, p, runtime, about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- until: "[SUPERVISOR]"
  while: cat web/missing.html
  text: I do something else.
  run: echo two > web/two.html; touch web/looked-at; while [ -e web/looked-at ]; do sleep 1; done
  yield: 30s
- text: I go on.
  run: echo three > web/three.html
- text: It is written.`)
			f := p.until("page", "the condition AgentLooping", func(f *v1alpha1.Feature) bool {
				c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAgentLooping)
				return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "the watchdog told the model")
			})
			if f.Status.Run.Turn < 4 || len(f.Status.Run.Anomalies) == 0 || f.Status.Run.Report.Activity.Iterations < 3 {
				t.Errorf("%+v, %+v", f.Status.Run.Anomalies, f.Status.Run.Report)
			}
			// The model has been told; its agent may not have done yet what it is told to do then.
			_, _, err := k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "sh", "-c", "until rm "+protocol.WorkspaceDir+"/web/looked-at 2> /dev/null; do sleep 0.1; done")
			p.must(err, "let the agent go on")
			f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAgentLooping); c == nil || c.Status != metav1.ConditionFalse {
				t.Errorf("at the end: %+v", c)
			}
			if got := p.history(f.Status.Branch); !strings.Contains(got, "web/three.html") {
				t.Errorf("the branch lacks the page:\n%s", got)
			}
			body := said(p, about)
			if n := strings.Count(body, "[SUPERVISOR] "); n != 1 || !strings.Contains(body, "I do something else.") {
				t.Errorf("the model was told %d times: %.3000s", n, body)
			}
			wantSteered(p, "page")
		})
	}
}

// wantSteered: the ledger has what the model was told, with the call in whose request it was.
func wantSteered(p *place, feature string) {
	p.Helper()
	var all protocol.SteeringSteps
	p.must(cluster.Until(p.ctx, "a step of steering with its call in the ledger", func(context.Context) (bool, error) {
		all = protocol.SteeringSteps{}
		p.must(json.Unmarshal([]byte(p.view("features/"+feature+"/steering")), &all), "read the steering")
		return len(all.Steps) > 0 && all.Steps[0].Call > 0, nil
	}), "wait for the ledger")
	step := all.Steps[0]
	if step.Sequence != 1 || step.Rung != "Nudge" || step.Channel != protocol.ChannelRequest || step.Anomaly != v1alpha1.ConditionAgentLooping || step.Evidence == "" || !strings.HasPrefix(step.Message, "[SUPERVISOR] ") {
		p.Errorf("%+v", step)
	}
	var turns protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/"+feature+"/turns", "call", strconv.FormatInt(step.Call, 10))), &turns), "read the call")
	if len(turns.Turns) != 1 || turns.Turns[0].RequestDigest != step.Request {
		p.Errorf("step %+v\nis not of the call %+v", step, turns)
	}
	if got := p.view("features/"+feature+"/steering", "output", "text", "step", "1"); !strings.Contains(got, step.Message) {
		p.Errorf("%s", got)
	}
}

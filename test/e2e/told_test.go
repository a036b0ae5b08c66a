// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// told are real CLIs that read nothing after their prompt, each with a dialect of its own.
var told = []string{"claude-code", "codex", "opencode"}

// TestAgentsHear: a real CLI is told of its work with its next call of a model, while it works: what a checkpoint found broken, what was put
// back, and that a person took something back. It does what it is told, and its work is delivered by the same attempt. What is told does not depend on the
// CLI, so that only acknowledging, which needs the dialect of requests and of answers, is for all of them.
func TestAgentsHear(t *testing.T) {
	t.Parallel()
	const good, evil = "mkdir -p web/legacy && echo good > web/page.html", "echo evil > web/legacy/page.html"
	for name, tc := range map[string]struct {
		script string
		change func(*v1alpha1.FeatureSpec)
		// by is who hears it: each of them once, and all of them what is heard in a request and answered.
		by []string
		// critical violations are to be acknowledged.
		critical bool
		// request of a person, once the first turn is done.
		request v1alpha1.Request
		invalid bool
		want    []string
	}{
		"violation": {
			by: []string{"claude-code"},
			script: `turns:
- text: I write too much.
  run: ` + good + ` && ` + evil + `
- until: "Checkpoint page-1 found 1 broken rule of severity error."
  text: I fix it.
  run: rm web/legacy/page.html
- text: It is fixed.`,
			request: checkpointNow("now"), invalid: true,
			want: []string{`web/legacy/page.html\", rule forbidden-areas: `, "All files are as you wrote them. Fix this now"},
		},
		"putback": {
			by: []string{"codex"},
			script: `turns:
- text: I write too much.
  run: ` + good + ` && ` + evil + `
- until: "files went back to the last valid checkpoint"
  text: I do it again.
  run: ` + good + `
- text: It is written.`,
			change:  func(s *v1alpha1.FeatureSpec) { s.Execution.Strategy = v1alpha1.StrategyShadow },
			request: checkpointNow("now"), invalid: true,
			want: []string{"Checkpoint page-1 found 1 broken rule of severity error.", `web/legacy/page.html\", rule forbidden-areas: `},
		},
		"corrected": {
			by: []string{"opencode"},
			script: `turns:
- text: I write too much.
  run: ` + good + ` && ` + evil + `
- text: It is written.
- text: I do it again.
  run: ` + good + `
- text: Now it is written.`,
			change:  func(s *v1alpha1.FeatureSpec) { s.Execution.Strategy = v1alpha1.StrategyShadow },
			invalid: true,
			want:    []string{"Your work is not delivered yet: checkpoint page-1 breaks rules.", "files went back to the last valid checkpoint"},
		},
		"acknowledged": {
			by: told,
			script: `turns:
- text: I write too much.
  run: ` + good + ` && ` + evil + `
- until: "The rules are: forbidden-areas."
  text: "I have read it.\n\nVIOLATION forbidden-areas: UNDERSTOOD - I write to web/page.html"
  run: rm web/legacy/page.html
- text: It is fixed.`,
			critical: true, request: checkpointNow("now"), invalid: true,
			want: []string{"Checkpoint page-1 found 1 broken rule of severity critical.", `web/legacy/page.html\", rule forbidden-areas: `},
		},
		"rollback": {
			by: []string{"codex"},
			script: `turns:
- text: I write a page.
  run: ` + good + `
- until: "A user has put files of the workspace back."
  text: I write another one.
  run: mkdir -p web && echo good > web/other.html
- text: It is written.`,
			request: rollback("back", v1alpha1.RollbackFull, ""),
			want:    []string{"Reverted 1 file: web/page.html."},
		},
	} {
		for _, runtime := range tc.by {
			t.Run(name+"/"+runtime, func(t *testing.T) {
				t.Parallel()
				p, about := newPlace(t, 8*time.Minute), "beacons with "+name+" by "+runtime
				if tc.critical {
					p.critical()
				}
				p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
					seldomCheckpoints(s)
					s.Agent = v1alpha1.Agent{Runtime: runtime, Image: agentImage(t, runtime)}
					s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
					s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, ForbiddenAreas: []string{"web/legacy/**"}}
					s.Prompt = scripted("Write a page about "+about+".", tc.script)
					if tc.change != nil {
						tc.change(s)
					}
				})
				if tc.request.ID != "" {
					p.until("page", "a second turn", func(f *v1alpha1.Feature) bool { return f.Status.Run != nil && f.Status.Run.Turn >= 2 })
					p.wantDone(p.request("page", tc.request))
				}
				f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
				if f.Status.Attempt != 1 || (f.Status.Checkpoints.Invalid > 0) != tc.invalid {
					t.Errorf("attempt %d, checkpoints %+v", f.Status.Attempt, f.Status.Checkpoints)
				}
				if got := p.history(f.Status.Branch); !strings.Contains(got, "good") || strings.Contains(got, "evil") {
					t.Errorf("the branch is not what it should be:\n%s", got)
				}
				if tc.critical {
					p.wantAcknowledged("page-1")
				}
				body := said(p, about)
				for _, part := range append(tc.want, "You may write within these bounds.") {
					// Before a checkpoint finds a path, a warning may name it, too.
					if n := strings.Count(body, part); n != 1 && (n == 0 || !strings.Contains(part, "forbidden-areas")) {
						t.Errorf("the last request has %q %d times: %.4000s", part, n, body)
					}
				}
			})
		}
	}
}

// wantAcknowledged: a Checkpoint keeps the agent's word about the forbidden area.
func (p *place) wantAcknowledged(name string) {
	p.Helper()
	c := &v1alpha1.Checkpoint{}
	p.must(k8s.Get(p.ctx, client.ObjectKey{Namespace: p.project, Name: name}, c), "get Checkpoint %s", name)
	if a := c.Status.Acknowledged; len(a) != 1 || a[0].Rule != "forbidden-areas" || a[0].Text != "I write to web/page.html" || a[0].Turn == 0 {
		p.Errorf("Checkpoint %s keeps %+v", name, a)
	}
}

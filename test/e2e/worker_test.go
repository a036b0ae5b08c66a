// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// patchTurn of a script sends a patch that makes files with one line each.
func patchTurn(operation, line string, paths ...string) string {
	var patch strings.Builder
	for _, path := range paths {
		for _, l := range []string{"diff --git a/PATH b/PATH", "new file mode 100644", "--- /dev/null", "+++ b/PATH", "@@ -0,0 +1 @@", "+" + line} {
			patch.WriteString("\n        " + strings.ReplaceAll(l, "PATH", path))
		}
	}
	return `
- text: I send ` + operation + `.
  tool:
    name: repo_apply_patch
    input:
      operation_id: ` + operation + `
      patch: |` + patch.String()
}

const completeTurn = `
- tool: {name: task_complete, input: {summary: There is a page.}}
- text: It is done.`

// throughTools is a Feature whose agent works through its tools and whose model plays a script.
func throughTools(p *place, agent v1alpha1.Agent, about, script string) {
	p.Helper()
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = agent
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, ForbiddenAreas: []string{"web/legacy/**"}}
		s.Execution.Mode = v1alpha1.ModeDeterministic
		s.Prompt = scripted("Write a page about "+about+".", "turns:"+script)
	})
}

// wantPatched: what was refused is nowhere, and the corrected patch was recorded and delivered.
func wantPatched(p *place, about string) *v1alpha1.Feature {
	p.Helper()
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, "good") || strings.Contains(got, "evil") || strings.Contains(got, "direct") {
		p.Errorf("the branch is not what it should be:\n%s", got)
	}
	// A pod that is lost may have had the time for a last checkpoint.
	got := slices.Compact(p.triggers("page"))
	if want := []string{"Patch Valid Promoted", "Final Skipped None"}; !slices.Equal(got, want) {
		p.Errorf("checkpoints %q, want %q", got, want)
	}
	if f.Status.Job.Mode != v1alpha1.ModeDeterministic {
		p.Errorf("mode %s", f.Status.Job.Mode)
	}
	if body := said(p, about); !strings.Contains(body, "forbidden-areas") {
		p.Errorf("the model was not told what was wrong: %.3000s", body)
	}
	return f
}

// modelOf makes a backend the one of a project.
func (p *place) modelOf(backend string) {
	p.Helper()
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "models"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "primary", Backend: backend, Model: cluster.Model}}},
	}}), "make the policy")
}

// TestWorker: the built-in worker does a task in each dialect, with no image of the Feature's own: it reads, is refused a patch that
// breaks a rule, corrects it, and completes the task.
func TestWorker(t *testing.T) {
	t.Parallel()
	for _, dialect := range cluster.Dialects {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "buoys by "+dialect
			p.modelOf(provider.Speaking(dialect))
			throughTools(p, v1alpha1.Agent{Runtime: "worker"}, about, `
- text: I look around.
  tools: [{name: repo_read_file, input: {path: web/index.html}}, {name: repo_search, input: {query: openapi}}]`+
				patchTurn("one", "evil", "web/page.html", "web/legacy/page.html")+`
  fail: {status: 529}`+
				patchTurn("two", "good", "web/page.html")+`
- text: I think that is all.`+completeTurn)
			f := wantPatched(p, about)
			if f.Status.Attempt != 1 {
				t.Errorf("attempt %d", f.Status.Attempt)
			}
			body := said(p, about)
			model := `"model":"` + cluster.Model + `"`
			if dialect == "gemini" { // whose path has the model, where TestAgents looks for it
				model = "contents"
			}
			for _, part := range []string{"<h1>shop</h1>", "api/openapi.yaml", `allowed_areas`, "You have called no tool.", model} {
				if !strings.Contains(body, part) && !strings.Contains(body, strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(part)) &&
					!strings.Contains(body, strings.NewReplacer("<", `\\u003c`, ">", `\\u003e`).Replace(part)) {
					t.Errorf("the last request lacks %q: %.3000s", part, body)
				}
			}
		})
	}
}

// TestWorkerBeginsAnew: one whose pod is lost begins its task anew in the next one, and finds what it has done.
func TestWorkerBeginsAnew(t *testing.T) {
	t.Parallel()
	p, about := newPlace(t, 5*time.Minute), "anchors"
	throughTools(p, v1alpha1.Agent{Runtime: "worker"}, about, patchTurn("zero", "evil", "web/legacy/page.html")+patchTurn("one", "good", "web/page.html")+`
- text: I think for long.
  tool: {name: repo_read_file, input: {path: web/page.html}}
  delay: 3m
  slow: 1`+completeTurn)
	f := p.until("page", "the first patch, and the slow answer under way", func(f *v1alpha1.Feature) bool {
		asked, err := provider.Asked(p.ctx, "Write a page about "+about)
		p.must(err, "ask the provider")
		return f.Status.Checkpoints.Valid > 0 && slices.ContainsFunc(asked, func(a cluster.Asked) bool {
			return a.Status == 0 && strings.Count(a.Body, "I send one.") > 1 // once in the script
		})
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: f.Status.Job.PodName}}
	p.must(k8s.Delete(p.ctx, pod, client.GracePeriodSeconds(0)), "lose the pod")
	if f = wantPatched(p, about); f.Status.Attempt != 2 {
		t.Errorf("attempt %d, want 2", f.Status.Attempt)
	}
}

// TestAgentsThroughTools: the real CLIs work in Deterministic mode. What they try to write themselves they cannot; their patches are
// judged before they are laid in.
func TestAgentsThroughTools(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimesWithSessions {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "tides by "+runtime
			throughTools(p, v1alpha1.Agent{Runtime: runtime, Image: agentImage(t, runtime)}, about, `
- text: I write it myself.
  run: echo direct > `+protocol.WorkspaceDir+`/web/direct.html || echo I cannot write
- tool: {name: feature_get_context, input: {}}`+
				patchTurn("one", "evil", "web/page.html", "web/legacy/page.html")+patchTurn("two", "good", "web/page.html")+completeTurn)
			f := wantPatched(p, about)
			if f.Status.Attempt != 1 {
				t.Errorf("attempt %d", f.Status.Attempt)
			}
			body := said(p, about)
			for _, part := range []string{"Read-only file system", "The workspace is read-only", "allowed_areas"} {
				if !strings.Contains(body, part) {
					t.Errorf("the last request lacks %q: %.3000s", part, body)
				}
			}
		})
	}
}

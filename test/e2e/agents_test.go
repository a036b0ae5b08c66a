// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// scripted is a prompt whose agent is answered by the script.
func scripted(text, script string) string { return text + "\n\n```script\n" + script + "\n```\n" }

// agentImage is the image of a runtime.
func agentImage(t *testing.T, runtime string) string {
	t.Helper()
	image, err := os.ReadFile(filepath.Join(os.Getenv("TIDEWAITER_AGENTS"), "agent-"+runtime+".ref"))
	if err != nil {
		t.Fatalf("no image of %s, run `make test-e2e`: %v", runtime, err)
	}
	return strings.TrimSpace(string(image))
}

// globalTemplate is what every agent of these tests is told first.
const globalTemplate = "Follow the rules of the house of lighthouses."

// tellEveryAgent makes the global template as a team does that manages its templates as ConfigMaps.
func tellEveryAgent(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.SystemNamespace, Name: "e2e-house", Labels: map[string]string{v1alpha1.LabelTemplate: "global-input"},
	}, Data: map[string]string{"text": globalTemplate}}
	if err := client.IgnoreAlreadyExists(k8s.Create(ctx, source)); err != nil { // an earlier run may have left it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k8s.Delete(context.WithoutCancel(t.Context()), source); err != nil {
			t.Errorf("delete the global template: %v", err)
		}
	})
	inForce(ctx, t, cluster.SystemNamespace, "configmap-e2e-house")
}

// inForce waits until a template is.
func inForce(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	err := cluster.Until(ctx, "Template "+name+" to be in force", func(ctx context.Context) (bool, error) {
		var template v1alpha1.Template
		err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &template)
		return err == nil && template.Status.InForce != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAgents: the real CLIs work in their pods, ask the model through watchdog and gateway, each in its own dialect, and what
// they write is checkpointed and delivered. No key is in the pod, and the provider sees the gateway's alone. Whatever they
// ask, the global and the project's templates come first (SUP-2).
func TestAgents(t *testing.T) {
	tellEveryAgent(t)
	for runtime, speaks := range map[string]struct{ key, frame string }{
		"claude-code": {"X-Api-Key", `"system":[{"type":"text","text":"`},
		"codex":       {"Authorization", `"instructions":"`},
		"opencode":    {"Authorization", `"messages":[{"role":"system","content":"`},
		"qwen-code":   {"Authorization", `"messages":[{"role":"system","content":"`},
		"gemini-cli":  {"X-Goog-Api-Key", `"systemInstruction":{"parts":[{"text":"`},
	} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			testAgent(t, runtime, speaks.key, speaks.frame)
		})
	}
}

// testAgent of a runtime whose provider is given its key in this header, and whose requests have the system's text in this
// frame.
func testAgent(t *testing.T, runtime, key, frame string) {
	p := newPlace(t, 5*time.Minute)
	image, page := agentImage(t, runtime), "lighthouses-by-"+runtime
	projectTemplate := "This is the project of " + runtime + "."
	p.must(k8s.Create(p.ctx, &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "house"}, Spec: v1alpha1.TemplateSpec{
		Direction: v1alpha1.DirectionInput, Text: &projectTemplate,
	}}), "create the project's template")
	inForce(p.ctx, t, p.project, "house")
	composed := `<!-- GLOBAL_TEMPLATE_START -->\n` + globalTemplate + `\n<!-- GLOBAL_TEMPLATE_END -->\n` +
		`<!-- PROJECT_TEMPLATE_START -->\n` + projectTemplate + `\n<!-- PROJECT_TEMPLATE_END -->\n<!-- USER_PROMPT_START -->\n`
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: runtime, Image: image}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		s.Prompt = scripted("Write a page: "+page+".", "turns:\n"+webSearches[runtime].turn(page)+`- text: I look around first.
  run: env | sort > /tmp/env; cat /tmp/env; ls
- text: Now I write the page.
  run: mkdir -p web && echo '<h1>`+page+`</h1>' > web/page.html
  fail: {status: 529}
- text: The page is written.`)
	})
	f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, "<h1>"+page) {
		t.Errorf("the branch lacks the page:\n%s", got)
	}
	asked, err := provider.Asked(p.ctx, page)
	p.must(err, "ask the provider")
	turns := 0
	for _, a := range asked {
		turns++
		if strings.TrimPrefix(a.Header[key], "Bearer ") != provider.Key || len(keys(a.Header)) != 1 {
			t.Errorf("the provider was asked with %v", a.Header)
		}
		before, _, found := strings.Cut(a.Body, composed)
		if !found || !strings.HasSuffix(before, frame) || strings.Count(a.Body, composed) != 1 {
			t.Errorf("the templates are not before what the agent sent: %.600s", a.Body)
		}
		if !strings.Contains(a.Body, `"model":"`+cluster.Model+`"`) && !strings.Contains(a.Path, "/models/"+cluster.Model+":") {
			t.Errorf("the provider was asked for another model: %.200s", a.Body)
		}
		// What the agent saw of its own environment is in its second request.
		if strings.Contains(a.Body, provider.Key) {
			t.Error("the agent saw the provider's key")
		}
	}
	if turns < 3 {
		t.Errorf("%d requests of this Feature reached the provider, want 3", turns)
	}
	wantRecorded(t, p, page)
	webSearches[runtime].wantTakenOut(t, p)
}

// webSearch is how a client has its provider search the web: with a tool of its own that makes a side call, or by offering the provider's tool in each call.
type webSearch struct {
	// tool of the client; empty for none.
	tool string
	// taken is the provider's tool, as the ledger names it when it is taken out of a request.
	taken string
}

var webSearches = map[string]webSearch{
	"claude-code": {"WebSearch", "anthropic/web_search"},
	"codex":       {"", "openai/web_search"},
	"gemini-cli":  {"google_web_search", "google/google_search"},
}

// turn of a script in which the agent searches the web.
func (s webSearch) turn(about string) string {
	if s.tool == "" {
		return ""
	}
	return fmt.Sprintf("- text: I search the web.\n  tool: {name: %s, input: {query: %q}}\n", s.tool, "Where are "+about)
}

// wantTakenOut: the provider's tool was taken out of requests of the Feature page, and the agent worked on.
func (s webSearch) wantTakenOut(t *testing.T, p *place) {
	t.Helper()
	if s.taken == "" {
		return
	}
	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json")), &list), "read the turns")
	if !slices.ContainsFunc(list.Turns, func(turn protocol.Turn) bool {
		return turn.Status == http.StatusOK && strings.Contains(turn.Detail, "taken out: "+s.taken)
	}) {
		t.Errorf("no request had %s taken out: %+v", s.taken, list.Turns)
	}
}

// keys that a request carries.
func keys(header map[string]string) (found []string) {
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		if header[name] != "" {
			found = append(found, name)
		}
	}
	return found
}

// wantRecorded: people see each call that the agent of the Feature page has made, and what was answered.
func wantRecorded(t *testing.T, p *place, page string) {
	t.Helper()
	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json")), &list), "read the turns")
	answered := 0
	for _, turn := range list.Turns {
		if turn.Status == http.StatusOK && turn.Role == "primary" {
			answered++
			if turn.InputTokens == 0 || turn.OutputTokens == 0 || turn.Cost == "0" || turn.Templates == "" || turn.Attempt != 1 || turn.Task != "page" || turn.Model != cluster.Model {
				t.Errorf("turn %+v", turn)
			}
		}
	}
	if answered < 3 {
		t.Errorf("%d turns are recorded as answered, want 3: %+v", answered, list.Turns)
	}
	seen := ""
	for _, turn := range list.Turns {
		seen += p.view("features/page/turns", "output", "text", "call", strconv.FormatInt(turn.Sequence, 10))
	}
	if !strings.Contains(seen, page) || strings.Contains(seen, provider.Key) {
		t.Errorf("the answers are:\n%s", seen)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/world"
)

// scripted is a prompt whose agent is answered by the script.
func scripted(text, script string) string { return text + "\n\n```script\n" + script + "\n```\n" }

// agentImage is the image of a runtime.
func agentImage(t *testing.T, variable string) string {
	t.Helper()
	image := os.Getenv(variable)
	if image == "" {
		t.Fatalf("%s is not set: run `make test-e2e`", variable)
	}
	return image
}

// TestClaudeCode: the real Claude Code works in its pod, asks the model through watchdog and gateway, and what it writes is
// checkpointed and delivered. No key is in the pod, and the provider sees the gateway's alone.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	image := agentImage(t, "TIDEWAITER_CLAUDE_CODE")
	p.feature("claude", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: image}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		s.Prompt = scripted("Write a page about lighthouses.", `turns:
- text: I look around first.
  run: env | sort > /tmp/env; cat /tmp/env; ls
- text: Now I write the page.
  run: mkdir -p web && echo '<h1>Lighthouses</h1>' > web/lighthouses.html
  fail: {status: 529}
- text: The page is written.`)
	})
	f := p.phase("claude", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, "Lighthouses") {
		t.Errorf("the branch lacks the page:\n%s", got)
	}
	asked, err := provider.Asked(p.ctx)
	p.must(err, "ask the provider")
	turns := 0
	for _, a := range asked {
		if !strings.Contains(a.Body, "lighthouses") {
			continue // another test's
		}
		turns++
		if a.Header["X-Api-Key"] != provider.Key || a.Header["Authorization"] != "" {
			t.Errorf("the provider was asked with %v", a.Header)
		}
		if !strings.Contains(a.Body, `"model":"`+world.Model+`"`) {
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
}

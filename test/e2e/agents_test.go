// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
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

// TestAgents: the real CLIs work in their pods, ask the model through watchdog and gateway, each in its own dialect, and what
// they write is checkpointed and delivered. No key is in the pod, and the provider sees the gateway's alone.
func TestAgents(t *testing.T) {
	for runtime, key := range map[string]string{"claude-code": "X-Api-Key", "codex": "Authorization", "opencode": "Authorization"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			testAgent(t, runtime, key)
		})
	}
}

func testAgent(t *testing.T, runtime, key string) {
	p := newPlace(t, 5*time.Minute)
	image, page := agentImage(t, runtime), "lighthouses-by-"+runtime
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: runtime, Image: image}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		s.Prompt = scripted("Write a page: "+page+".", `turns:
- text: I look around first.
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
	asked, err := provider.Asked(p.ctx)
	p.must(err, "ask the provider")
	turns := 0
	for _, a := range asked {
		if !strings.Contains(a.Body, page) {
			continue // another test's
		}
		turns++
		if strings.TrimPrefix(a.Header[key], "Bearer ") != provider.Key || a.Header["X-Api-Key"] != "" && a.Header["Authorization"] != "" {
			t.Errorf("the provider was asked with %v", a.Header)
		}
		if !strings.Contains(a.Body, `"model":"`+cluster.Model+`"`) {
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

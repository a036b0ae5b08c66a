// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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
)

// sessions are the files below HOME in which the real CLIs keep their sessions, as patterns of find -path.
var sessions = map[string]string{
	"claude-code": "*/.claude/projects/*.jsonl",
	"codex":       "*/.codex/sessions/*.jsonl",
	"opencode":    "*/opencode/opencode*.db*", // SQLite, with its write-ahead log
	"qwen-code":   "*/.qwen/projects/*/chats/*.jsonl",
	"gemini-cli":  "*/.gemini/tmp/*/chats/*.jsonl",
}

// remembers says whether a CLI has written to its session what the model said and called last, a shell command. What a call does can be seen before
// that: a client that loses its pod in between asks for the turn again. The scripts of prompts, which sessions hold too, have no such member. Gemini CLI
// writes what was said at once, and a call when it has its result.
func (p *place) remembers(pod, runtime, said, command string) bool {
	p.Helper()
	files, known := sessions[runtime]
	if !known {
		p.Fatalf("sessions does not say where %s keeps its own", runtime)
	}
	if pod == "" {
		return false
	}
	call := `(command|cmd)\\*": ?\\*"` + command
	if runtime == "gemini-cli" {
		call = `"type":"gemini","content":"` + said
	}
	_, _, err := k8s.Exec(p.ctx, p.project, pod, "agent", nil, "sh", "-c", `find "$2" -path "$0" -exec grep -aqE "$1" {} \; -print 2> /dev/null | grep -q .`, files, call, protocol.HomeDir)
	return err == nil
}

// runtimesWithSessions are the real CLIs.
var runtimesWithSessions = []string{"claude-code", "codex", "opencode", "qwen-code", "gemini-cli"}

// oneOfEachDialect are real CLIs for what depends on the dialect of requests and answers, and on nothing else of a CLI.
var oneOfEachDialect = []string{"claude-code", "codex", "qwen-code", "gemini-cli"}

// session is a Feature of a real CLI whose model plays a script.
func session(t *testing.T, p *place, runtime, about, script string, more ...func(*v1alpha1.FeatureSpec)) {
	t.Helper()
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: runtime, Image: agentImage(t, runtime)}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, ForbiddenAreas: []string{"web/legacy/**"}}
		s.Prompt = scripted("Write a page about "+about+".", script)
		for _, change := range more {
			change(s)
		}
	})
}

// said are the texts that the provider was sent about something, the last request of all.
func said(p *place, about string) string {
	p.Helper()
	asked, err := provider.Asked(p.ctx, "Write a page about "+about)
	p.must(err, "ask the provider")
	last := ""
	for _, a := range asked {
		if strings.Contains(a.Body, "\"tools\"") {
			last = a.Body
		}
	}
	return last
}

// TestAgentIsToldAndFixes: a real CLI that has ended with work which breaks a rule continues in its session, is told which rule and where, and fixes it. Then a
// gate fails: it is told what the gate said, and mends its work. Nothing that it leaves changes what the gate does. The same attempt delivers.
func TestAgentIsToldAndFixes(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimesWithSessions {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 12*time.Minute), "storms by "+runtime
			session(t, p, runtime, about, `turns:
- text: I write too much.
  run: mkdir -p web/legacy "$HOME/bin" && echo bad > web/storm.html && echo evil > web/legacy/storm.html && printf '#!/bin/sh\nexit 0\n' > "$HOME/bin/grep" && chmod +x "$HOME/bin/grep"
- text: It is written.
- text: I fix it.
  run: rm web/legacy/storm.html
- text: It is fixed.
- text: I mend it.
  run: echo good > web/storm.html
- text: It is mended.`, func(s *v1alpha1.FeatureSpec) {
				s.Gates = []v1alpha1.Gate{gate("page", `[ -z "$(ls -A "$HOME")" ] && [ -z "$TIDEWAITER_TASK" ] || exit 5; grep -q good web/storm.html || { echo "the page is bad"; exit 3; }`)}
			})
			f := p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if f.Status.Attempt != 1 || f.Status.Checkpoints.Invalid == 0 {
				t.Errorf("attempt %d, checkpoints %+v", f.Status.Attempt, f.Status.Checkpoints)
			}
			if got := p.history(f.Status.Branch); !strings.Contains(got, " blob 5\ngood\n") || strings.Contains(got, "evil") {
				t.Errorf("the branch is not what it should be:\n%s", got)
			}
			body := said(p, about)
			for _, part := range []string{
				"I write too much.", "Your work is not delivered yet", `web/legacy/storm.html\", rule forbidden-areas`,
				"Your task is not done yet: 1 of 1 gates failed.", "exited with code 3", "the page is bad",
			} {
				if !strings.Contains(body, part) {
					t.Errorf("the last request lacks %q: %.3000s", part, body)
				}
			}
		})
	}
}

// TestAgentResumesItsSession: a real CLI whose pod is lost in the middle of a turn goes on with its session in the next one.
func TestAgentResumesItsSession(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimesWithSessions {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 12*time.Minute), "wrecks by "+runtime
			session(t, p, runtime, about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- text: I think for long.
  run: touch web/thinking; while [ -e web/thinking ]; do sleep 1; done
- text: I go on.
  run: echo two > web/two.html
- text: It is written.`)
			f := p.every(time.Second, "page", "the second turn in the client's session", func(f *v1alpha1.Feature) bool {
				return f.Status.Job != nil && p.remembers(f.Status.Job.PodName, runtime, "I think for long.", "touch web/thinking")
			})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: f.Status.Job.PodName}}
			p.must(k8s.Delete(p.ctx, pod, client.GracePeriodSeconds(0)), "lose the pod")
			f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if f.Status.Attempt != 2 {
				t.Errorf("attempt %d, want 2", f.Status.Attempt)
			}
			if got := p.history(f.Status.Branch); !strings.Contains(got, "web/two.html") {
				t.Errorf("the branch lacks the page:\n%s", got)
			}
			body := said(p, about)
			for _, part := range []string{"I begin.", "I think for long.", "You were interrupted in the middle of this task"} {
				if !strings.Contains(body, part) {
					t.Errorf("the session lacks %q: %.3000s", part, body)
				}
			}
		})
	}
}

// TestAgentGoesOnAsThePolicySays: an agent whose pod is lost begins a new session under supervision.restartMode Replay, and under Ask goes on in its
// session once a person has asked for a retry, and not before.
func TestAgentGoesOnAsThePolicySays(t *testing.T) {
	t.Parallel()
	for mode, told := range map[string]bool{"Replay": false, "Ask": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p, about := newPlace(t, 5*time.Minute), "rescues by "+mode
			p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "restarts"}, Spec: v1alpha1.SupervisorPolicySpec{
				Defaults: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{RestartMode: mode}},
			}}), "make the policy")
			// HOME outlives the pod: the second turn waits in the first attempt alone.
			session(t, p, "claude-code", about, `turns:
- text: I begin.
  run: mkdir -p web && echo one > web/one.html
- text: I think for long.
  run: touch web/thinking; if mkdir "$HOME/once"; then while true; do sleep 1; done; fi
- text: I go on.
  run: rm web/thinking; echo two > web/two.html
- text: It is written.`)
			f := p.every(time.Second, "page", "the second turn in the client's session", func(f *v1alpha1.Feature) bool {
				if f.Status.Job == nil || !p.remembers(f.Status.Job.PodName, "claude-code", "I think for long.", "touch web/thinking") {
					return false
				}
				// The client writes a call before it makes it.
				_, _, err := k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "test", "-d", protocol.HomeDir+"/once")
				return err == nil
			})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: f.Status.Job.PodName}}
			p.must(k8s.Delete(p.ctx, pod, client.GracePeriodSeconds(0)), "lose the pod")
			if mode == "Ask" {
				f = p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonAwaitingRestart)
				if f.Status.Attempt != 1 {
					t.Errorf("attempt %d waits, want 1", f.Status.Attempt)
				}
				p.wantDone(p.request("page", v1alpha1.Request{ID: "looked", Retry: &v1alpha1.RetryRequest{}}), "Attempt 2")
			}
			f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if f.Status.Attempt != 2 {
				t.Errorf("attempt %d, want 2", f.Status.Attempt)
			}
			if got := p.history(f.Status.Branch); !strings.Contains(got, "web/two.html") {
				t.Errorf("the branch lacks the page:\n%s", got)
			}
			if body := said(p, about); strings.Contains(body, "You were interrupted in the middle of this task") != told {
				t.Errorf("in its session it was told %v, want %v: %.3000s", !told, told, body)
			}
		})
	}
}

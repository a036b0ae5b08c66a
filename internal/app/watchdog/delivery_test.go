// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func approval(o *protocol.Orders) { o.Delivery.RequireApproval = true }

func TestALateApprovalIsDeliveredWithoutAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom, approval)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if w.branch() != "" || !strings.Contains(f.Message, f.Head) {
		t.Errorf("pushed %q, message %q", w.branch(), f.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = strings.Repeat("1", 40) })
	wantFinal(t, w.seal(2), protocol.OutcomeReadyToMerge, protocol.ReasonApprovalMismatch)
	if w.branch() != "" {
		t.Error("the approval of another commit pushed something")
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = f.Head })
	wantFinal(t, w.seal(3), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != f.Head {
		t.Errorf("pushed %q, want exactly %q", w.branch(), f.Head)
	}
	wantFinal(t, w.seal(4), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// The policy that counts is the one at the time of the delivery.
func TestTheSealJudgesByThePolicyOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom, approval)
	f := w.start(1, nil).finish()
	w.intake.Order(func(o *protocol.Orders) {
		o.Delivery.ApprovedCommit = f.Head
		o.Policy.Paths.Protected = append(o.Policy.Paths.Protected, "web/a.html")
		o.Policy.Hash = "policy-2"
	})
	f = w.seal(2)
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	if w.branch() != "" || !strings.Contains(f.Message, "web/a.html") {
		t.Errorf("pushed %q, message %q", w.branch(), f.Message)
	}
}

func TestABranchOfSomeoneElseIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom)
	tree := w.git("-C", w.origin, "rev-parse", "main^{tree}")
	theirs := w.git("-C", w.origin, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit-tree", tree, "-p", "main", "-m", "Theirs")
	w.git("-C", w.origin, "update-ref", "refs/heads/tidewaiter/login", theirs)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonPushConflict)
	if w.branch() != theirs || !strings.Contains(f.Message, "tidewaiter/login") || !strings.Contains(f.Message, f.Head) {
		t.Errorf("branch %q, message %q", w.branch(), f.Message)
	}
	w.git("-C", w.origin, "update-ref", "-d", "refs/heads/tidewaiter/login")
	wantFinal(t, w.seal(2), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != f.Head {
		t.Errorf("branch %q, want %q", w.branch(), f.Head)
	}
}

// A refusal by a rule of the server is tried once and told in the server's words; the work is delivered once the rule is gone.
func TestADefiniteRefusalIsTriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom)
	hook, tries := filepath.Join(w.origin, "hooks", "pre-receive"), filepath.Join(t.TempDir(), "tries")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho tried >> "+tries+"\necho the branch is protected >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonPushRejected)
	if !strings.Contains(f.Message, "the branch is protected") || !strings.Contains(f.Message, f.Head) {
		t.Errorf("message %q", f.Message)
	}
	if got, err := os.ReadFile(tries); err != nil || string(got) != "tried\n" {
		t.Errorf("tried %q, %v", got, err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, w.seal(2), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// A server that cannot be reached, or cannot move the branch for now, is tried again; suspending ends that.
func TestAPushThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom)
	lock := filepath.Join(w.origin, "refs", "heads", "tidewaiter", "login.lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	p := w.start(1, nil)
	w.eventually("the refusal is told", func() bool {
		s := w.intake.Status()
		return s.Fault != nil && s.Fault.Reason == protocol.ReasonPushFailed
	})
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.intake.Status().Fault != nil {
		t.Errorf("the fault is still told: %+v", w.intake.Status())
	}
}

func TestWorkIsKeptWhereNothingIsToBePushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html`, seldom, func(o *protocol.Orders) { o.Delivery.Push = false })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != "" || w.trusted("rev-parse", protocol.RefDelivery) != f.Head {
		t.Errorf("pushed %q, kept %q, want %q", w.branch(), w.trusted("rev-parse", protocol.RefDelivery), f.Head)
	}
}

// What keeps a preparation from working is told, and heals.
func TestPreparationFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(*world)
		want  string
		fix   func(*world)
	}{
		"no Secret": {
			spoil: func(w *world) { w.remove("git-secret/password") },
			want:  protocol.ReasonCredentialsMissing,
			fix:   func(w *world) { w.write("git-secret/password", secretPassword) },
		},
		"wrong password": {
			spoil: func(w *world) { w.write("git-secret/password", "guess") },
			want:  protocol.ReasonAuthenticationFailed,
			fix:   func(w *world) { w.write("git-secret/password", secretPassword) },
		},
		"no such repository": {
			spoil: func(w *world) { w.move("repos/shop.git", "repos/away") },
			want:  protocol.ReasonRepositoryNotFound,
			fix:   func(w *world) { w.move("repos/away", "repos/shop.git") },
		},
		"no such revision": {
			spoil: func(w *world) { w.intake.Order(func(o *protocol.Orders) { o.Repository.Revision = "mian" }) },
			want:  protocol.ReasonRevisionNotFound,
			fix:   func(w *world) { w.intake.Order(func(o *protocol.Orders) { o.Repository.Revision = "main" }) },
		},
		"nobody there": {
			spoil: func(w *world) {
				w.intake.Order(func(o *protocol.Orders) { o.Repository.URL = "https://127.0.0.1:1/shop.git" })
			},
			want: protocol.ReasonRepositoryUnreachable,
		},
		"a journal of nonsense": {
			spoil: func(w *world) { w.write("trusted/journal.jsonl", "{\n") },
			want:  protocol.ReasonVolumeCorrupt,
			fix:   func(w *world) { w.remove("trusted/journal.jsonl") },
		},
		"a base that lost its objects": {
			spoil: func(w *world) {
				if err := w.prepare(1); err != nil {
					w.t.Fatal(err)
				}
				w.move("trusted/repo.git/objects/pack", "pack")
				w.mkdir("trusted/repo.git/objects/pack")
			},
			want: protocol.ReasonVolumeCorrupt,
			fix: func(w *world) {
				w.remove("trusted/repo.git/objects/pack")
				w.move("pack", "trusted/repo.git/objects/pack")
			},
		},
		"something that has no name": {
			spoil: func(w *world) { w.paths.Runner = filepath.Join(w.dir, "runner") },
			want:  protocol.ReasonPreparationFailed,
			fix:   func(w *world) { w.write("runner", "#!/bin/true\n") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			tc.spoil(w)
			ended := make(chan error, 1)
			go func() { ended <- w.prepare(1) }()
			w.eventually("the fault is told", func() bool { s := w.intake.Status(); return s.Fault != nil })
			if got := w.intake.Status().Fault; got.Reason != tc.want || got.Message == "" || strings.Contains(got.Message, secretPassword) {
				t.Errorf("fault %+v, want %s", got, tc.want)
			}
			if tc.fix == nil {
				w.intake.Order(func(o *protocol.Orders) { o.Stop, o.StopReason = true, protocol.ReasonDeleted })
				if err := <-ended; err == nil {
					t.Error("prepare succeeded: the agent would start")
				}
				wantFinal(t, *w.intake.Final(1), protocol.OutcomeStopped, protocol.ReasonDeleted)
				return
			}
			tc.fix(w)
			if err := <-ended; err != nil {
				t.Errorf("prepare: %v", err)
			}
		})
	}
}

// An attempt that a newer one has overtaken touches nothing.
func TestAnOlderAttemptIsFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if err := w.prepare(2); err != nil {
		t.Fatal(err)
	}
	before := w.read("trusted/journal.jsonl")
	if err := w.prepare(1); err == nil || !strings.Contains(err.Error(), "newer attempt") {
		t.Errorf("prepare of an older attempt: %v", err)
	}
	if err := watchdog.Run(context.WithoutCancel(t.Context()), w.options(1, nil)); err == nil {
		t.Error("an older attempt runs")
	}
	if got := w.read("trusted/journal.jsonl"); got != before {
		t.Errorf("the journal was changed to %q", got)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) move(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// A branch that the policy no longer allows when the work is done is not pushed, the work is kept, and another delivery needs no agent.
func TestABoundThatComesWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.html; ` + w.signalled("working") + w.waitFor("end")
	})
	p := w.start(1, nil)
	w.waitSignal("working")
	w.tell(func(o *protocol.Orders) {
		o.Policy.Branches, o.Policy.Hash = []policy.Bound{{Globs: []string{"agents/**"}, From: "overrides of s/a"}}, "policy-bound"
	})
	w.signal("end")
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonBranchNotAllowed)
	if w.branch() != "" || !strings.Contains(f.Message, "tidewaiter/login, and the policy (delivery.branches in overrides of s/a) allows agents/**") {
		t.Errorf("pushed %q, message %q", w.branch(), f.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Branches, o.Policy.Hash = nil, "policy-free" })
	second := w.seal(2)
	wantFinal(t, second, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != f.Head {
		t.Errorf("pushed %q, want %s", w.branch(), f.Head)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

var base = map[string]string{"README.md": "The shop.\n", "web/index.html": "<h1>Shop</h1>\n"}

// taken is what came of the newest checkpoint, in a line.
func taken(r *workroom.Room) string {
	c := r.Reported[len(r.Reported)-1]
	line := fmt.Sprintf("%d %s %s %s", c.Sequence, c.Trigger, c.Verdict, c.Action)
	if !c.Settled {
		line += " unsettled"
	}
	return line
}

func take(t *testing.T, r *workroom.Room, o checkpoint.Occasion) checkpoint.Taken {
	t.Helper()
	c, err := r.Checkpoint.Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What is valid is promoted, what is not is held and kept in the chain, and what is as before is not recorded again.
func TestTake(t *testing.T) {
	r := workroom.New(t, base)
	r.Write("web/a.html", "a")
	take(t, r, r.Occasion())
	want(t, "the first", taken(r), "1 Interval Valid Promoted")
	want(t, "promoted", r.Promoted("web/a.html"), "a")
	if c := take(t, r, r.Occasion()); c.Intent != nil || len(r.Reported) != 1 {
		t.Errorf("nothing had changed, and %+v was recorded", c.Intent)
	}
	r.Write("lib/b.go", "b")
	r.Write("web/c.html", "c")
	o := r.Occasion()
	o.Trigger, o.Requests = protocol.TriggerRequested, []string{"r1"}
	take(t, r, o)
	want(t, "outside of the areas", taken(r), "2 Requested Invalid Held")
	want(t, "held", r.Promoted("web/c.html"), "")
	want(t, "in the workspace", r.Read("web/c.html"), "c")
	if len(r.Answers) != 1 || r.Answers[0].ID != "r1" || !r.Answers[0].OK {
		t.Errorf("answers %+v", r.Answers)
	}
	r.WantRefs()
}

// A Shadow strategy takes back what breaks a rule, as a whole or in part, with the agent held still.
func TestShadowTakesBack(t *testing.T) {
	for promotion, wantC := range map[string]string{policy.PromotionAtomic: "", policy.PromotionIncremental: "c"} {
		r := workroom.New(t, base)
		r.Orders.Policy.Execution.Strategy, r.Orders.Policy.Execution.Promotion = policy.StrategyShadow, promotion
		f := &freezer{}
		o := r.Occasion()
		o.Freezer = f
		r.Write("lib/b.go", "b")
		r.Write("web/c.html", "c")
		take(t, r, o)
		for path, content := range map[string]string{"lib/b.go": "", "web/c.html": wantC} {
			want(t, promotion+" "+path, r.Read(path), content)
			want(t, promotion+" promoted "+path, r.Promoted(path), content)
		}
		if f.held || f.freezes == 0 {
			t.Errorf("%s: %d freezes, held %v", promotion, f.freezes, f.held)
		}
		r.WantRefs()
	}
}

// freezer stands in for an agent that is held still.
type freezer struct {
	freezes int
	held    bool
	flaw    error
}

func (f *freezer) Freeze(context.Context) (workspace.Frozen, error) {
	f.freezes++
	f.held = true
	return workspace.Frozen{Processes: 1, Settled: true}, nil
}

func (f *freezer) Thaw(context.Context) error {
	f.held = false
	return f.flaw
}

func (f *freezer) Last() checkpoint.Freeze {
	return checkpoint.Freeze{Held: f.held, Still: true, Flaw: f.flaw}
}

// A freeze that was none, and a doubt, leave the checkpoint unsettled: it is recorded and never promoted.
func TestWhatDidNotHoldStillIsHeld(t *testing.T) {
	r := workroom.New(t, base)
	r.Write("web/a.html", "a")
	o := r.Occasion()
	o.Doubt = "a doubt"
	take(t, r, o)
	want(t, "with a doubt", taken(r), "1 Interval Valid Held unsettled")
	o = r.Occasion()
	o.Freezer, o.AtOnce, o.Hold = &freezer{flaw: errors.New("a process ran")}, true, true
	take(t, r, o)
	want(t, "with a flaw", taken(r), "2 Interval Valid Held unsettled")
	want(t, "promoted", r.Promoted("web/a.html"), "")
	take(t, r, r.Occasion())
	want(t, "at rest", taken(r), "3 Interval Valid Promoted")
}

// Names that came and went are told by the next checkpoint that is recorded, once, bounded and fit for a terminal.
func TestNamesThatCameAndWentAreRecorded(t *testing.T) {
	r := workroom.New(t, base)
	failing := false
	r.Open(func(step string) error {
		if failing && step == "committed" {
			return errPulled
		}
		return nil
	})
	if err := r.Workspace.Open(t.Context(), r.Journal.State()); err != nil {
		t.Fatal(err)
	}
	take(t, r, r.Occasion()) // what is only believed to be there is looked at
	if err := r.Workspace.Engine().Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass := func(names ...string) {
		for _, name := range names {
			r.Write(name, "x")
			r.Remove(name)
		}
	}
	pass("run.sh", "a\x1bb")
	if c := take(t, r, r.Occasion()); c.Intent != nil || len(r.Reported) != 0 {
		t.Fatalf("nothing had changed, and %+v was recorded", c.Intent)
	}
	pass("late.sh")
	r.Write("web/a.html", "a")
	failing = true
	if _, err := r.Checkpoint.Take(t.Context(), r.Occasion()); !errors.Is(err, errPulled) {
		t.Fatal(err)
	}
	failing = false
	wantTransient := func(want *protocol.Transient) {
		t.Helper()
		take(t, r, r.Occasion())
		if diff := cmp.Diff(want, r.Reported[len(r.Reported)-1].Transient); diff != "" {
			t.Errorf("checkpoint %d (-want +got):\n%s", len(r.Reported), diff)
		}
	}
	wantTransient(&protocol.Transient{Names: []string{`"a\x1bb"`, "run.sh", "late.sh"}})
	r.Write("web/a.html", "b")
	wantTransient(nil)
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprintf("%02d%s", i, strings.Repeat("\u4e00", 80))) // each has 242 bytes
	}
	pass(long...)
	r.Write("web/a.html", "c")
	wantTransient(&protocol.Transient{Names: long[:16], More: 24})
}

// errPulled is what a process ends with when a test pulls its plug.
var errPulled = errors.New("the plug was pulled")

// A process that ends after any step is followed by one that completes what was begun: once, and with the same result.
func TestRecover(t *testing.T) {
	for _, step := range []string{"captured", "committed", "intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled"} {
		t.Run(step, func(t *testing.T) {
			r := workroom.New(t, base)
			r.Orders.Policy.Execution.Strategy, r.Orders.Policy.Execution.Promotion = policy.StrategyShadow, policy.PromotionIncremental
			r.Open(func(reached string) error { return map[string]error{step: errPulled}[reached] })
			r.Write("lib/b.go", "b")
			r.Write("web/c.html", "c")
			o := r.Occasion()
			o.Requests = []string{"r1"}
			if _, err := r.Checkpoint.Take(t.Context(), o); !errors.Is(err, errPulled) {
				t.Fatalf("the process ended with %v", err)
			}
			r.Open(nil)
			if err := r.Workspace.Open(t.Context(), r.Journal.State()); err != nil {
				t.Fatal(err)
			}
			if err := r.Checkpoint.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			take(t, r, o)
			want(t, "promoted", r.Promoted("web/c.html"), "c")
			want(t, "taken back", r.Read("lib/b.go"), "")
			if len(r.Answers) != 1 {
				t.Errorf("answers %+v, want one", r.Answers)
			}
			kept := map[int64]string{}
			for _, c := range r.Reported { // reported twice is the same report
				if before, again := kept[c.Sequence]; again && before != c.Commit {
					t.Errorf("checkpoint %d is commit %s and commit %s", c.Sequence, before, c.Commit)
				}
				kept[c.Sequence] = c.Commit
			}
			r.WantRefs()
		})
	}
}

// What a lost attempt left is kept in the chain and not promoted; what it left as promoted is not recorded.
func TestKeepRemains(t *testing.T) {
	r := workroom.New(t, base)
	if err := r.Checkpoint.KeepRemains(t.Context(), r.Orders); err != nil || len(r.Reported) != 0 {
		t.Errorf("nothing was left: %v, %+v", err, r.Reported)
	}
	r.Write("web/half.html", "ha")
	if err := r.Checkpoint.KeepRemains(t.Context(), r.Orders); err != nil {
		t.Fatal(err)
	}
	want(t, "what was left", taken(r), "1 Final Valid Held unsettled")
	want(t, "promoted", r.Promoted("web/half.html"), "")
}

func rollback(r protocol.Rollback) protocol.Request {
	return protocol.Request{ID: "back", Kind: protocol.RequestRollback, Rollback: &r}
}

// A rollback keeps the state of now, goes back, and says so; one that cannot be is refused with the reason.
func TestRollBack(t *testing.T) {
	setup := func(t *testing.T) *workroom.Room {
		r := workroom.New(t, base)
		r.Write("web/a.html", "one")
		take(t, r, r.Occasion())
		r.Write("web/a.html", "two")
		r.Write("web/b.html", "b")
		take(t, r, r.Occasion())
		r.Write("web/late.html", "late")
		return r
	}
	for name, tc := range map[string]struct {
		rollback protocol.Rollback
		message  string // part of the answer
		a, b     string // content afterwards
	}{
		"all":                  {protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 1}, "Reverted 3 files: web/a.html, web/b.html, web/late.html", "one", ""},
		"a path":               {protocol.Rollback{Kind: protocol.RollbackPaths, Checkpoint: 1, Paths: []string{"web/a.html"}}, "Reverted 1 file: web/a.html. Kept 2 other changes", "one", "b"},
		"nothing breaks rules": {protocol.Rollback{Kind: protocol.RollbackSmart}, "Reverted 0 files with violations", "two", "b"},
		"an unknown one":       {protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 9}, "checkpoint login-9 is not on the trusted volume", "two", "b"},
		"an unknown path":      {protocol.Rollback{Kind: protocol.RollbackPaths, Paths: []string{"wbe"}}, "path wbe is neither in the workspace nor in", "two", "b"},
		"no path":              {protocol.Rollback{Kind: protocol.RollbackPaths}, "names no path", "two", "b"},
		"an unknown kind":      {protocol.Rollback{Kind: "Sideways"}, `unknown kind of rollback "Sideways"`, "two", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := setup(t)
			n, refused, err := r.Checkpoint.RollBack(t.Context(), r.Occasion(), rollback(tc.rollback))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Answers) != 1 || !strings.Contains(r.Answers[0].Message, tc.message) || r.Answers[0].OK == refused {
				t.Errorf("answers %+v, refused %v, want %q", r.Answers, refused, tc.message)
			}
			if went := tc.a == "one"; went != (n != nil) {
				t.Errorf("notice %+v", n)
			}
			want(t, "web/a.html", r.Read("web/a.html"), tc.a)
			want(t, "web/b.html", r.Read("web/b.html"), tc.b)
			r.WantRefs()
		})
	}
}

// A patch is judged before it is laid in, answered the same when it is sent again, and refused where it cannot be.
func TestPatch(t *testing.T) {
	r := workroom.New(t, base)
	o := r.Occasion()
	o.Trigger = protocol.TriggerPatch
	add := func(path string) string {
		return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+x\n", path)
	}
	for _, tc := range []struct{ id, patch, status, message, content string }{
		{"op1", add("web/a.html"), tools.Applied, "", "x\n"},
		{"op2", add("lib/a.go"), tools.Refused, "the patch changed nothing. ", ""},
		{"op3", "no patch", tools.Refused, "the patch changed nothing. ", ""},
	} {
		first, err := r.Checkpoint.Patch(t.Context(), o, checkpoint.Patch{ID: tc.id, Text: tc.patch})
		if err != nil || first.Status != tc.status || !strings.Contains(first.Message, tc.message) {
			t.Errorf("%s: %+v, %v", tc.id, first, err)
		}
		again, err := r.Checkpoint.Patch(t.Context(), o, checkpoint.Patch{ID: tc.id, Text: tc.patch})
		if diff := cmp.Diff(first, again); err != nil || diff != "" {
			t.Errorf("%s again: %v (-first +again)\n%s", tc.id, err, diff)
		}
		if _, err := r.Checkpoint.Patch(t.Context(), o, checkpoint.Patch{ID: tc.id, Text: add("web/other")}); err == nil || !strings.Contains(err.Error(), "belongs to another patch") {
			t.Errorf("%s for another patch: %v", tc.id, err)
		}
	}
	want(t, "laid in", r.Read("web/a.html"), "x\n")
	want(t, "promoted", r.Promoted("web/a.html"), "x\n")
	want(t, "refused", r.Read("lib/a.go"), "")
	if len(r.Reported) != 1 {
		t.Errorf("%d checkpoints, want one", len(r.Reported))
	}
	r.WantRefs()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// onDisk is what the workspace holds, by path: kind of file and content. It shares no code with ours. Ignored files
// (*.log) and repositories of the agent's own are left out.
func (w *world) onDisk() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.paths.Workspace, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.paths.Workspace, path)
		switch {
		case err != nil || e.Name() == ".git" && e.IsDir():
			return cmp.Or(err, fs.SkipDir)
		case e.IsDir() || strings.HasSuffix(name, ".log"):
			return nil
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			files[name] = "120000 " + target
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := "100644 "
		if info.Mode()&0o100 != 0 {
			mode = "100755 "
		}
		content, err := os.ReadFile(path)
		files[name] = mode + string(content)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// files of a tree in the same form.
func (w *world) files(tree string) map[string]string {
	w.t.Helper()
	files := map[string]string{}
	for line := range strings.Lines(w.trusted("ls-tree", "-r", tree)) {
		fields := strings.Fields(line)
		content, err := tryGit("-C", filepath.Join(w.paths.Trusted, "repo.git"), "cat-file", "-p", fields[2])
		if err != nil {
			w.t.Fatal(err)
		}
		files[fields[3]] = fields[0] + " " + content
	}
	return files
}

func (w *world) result(id string) *protocol.RequestReport {
	for _, r := range w.intake.Reports() {
		if r.Request != nil && r.Request.ID == id {
			return r.Request
		}
	}
	return nil
}

// request sends a request and waits for its result.
func (w *world) request(r protocol.Request) protocol.RequestReport {
	w.t.Helper()
	w.intake.Order(func(o *protocol.Orders) { o.Requests = append(o.Requests, r) })
	w.eventually("request "+r.ID+" has a result", func() bool { return w.result(r.ID) != nil })
	return *w.result(r.ID)
}

func (w *world) checkpointNow(id string) protocol.CheckpointReport {
	w.t.Helper()
	if r := w.request(protocol.Request{ID: id, Kind: protocol.RequestCheckpoint}); !r.OK {
		w.t.Fatalf("checkpoint %s: %s", id, r.Message)
	}
	all := w.intake.Checkpoints()
	return all[len(all)-1]
}

func back(id, kind string, checkpoint int64, paths ...string) protocol.Request {
	return protocol.Request{ID: id, Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: kind, Checkpoint: checkpoint, Paths: paths}}
}

// wayward makes a first state (checkpoint 1, valid), a second (checkpoint 2, invalid), and goes on as it is told.
const wayward = `exec 3<&0; (while read -r line; do echo "$line" >> "$HOME/told"; done) <&3 &
	echo one > web/a.html; mkdir web/sub; echo sub > web/sub/x.html; echo noise > web/noise.log; %FIRST%
	echo two > web/a.html; rm -r web/sub; echo new > web/b.html; ln -s a.html web/link; chmod +x web/index.html
	echo evil > web/legacy/evil.html; rm README.md; mkdir web/nested; git init -q web/nested; %SECOND%`

func newWayward(t *testing.T, change ...func(*protocol.Orders)) *world {
	w := newWorld(t, "", append([]func(*protocol.Orders){seldom}, change...)...)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = strings.NewReplacer("%FIRST%", w.signalled("one")+w.waitFor("first"),
			"%SECOND%", w.signalled("two")+w.waitFor("second")).Replace(wayward)
	})
	return w
}

// signalled is the shell command that tells the test that a script has come so far.
func (w *world) signalled(name string) string {
	w.mkdir("signals")
	return "touch " + filepath.Join(w.dir, "signals", name) + "; "
}

func (w *world) waitSignal(name string) {
	w.t.Helper()
	w.eventually("the script is at "+name, func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "signals", name))
		return err == nil
	})
}

// waitStarted waits until the agent of an attempt is at a signal, and its start is in the journal: only then does it go on in its session, should
// the watchdog end.
func (w *world) waitStarted(attempt int64, name string) {
	w.t.Helper()
	w.waitSignal(name)
	w.eventually("the agent's start is noted", func() bool {
		return slices.ContainsFunc(w.intake.Reports(), func(r protocol.Report) bool { return r.Epoch == attempt && r.Status != nil && r.Status.AgentRunning })
	})
}

// toSecond takes the first checkpoint and lets the script go on to the second state.
func (w *world) toSecond() protocol.CheckpointReport {
	w.t.Helper()
	w.waitSignal("one")
	first := w.checkpointNow("c1")
	w.signal("first")
	w.waitSignal("two")
	return first
}

var firstState = map[string]string{
	".gitignore": "100644 *.log\n", "README.md": "100644 The shop.\n", "web/a.html": "100644 one\n", "web/index.html": "100644 <h1>Shop</h1>\n",
	"web/legacy/old.html": "100644 <h1>Old</h1>\n", "web/sub/x.html": "100644 sub\n",
}

// rollbacks are the kinds with what the workspace holds afterwards, beside what is in firstState (empty: nothing), and
// what the person who asked is told.
var rollbacks = map[string]struct {
	request protocol.Request
	want    map[string]string
	message []string
}{
	"full, by number": {request: back("back", protocol.RollbackFull, 1),
		message: []string{"Reverted 8 files: README.md, ", "and 3 more", "As in checkpoint login-1; the state before it is checkpoint login-"}},
	"full, to the last valid state": {request: back("back", protocol.RollbackFull, 0),
		message: []string{"Reverted 8 files: ", "As in the last valid state"}},
	"named paths": {request: back("back", protocol.RollbackPaths, 1, "web/sub/", "web/legacy", "README.md", "web/nested"),
		want:    map[string]string{"web/a.html": "100644 two\n", "web/b.html": "100644 new\n", "web/link": "120000 a.html", "web/index.html": "100755 <h1>Shop</h1>\n"},
		message: []string{"Reverted 4 files: README.md, web/legacy/evil.html, web/nested/.git, web/sub/x.html. Kept 4 other changes"}},
	"smart": {request: back("back", protocol.RollbackSmart, 0),
		want:    map[string]string{"web/a.html": "100644 two\n", "web/b.html": "100644 new\n", "web/link": "120000 a.html", "web/index.html": "100755 <h1>Shop</h1>\n", "web/sub/x.html": ""},
		message: []string{"Reverted 3 files with violations: README.md, web/legacy/evil.html, web/nested/.git. Kept 4 valid changes"}},
}

func TestRollback(t *testing.T) {
	t.Parallel()
	for name, tc := range rollbacks {
		for _, running := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", running", false: ", stopped"}[running], func(t *testing.T) {
				t.Parallel()
				w := newWayward(t)
				p := w.start(1, nil)
				w.toSecond()
				abandoned := w.onDisk()
				if running {
					w.request(tc.request)
				} else {
					w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
					wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
					w.intake.Order(func(o *protocol.Orders) { o.Requests = append(o.Requests, tc.request) })
					wantFinal(t, w.seal(2), protocol.OutcomeSuspended, protocol.ReasonSuspended)
				}
				w.wantRolledBack(*w.result("back"), tc.request.Rollback.Checkpoint, abandoned, tc.want, tc.message)
				if running {
					w.wantTold(`"type":"rollback"`, `"request_id":"back"`, `"checkpoint_id":"login-2"`, `"action_taken":"reverted"`)
					w.signal("second")
					wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
				}
			})
		}
	}
}

// wantRolledBack: the state before is a commit of the chain, the workspace is byte for byte what it should be, and that
// was captured, judged and promoted where it is valid.
func (w *world) wantRolledBack(r protocol.RequestReport, to int64, abandoned, want map[string]string, message []string) {
	w.t.Helper()
	if !r.OK {
		w.t.Fatalf("refused: %s", r.Message)
	}
	w.eventually("what is there now is captured", func() bool {
		c := w.intake.Checkpoints()
		return c[len(c)-1].Action != protocol.ActionReverted
	})
	all := w.intake.Checkpoints()
	kept, now := all[len(all)-2], all[len(all)-1]
	if kept.Action != protocol.ActionReverted || kept.Verdict != protocol.Invalid || kept.Tree == "" ||
		w.trusted("rev-parse", kept.Commit+"^{tree}") != kept.Tree {
		w.t.Errorf("the state before the rollback: %+v", kept)
	}
	if b := kept.Rollback; b == nil || b.Cause != protocol.RollbackByRequest || b.Reason != "request back" || b.To != to || now.Rollback != nil {
		w.t.Errorf("the rollback is told as %+v, and then %+v", b, now.Rollback)
	}
	if d := diff.Diff(abandoned, w.files(kept.Tree)); d != "" {
		w.t.Errorf("the state before was not kept (-on disk +kept):\n%s", d)
	}
	if d := diff.Diff(w.onDisk(), w.files(now.Tree)); d != "" {
		w.t.Errorf("the checkpoint after the rollback (-on disk +captured):\n%s", d)
	}
	state := map[string]string{}
	for _, part := range []map[string]string{firstState, want} {
		for path, content := range part {
			if state[path] = content; content == "" {
				delete(state, path)
			}
		}
	}
	if d := diff.Diff(state, w.files(now.Tree)); d != "" {
		w.t.Errorf("the workspace (-want +got):\n%s", d)
	}
	if now.Verdict == protocol.Invalid || now.Trigger != protocol.TriggerRequested ||
		w.trusted("rev-parse", protocol.RefDelivery+"^{tree}") != now.Tree {
		w.t.Errorf("the state after the rollback: %+v; delivery is %s", now, w.trusted("rev-parse", protocol.RefDelivery+"^{tree}"))
	}
	for _, part := range message {
		if !strings.Contains(r.Message, part) {
			w.t.Errorf("message %q lacks %q", r.Message, part)
		}
	}
	if w.read("workspace/web/noise.log") != "noise\n" {
		w.t.Error("an ignored file was touched")
	}
}

func (w *world) wantTold(parts ...string) {
	w.t.Helper()
	w.eventually("the agent was told "+strings.Join(parts, " "), func() bool {
		told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
		return err == nil && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(string(told), part) })
	})
}

func TestRollbackIsRefused(t *testing.T) {
	t.Parallel()
	w := newWayward(t)
	p := w.start(1, nil)
	w.toSecond()
	second := w.checkpointNow("c2")
	before := w.onDisk()
	for name, tc := range map[string]struct {
		request protocol.Request
		want    string
	}{
		"a checkpoint there never was": {back("r1", protocol.RollbackFull, 99), "checkpoint login-99 is not on the trusted volume"},
		"a path that is nowhere":       {back("r2", protocol.RollbackPaths, 1, "web/a.html", "web/typo.html"), "path web/typo.html is neither in the workspace nor in checkpoint login-1"},
		"a path outside":               {back("r3", protocol.RollbackPaths, 1, "../etc/passwd"), "neither in the workspace"},
		"no path":                      {back("r4", protocol.RollbackPaths, 1), "names no path"},
		"a kind from the future":       {back("r5", "Sideways", 1), "unknown kind of rollback"},
	} {
		if r := w.request(tc.request); r.OK || !strings.Contains(r.Message, tc.want) {
			t.Errorf("%s: %+v, want %q", name, r, tc.want)
		}
	}
	if r := w.request(back("r6", protocol.RollbackPaths, second.Sequence, "web/a.html")); !r.OK || !strings.Contains(r.Message, "Reverted 0 files") {
		t.Errorf("to what is there: %+v", r)
	}
	if all := w.intake.Checkpoints(); all[len(all)-1].Sequence != second.Sequence {
		t.Errorf("something was recorded: %+v", all[len(all)-1])
	}
	if d := diff.Diff(before, w.onDisk()); d != "" {
		t.Errorf("something was touched (-before +after):\n%s", d)
	}
	p.terminate()
	if err := p.wait(); err != nil {
		t.Fatal(err)
	}
}

// Under Shadow nothing invalid stays: the person who asks for it is told before anything is touched.
func TestShadowRefusesARollbackToWhatIsInvalid(t *testing.T) {
	t.Parallel()
	w := newWayward(t)
	p := w.start(1, nil)
	w.toSecond()
	w.checkpointNow("c2")
	w.request(back("back", protocol.RollbackFull, 1))
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	w.intake.Order(func(o *protocol.Orders) {
		shadow(o)
		o.Requests = append(o.Requests, back("forth", protocol.RollbackFull, 2))
	})
	w.seal(2)
	if r := w.result("forth"); r.OK || !strings.Contains(r.Message, "strategy Shadow") || !strings.Contains(r.Message, "README.md") {
		t.Errorf("%+v", r)
	}
}

// The next attempt starts from what a person rolled back to, valid or not, and its agent sees it.
func TestTheNextAttemptStartsFromTheRolledBackTree(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		checkpoint int64
		script     string
		outcome    string
	}{
		"a valid one":    {1, `[ "$(cat web/a.html)" = one ] || exit 3`, protocol.OutcomeDelivered},
		"an invalid one": {2, `[ -e web/legacy/evil.html ] || exit 4; [ "$(cat web/a.html)" = two ] || exit 5`, protocol.OutcomeBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWayward(t)
			p := w.start(1, nil)
			w.toSecond()
			w.checkpointNow("c2")
			w.request(back("away", protocol.RollbackFull, 1))
			w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
			wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
			w.intake.Order(func(o *protocol.Orders) {
				o.Requests = append(o.Requests, back("back", protocol.RollbackFull, tc.checkpoint))
			})
			w.seal(2)
			w.intake.Order(func(o *protocol.Orders) { o.Suspend, o.Agent.Command[2] = false, tc.script })
			if f := w.start(3, nil).finish(); f.Outcome != tc.outcome {
				t.Errorf("final %+v, want %s", f, tc.outcome)
			}
		})
	}
}

// A requested checkpoint of a stopped Feature says that nothing is new, and does not believe what nobody finished.
func TestRequestedCheckpointWithoutAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo a > web/a.html; exit 3`, seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "same", Kind: protocol.RequestCheckpoint}}
	})
	wantFinal(t, w.seal(2), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if r := w.result("same"); !r.OK || !strings.Contains(r.Message, "nothing has changed since checkpoint login-1") {
		t.Errorf("%+v", r)
	}
	w.write("workspace/web/half.html", "half")
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "half", Kind: protocol.RequestCheckpoint}}
	})
	w.seal(3)
	if r := w.result("half"); r.OK || !strings.Contains(r.Message, "perhaps half written") {
		t.Errorf("%+v", r)
	}
	w.wantVerdicts("Final Valid Promoted", "Requested Skipped None", "Requested Valid Held unsettled")
}

// rollbackPoints are all steps of a rollback after which a watchdog may end: those of the checkpoint before it, and of the one after it. What is there
// then is what was promoted last: it needs no commit. A crash in the first checkpoint leaves no second one, and one before the intent of the second
// leaves none.
var rollbackPoints = map[string][]plug{
	"before":         after("captured", "committed", "intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled"),
	"after, capture": slices.Concat(past("done journaled"), after("captured")),
	"after":          slices.Concat(past("done journaled"), after("intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled")),
}

// A watchdog that ends in the middle of a rollback has it done exactly once, running or not.
func TestACrashInARollback(t *testing.T) {
	t.Parallel()
	for name, list := range rollbackPoints {
		t.Run(name+", running", func(t *testing.T) {
			t.Parallel()
			w := newWayward(t)
			p := newPlugs(t)
			run := w.start(1, p.probe())
			w.toSecond()
			p.add(list)
			w.intake.Order(goBack)
			run = p.processes(run)
			w.eventually("the request has a result", func() bool { return w.result("back") != nil })
			w.signal("second")
			run.finish()
			w.wantBackOnce()
		})
		t.Run(name+", stopped", func(t *testing.T) {
			t.Parallel()
			w := newWayward(t)
			run := w.start(1, nil)
			w.toSecond()
			w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
			run.finish()
			w.intake.Order(goBack)
			p, attempt := newPlugs(t, list), int64(2)
			for range p.all() {
				w.begin(attempt, "seal")
				p.ended(w, watchdog.Seal(t.Context(), w.options(attempt, p.probe())))
				attempt++
			}
			w.seal(attempt)
			w.wantBackOnce()
		})
	}
}

func goBack(o *protocol.Orders) {
	o.Requests = append(o.Requests, back("back", protocol.RollbackFull, 1))
}

// wantBackOnce: the workspace is as it was at checkpoint 1, the abandoned state is kept, and one result was given.
func (w *world) wantBackOnce() {
	w.t.Helper()
	if r := w.result("back"); r == nil || !r.OK || !strings.Contains(r.Message, "Reverted 8 files") {
		w.t.Errorf("result %+v", r)
	}
	if d := diff.Diff(firstState, w.onDisk()); d != "" {
		w.t.Errorf("the workspace (-want +got):\n%s", d)
	}
	times, reverted := 0, 0
	for _, r := range w.intake.Reports() {
		if r.Request != nil && r.Request.ID == "back" {
			times++
		}
		if r.Checkpoint != nil && r.Checkpoint.Action == protocol.ActionReverted {
			reverted++
		}
	}
	if times != 1 || reverted != 1 {
		w.t.Errorf("%d results, %d reverts", times, reverted)
	}
	if !strings.Contains(w.trusted("rev-list", "--objects", protocol.RefChain), "web/legacy/evil.html") {
		w.t.Error("the abandoned state is lost")
	}
	w.wantEveryCheckpointOnce()
}

// The tree that a rollback put together is in no commit yet when the pod is lost; a tidy attempt that follows has it all the
// same.
func TestATreePutTogetherOutlivesItsPod(t *testing.T) {
	t.Parallel()
	w := newWayward(t)
	p := w.start(1, nil)
	w.toSecond()
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	p.finish()
	w.intake.Order(func(o *protocol.Orders) { o.Requests = append(o.Requests, back("back", protocol.RollbackSmart, 0)) })
	w.begin(2, "seal")
	if err := watchdog.Seal(w.t.Context(), w.options(2, pullAt("done journaled", 1))); !errors.Is(err, errPulled) {
		t.Fatalf("the seal run ended with %v", err)
	}
	w.tidy = true
	w.intake.Order(func(o *protocol.Orders) {
		o.Suspend, o.Agent.Command[2] = false, `[ "$(cat web/a.html)" = two ] && [ ! -e web/legacy/evil.html ]`
	})
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("new\n", true)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// request sends a request and waits for what becomes of it.
func (p *place) request(name string, r v1alpha1.Request) v1alpha1.ObservedRequest {
	p.Helper()
	p.change(name, func(s *v1alpha1.FeatureSpec) { s.Requests = append(s.Requests, r) })
	return p.result(name, r.ID)
}

// result waits for what becomes of a request.
func (p *place) result(name, id string) v1alpha1.ObservedRequest {
	p.Helper()
	var result v1alpha1.ObservedRequest
	p.until(name, "the result of request "+id, func(f *v1alpha1.Feature) bool {
		for _, o := range f.Status.ObservedRequests {
			if o.ID == id {
				result = o
				return true
			}
		}
		return false
	})
	return result
}

func (p *place) wantDone(r v1alpha1.ObservedRequest, parts ...string) {
	p.Helper()
	if r.State != "Done" {
		p.Fatalf("request %s %s: %s", r.ID, r.State, r.Message)
	}
	for _, part := range parts {
		if !strings.Contains(r.Message, part) {
			p.Errorf("request %s: message %q lacks %q", r.ID, r.Message, part)
		}
	}
}

// tree is what stock git makes of the files, beside those that publish put there; an empty content takes a file away.
func (p *place) tree(files map[string]string) string {
	p.Helper()
	dir := p.TempDir()
	p.git(dir, "clone", "--quiet", p.local, ".")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			p.must(os.Remove(path), "remove a file")
			continue
		}
		p.must(os.MkdirAll(filepath.Dir(path), 0o755), "make a folder")
		p.must(os.WriteFile(path, []byte(text), 0o644), "write a file")
	}
	p.git(dir, "add", "--all")
	return strings.TrimSpace(p.git(dir, "write-tree"))
}

// wantNewest waits for the newest checkpoint to have a tree: byte for byte what stock git makes of the files.
func (p *place) wantNewest(name, tree string) v1alpha1.Checkpoint {
	p.Helper()
	var newest v1alpha1.Checkpoint
	p.until(name, "a checkpoint with tree "+tree, func(*v1alpha1.Feature) bool {
		list := p.checkpoints(name)
		if len(list) > 0 {
			newest = list[len(list)-1]
		}
		return newest.Spec.Tree == tree
	})
	return newest
}

// seldomCheckpoints are taken when asked for, and at the end.
func seldomCheckpoints(s *v1alpha1.FeatureSpec) {
	allow("web/**")(s)
	s.Execution.Checkpoint.Interval = &metav1.Duration{Duration: time.Hour}
}

func rollback(id string, kind v1alpha1.RollbackKind, checkpoint string, paths ...string) v1alpha1.Request {
	return v1alpha1.Request{ID: id, Rollback: &v1alpha1.RollbackRequest{Kind: kind, Checkpoint: checkpoint, Paths: paths}}
}

func checkpointNow(id string) v1alpha1.Request {
	return v1alpha1.Request{ID: id, Checkpoint: &v1alpha1.CheckpointRequest{}}
}

// wayward makes one state, then another one that breaks rules, and in the end writes down what it finds in the workspace
// and what it was told.
const wayward = `
exec 3<&0; (while read -r line; do echo "$line" >> "$HOME/told"; done) <&3 &
if [ ! -e "$HOME/came" ]; then
touch "$HOME/came"
echo one > web/a.html; mkdir web/sub; echo sub > web/sub/x.html
until [ -e "$HOME/second" ]; do sleep 0.2; done
echo two > web/a.html; rm -r web/sub; echo new > web/b.html; mkdir docs; echo evil > docs/evil.md; rm README.md
touch "$HOME/ready"
fi
until [ -e "$HOME/end" ]; do sleep 0.2; done`

// signal makes a file in the agent's HOME that its script waits for.
func (p *place) signal(name, file string) {
	p.Helper()
	p.inAgent(name, "touch /home/agent/"+file)
}

// inAgent runs a shell command in the agent's container, and again until it works.
func (p *place) inAgent(name, command string) string {
	p.Helper()
	var out string
	p.every(time.Second, name, command, func(f *v1alpha1.Feature) bool {
		if f.Status.Job == nil || f.Status.Job.PodName == "" {
			return false
		}
		var err error
		out, _, err = k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "sh", "-c", command)
		return err == nil
	})
	return out
}

var (
	firstState  = map[string]string{"web/a.html": "one\n", "web/sub/x.html": "sub\n"}
	secondState = map[string]string{"web/a.html": "two\n", "web/b.html": "new\n", "docs/evil.md": "evil\n", "README.md": ""}
)

// toSecond takes the checkpoints name-1 (valid) and name-2 (invalid).
func (p *place) toSecond(name string) {
	p.Helper()
	p.inAgent(name, "test -e /workspace/web/sub/x.html")
	p.wantDone(p.request(name, checkpointNow("first")), name+"-1: Valid, Promoted")
	p.signal(name, "second")
	p.inAgent(name, "test -e /home/agent/ready")
	p.wantDone(p.request(name, checkpointNow("second")), name+"-2: Invalid, Held")
	p.wantNewest(name, p.tree(secondState))
}

// rolledBack is a rollback with the files that it leaves and what is said of it.
type rolledBack struct {
	request v1alpha1.Request
	files   map[string]string
	message string
}

// rollbacks leave these files, and say so.
func rollbacks(name string) []rolledBack {
	return []rolledBack{
		{
			rollback("paths", "", name+"-1", "web/sub", "README.md"),
			map[string]string{"web/a.html": "two\n", "web/b.html": "new\n", "web/sub/x.html": "sub\n", "docs/evil.md": "evil\n"},
			"Reverted 2 files: README.md, web/sub/x.html. Kept 3 other changes. As in checkpoint " + name + "-1",
		},
		{
			rollback("smart", v1alpha1.RollbackSmart, ""),
			map[string]string{"web/a.html": "two\n", "web/b.html": "new\n", "web/sub/x.html": "sub\n"},
			"Reverted 1 file with violations: docs/evil.md. Kept 3 valid changes. As in the last valid state",
		},
		{
			rollback("full", v1alpha1.RollbackFull, name+"-1"), firstState,
			"Reverted 2 files: web/a.html, web/b.html. As in checkpoint " + name + "-1",
		},
	}
}

// rollBack does each rollback, one after the other.
func (p *place) rollBack(name string) {
	p.Helper()
	for _, tc := range rollbacks(name) {
		before := p.checkpoints(name)
		p.wantDone(p.request(name, tc.request), tc.message)
		p.wantNewest(name, p.tree(tc.files))
		kept := p.checkpoints(name)[len(before)]
		if kept.Spec.Action != v1alpha1.ActionReverted || kept.Spec.Tree != before[len(before)-1].Spec.Tree {
			p.Errorf("%s: the state before is %s with tree %s and action %s", tc.request.ID, kept.Name, kept.Spec.Tree, kept.Spec.Action)
		}
	}
}

func TestRollbackOfARunningFeature(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("back", wayward, seldomCheckpoints)
	p.toSecond("back")
	for _, bad := range []v1alpha1.Request{rollback("never", "", "back-99"), rollback("other", "", "front-1"), rollback("typo", "", "back-1", "web/typo")} {
		if r := p.request("back", bad); r.State != "Failed" {
			t.Errorf("request %s %s: %s", r.ID, r.State, r.Message)
		}
	}
	p.rollBack("back")
	for file, want := range map[string]string{"web/a.html": "one", "web/sub/x.html": "sub", "README.md": "# Shop"} {
		if got := strings.TrimSpace(p.inAgent("back", "cat /workspace/"+file)); got != want {
			t.Errorf("the agent finds %s to be %q", file, got)
		}
	}
	if told := p.inAgent("back", `grep '"request_id":"full"' /home/agent/told`); !strings.Contains(told, `"type":"rollback"`) {
		t.Errorf("the agent was told %q", told)
	}
	p.signal("back", "end")
	f := p.phase("back", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.wantDelivered(f, firstState)
	p.wantPrivateChain("back")
	if r := p.request("back", rollback("late", "", "back-1")); r.State != "Failed" || !strings.Contains(r.Message, "Delivered") {
		t.Errorf("a rollback of what is delivered: %s %s", r.State, r.Message)
	}
}

// wantDelivered: the branch on the server holds exactly the files.
func (p *place) wantDelivered(f *v1alpha1.Feature, files map[string]string) {
	p.Helper()
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	got := strings.TrimSpace(p.git(mirror, "rev-parse", f.Status.Branch+"^{tree}"))
	if want := p.tree(files); got != want {
		p.Errorf("branch %s has tree %s, want %s", f.Status.Branch, got, want)
	}
}

// A stopped Feature is rolled back by a seal Job, stays what it was, and goes on from there.
func TestRollbackOfAStoppedFeature(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 6*time.Minute)
	p.feature("halted", wayward, seldomCheckpoints)
	p.toSecond("halted")
	p.signal("halted", "end")
	p.phase("halted", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	p.wantDone(p.request("halted", checkpointNow("same")), "nothing has changed since checkpoint halted-3")
	p.rollBack("halted")
	f := p.phase("halted", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	if f.Status.Failures != 0 || f.Status.Job.Run != v1alpha1.RunKindSeal || !f.Status.Job.Errand {
		t.Errorf("after the rollbacks: %d failures, last run %+v", f.Status.Failures, f.Status.Job)
	}
	p.change("halted", func(s *v1alpha1.FeatureSpec) {
		s.Requests = append(s.Requests, v1alpha1.Request{ID: "again", Retry: &v1alpha1.RetryRequest{}})
	})
	f = p.phaseAgain("halted", v1alpha1.PhaseDelivered)
	p.wantDelivered(f, firstState)
}

// phaseAgain waits for a phase of a Feature that is in a terminal one now.
func (p *place) phaseAgain(name string, phase v1alpha1.Phase) *v1alpha1.Feature {
	p.Helper()
	return p.until(name, fmt.Sprint(phase), func(f *v1alpha1.Feature) bool { return f.Status.Phase == phase })
}

// What is ready is rolled back: another head is ready then, and nothing is pushed that was not approved.
func TestRollbackOfAReadyFeature(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("ripe", `echo one > web/a.html; until [ -e "$HOME/second" ]; do sleep 0.2; done; echo two > web/a.html`, func(s *v1alpha1.FeatureSpec) {
		s.Delivery = &v1alpha1.Delivery{Approval: v1alpha1.ApprovalRequired}
	})
	p.until("ripe", "a checkpoint of the first state", func(f *v1alpha1.Feature) bool { return f.Status.Checkpoints.Valid > 0 })
	p.signal("ripe", "second")
	before := p.phase("ripe", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
	p.wantDone(p.request("ripe", rollback("back", "", "ripe-1")), "Reverted 1 file: web/a.html")
	f := p.until("ripe", "another head", func(f *v1alpha1.Feature) bool {
		return f.Status.Head != before.Status.Head && f.Status.Job.EndTime != nil
	})
	p.change("ripe", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = f.Status.Head })
	p.phase("ripe", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.wantDelivered(f, map[string]string{"web/a.html": "one\n"})
}

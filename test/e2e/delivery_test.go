// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

func quickCheckpoints() *v1alpha1.Execution {
	return &v1alpha1.Execution{Checkpoint: &v1alpha1.CheckpointTriggers{
		Interval: &metav1.Duration{Duration: 2 * time.Second}, MinInterval: &metav1.Duration{Duration: 500 * time.Millisecond},
	}}
}

func allow(areas ...string) func(*v1alpha1.FeatureSpec) {
	return func(s *v1alpha1.FeatureSpec) { s.Plan = &v1alpha1.Plan{AllowedAreas: areas} }
}

// history returns every path and every line of content that any commit of the branch has and main has not.
func (p *place) history(branch string) string {
	p.Helper()
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	var all, ids strings.Builder
	seen := map[string]bool{}
	for commit := range strings.FieldsSeq(p.git(mirror, "rev-list", "main.."+branch)) {
		for path := range strings.Lines(p.git(mirror, "ls-tree", "-r", commit)) {
			all.WriteString(path)
			if id := strings.Fields(path)[2]; !seen[id] {
				seen[id] = true
				ids.WriteString(id + "\n")
			}
		}
	}
	// One process for all of them: some branches have tens of thousands.
	contents := exec.CommandContext(p.ctx, "git", "cat-file", "--batch", "--buffer")
	contents.Dir, contents.Stdin = mirror, strings.NewReader(ids.String())
	out, err := contents.Output()
	p.must(err, "read the contents of branch %s", branch)
	all.Write(out)
	return all.String()
}

func TestDelivered(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("login", `
[ -z "$(git status --porcelain)" ]
git log --oneline | grep -q 'Open the shop'
echo "$TIDEWAITER_TASK" > web/task.txt
sed -i 's/shop/shop with login/' web/index.html
chmod +x run.sh
mkdir build && echo object > build/out.o
git diff --stat | grep -q index.html
sleep 3
echo '<form>' > web/login.html`, func(s *v1alpha1.FeatureSpec) {
		allow("web/**", "run.sh")(s)
		s.Delivery = &v1alpha1.Delivery{Author: &v1alpha1.CommitAuthor{Name: "Shop Agent", Email: "agent@example.com"}}
	})
	f := p.phase("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	commit, err := gitServer.Branch(p.ctx, p.repository, f.Status.Branch)
	p.must(err, "ask the server for the branch")
	if commit == "" || commit != f.Status.Head {
		t.Errorf("branch %s on the server is %q, status.head is %q", f.Status.Branch, commit, f.Status.Head)
	}
	got := p.history(f.Status.Branch)
	for _, want := range []string{"shop with login", "<form>", "100755 blob"} {
		if !strings.Contains(got, want) {
			t.Errorf("the branch lacks %q", want)
		}
	}
	if strings.Contains(got, "out.o") {
		t.Error("the branch holds a file that the base revision ignores")
	}
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	if author := p.git(mirror, "log", "-1", "--format=%an <%ae>", f.Status.Branch); !strings.Contains(author, "Shop Agent <agent@example.com>") {
		t.Errorf("author is %s", author)
	}
	if body := p.git(mirror, "log", "-1", "--format=%B", f.Status.Branch); !strings.Contains(body, "Tidewaiter-Checkpoint: "+f.Status.LastValidCheckpoint) {
		t.Errorf("commit message does not name its checkpoint %s:\n%s", f.Status.LastValidCheckpoint, body)
	}
	if out := p.git(mirror, "fsck", "--strict"); strings.Contains(out, "error") {
		t.Errorf("git fsck: %s", out)
	}
}

// intrusion does what breaks rules, each by one system call: no step relies on one before it that may have been taken back meanwhile. The base
// ignores build.
const intrusion = `
echo good > web/good.html
mkdir -p build .github/workflows; git init --quiet build/nested && echo smuggled > build/nested/file
echo 'on: push # smuggled' > build/ci.yml; mv build/ci.yml .github/workflows/ci.yml
ln -s /etc/passwd web/passwd
mv build/nested web/nested
mkfifo web/pipe
`

func TestInvalidIsHeldUnderDirect(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("intruder", intrusion, allow("web/**"))
	f := p.phase("intruder", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	message := cluster.Message(f, v1alpha1.ConditionSucceeded)
	if !strings.Contains(message, "retry") {
		t.Errorf("the message does not say what to do: %s", message)
	}
	p.wantViolations("intruder", v1alpha1.ActionHeld)
	p.wantNothingSmuggled(f)
}

func TestInvalidIsRevertedUnderShadow(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("intruder", intrusion+"until [ ! -L web/passwd ] && [ ! -e web/nested ] && [ ! -e web/pipe ]; do sleep 0.2; done; echo gone > web/seen.html", func(s *v1alpha1.FeatureSpec) {
		allow("web/**")(s)
		s.Execution.Strategy = v1alpha1.StrategyShadow
	})
	f := p.until("intruder", "an end", func(f *v1alpha1.Feature) bool {
		return f.Status.Phase == v1alpha1.PhaseDelivered || f.Status.Phase == v1alpha1.PhaseBlocked
	})
	p.wantViolations("intruder", v1alpha1.ActionReverted)
	p.wantNothingSmuggled(f)
	if f.Status.Phase != v1alpha1.PhaseDelivered {
		t.Errorf("after the workspace went back and the agent wrote only what is allowed: want Delivered, is %s: %s",
			f.Status.Phase, cluster.Message(f, v1alpha1.ConditionSucceeded))
	} else if !strings.Contains(p.history(f.Status.Branch), "gone") {
		t.Error("the agent did not see its symlink go")
	}
}

func (p *place) wantViolations(name string, action v1alpha1.Action) {
	p.Helper()
	rules, acted := map[string]bool{}, false
	for _, c := range p.checkpoints(name) {
		if c.Spec.Verdict == v1alpha1.VerdictInvalid {
			acted = acted || c.Spec.Action == action
			if c.Spec.DeliveryCommit != "" {
				p.Errorf("invalid checkpoint %s was promoted", c.Name)
			}
		}
		for _, v := range c.Spec.Violations {
			rules[v.Path] = true
		}
	}
	if !acted {
		p.Errorf("no invalid checkpoint was %s", action)
	}
	for _, path := range []string{".github/workflows/ci.yml", "web/passwd", "web/nested/.git", "web/pipe"} {
		if !rules[path] {
			p.Errorf("no violation names %s (have %v)", path, rules)
		}
	}
}

func (p *place) wantNothingSmuggled(f *v1alpha1.Feature) {
	p.Helper()
	commit, err := gitServer.Branch(p.ctx, p.repository, f.Status.Branch)
	p.must(err, "ask the server for the branch")
	if commit != "" && strings.Contains(p.history(f.Status.Branch), "smuggled") {
		p.Error("a rejected byte is reachable from the pushed branch")
	}
	if commit != "" && f.Status.Phase == v1alpha1.PhaseBlocked {
		p.Errorf("a blocked Feature has a branch on the server: %s", commit)
	}
}

func TestAuditBlocksNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	policy := &v1alpha1.SupervisorPolicy{}
	p.must(k8s.Get(p.ctx, client.ObjectKey{Namespace: p.project, Name: cluster.GitPolicy}, policy), "read the policy")
	before := policy.DeepCopy()
	policy.Spec.Enforcement = v1alpha1.EnforcementAudit
	p.must(k8s.Patch(p.ctx, policy, client.MergeFrom(before)), "turn the policy into an audit")
	p.feature("audited", `echo outside > README.md`, allow("web/**"))
	f := p.phase("audited", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if !strings.Contains(p.history(f.Status.Branch), "outside") {
		t.Error("the audit blocked the change")
	}
	for _, c := range p.checkpoints("audited") {
		if c.Spec.Verdict == v1alpha1.VerdictInvalid && c.Spec.Audit && c.Spec.Action == v1alpha1.ActionPromoted {
			return
		}
	}
	t.Error("no checkpoint tells of the violation")
}

// endless is a shell function of agents whose first attempt is to be stopped by the test, however late that comes.
const endless = `first_never_ends() { while [ "$TIDEWAITER_ATTEMPT" = 1 ]; do sleep 0.2; done; }
`

func TestSUP6PodLostIsResumed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("survivor", endless+`for i in $(seq 1 10); do [ -e "web/$i" ] || sleep 1; echo "$i" > "web/$i"; done; first_never_ends`, allow("web/**"))
	f := p.until("survivor", "a valid checkpoint", func(f *v1alpha1.Feature) bool {
		return f.Status.Checkpoints.Valid > 0 && f.Status.Job != nil && f.Status.Job.PodName != ""
	})
	p.must(k8s.Clientset.CoreV1().Pods(p.project).Delete(p.ctx, f.Status.Job.PodName, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "delete the pod")
	f = p.phase("survivor", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Attempt < 2 || f.Status.Failures != 0 {
		t.Errorf("want a second attempt that is no failure, have attempt %d with %d failures", f.Status.Attempt, f.Status.Failures)
	}
	p.wantPrivateChain("survivor")
}

// wantPrivateChain checks that each Checkpoint names the one before it and that numbers are used once.
func (p *place) wantPrivateChain(name string) {
	p.Helper()
	for _, c := range p.checkpoints(name) {
		// The one before it may not be kept any more.
		if want := fmt.Sprintf("%s-%d", name, c.Spec.Sequence-1); c.Spec.Sequence > 1 && c.Spec.Previous != want {
			p.Errorf("checkpoint %s names %q as the one before it, want %q", c.Name, c.Spec.Previous, want)
		}
	}
}

func TestTwoFeaturesOnOneRepository(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	for _, name := range []string{"left", "right"} {
		p.feature(name, `sleep 2; echo "$TIDEWAITER_FEATURE" > web/$(basename "$TIDEWAITER_FEATURE").html`, allow("web/**"))
	}
	for _, name := range []string{"left", "right"} {
		f := p.phase(name, v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
		if got := p.history(f.Status.Branch); !strings.Contains(got, name+".html") {
			t.Errorf("branch %s lacks %s.html", f.Status.Branch, name)
		}
	}
}

func TestTasksRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("steps", `echo "$TIDEWAITER_TASK: ${TIDEWAITER_INSTRUCTIONS%%$'\n'*}" >> web/steps.txt`, func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{
			{Name: "first", Tasks: []v1alpha1.Task{{Name: "a", Instructions: "begin"}, {Name: "b", Instructions: "go on"}}},
			{Name: "second", Tasks: []v1alpha1.Task{{Name: "c", Instructions: "end"}}},
		}}
	})
	f := p.phase("steps", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	// Behind the instructions stands where the agent may write.
	if got, want := p.history(f.Status.Branch), "first/a: begin\nfirst/b: go on\nsecond/c: end\n"; !strings.Contains(got, want) {
		t.Errorf("steps.txt is not %q in:\n%s", want, got)
	}
}

func TestLateApprovalThroughSealJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("approved", `echo page > web/page.html`, func(s *v1alpha1.FeatureSpec) {
		s.Delivery = &v1alpha1.Delivery{Approval: v1alpha1.ApprovalRequired}
	})
	f := p.phase("approved", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
	if commit, err := gitServer.Branch(p.ctx, p.repository, f.Status.Branch); err != nil || commit != "" {
		t.Fatalf("before the approval the server has %q (%v)", commit, err)
	}
	p.change("approved", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = strings.Repeat("0", 40) })
	p.phase("approved", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalMismatch)
	p.change("approved", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = f.Status.Head })
	done := p.phase("approved", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if commit, err := gitServer.Branch(p.ctx, p.repository, f.Status.Branch); err != nil || commit != f.Status.Head {
		t.Errorf("the server has %q (%v), approved was %s", commit, err, f.Status.Head)
	}
	if done.Status.Job == nil || done.Status.Job.Run != v1alpha1.RunKindSeal {
		t.Errorf("the approved commit was not delivered by a seal Job: %+v", done.Status.Job)
	}
}

func TestPushConflictOverwritesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.git(p.local, "-c", "user.name=Else", "-c", "user.email=else@example.com", "commit", "--quiet", "--allow-empty", "--message", "Somebody else's")
	_, err := gitServer.Git(p.ctx, p.local, p.repository, "push", "--quiet", "REMOTE", "HEAD:refs/heads/tidewaiter/late")
	p.must(err, "push somebody else's branch")
	before, err := gitServer.Branch(p.ctx, p.repository, "tidewaiter/late")
	p.must(err, "ask the server for the branch")
	p.feature("late", `echo page > web/page.html`, nil)
	f := p.phase("late", v1alpha1.PhaseBlocked, v1alpha1.ReasonPushConflict)
	after, err := gitServer.Branch(p.ctx, p.repository, "tidewaiter/late")
	p.must(err, "ask the server for the branch")
	if before != after {
		t.Errorf("the branch on the server moved from %s to %s", before, after)
	}
	if f.Status.Head == "" {
		t.Error("the promoted work is lost: status.head is empty")
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("paused", endless+`for i in $(seq 1 8); do [ -e "web/$i" ] || sleep 1; echo "$i" > "web/$i"; done; first_never_ends`, nil)
	p.until("paused", "a valid checkpoint", func(f *v1alpha1.Feature) bool { return f.Status.Checkpoints.Valid > 0 })
	p.change("paused", func(s *v1alpha1.FeatureSpec) { s.Suspend = true })
	f := p.phase("paused", v1alpha1.PhaseSuspended, v1alpha1.ReasonSuspended)
	err := cluster.Until(p.ctx, "the pod to go", func(ctx context.Context) (bool, error) {
		pods, err := k8s.Clientset.CoreV1().Pods(p.project).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == 0, err
	})
	p.must(err, "wait")
	p.change("paused", func(s *v1alpha1.FeatureSpec) { s.Suspend = false })
	done := p.phase("paused", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if done.Status.Attempt <= f.Status.Attempt || done.Status.Failures != 0 {
		t.Errorf("want a new attempt that is no failure, have attempt %d with %d failures", done.Status.Attempt, done.Status.Failures)
	}
}

func TestCheckpointOnRequest(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("asked", `echo page > web/page.html; until [ -e "$HOME/end" ]; do sleep 0.2; done`, func(s *v1alpha1.FeatureSpec) {
		s.Execution.Checkpoint.Interval = &metav1.Duration{Duration: time.Hour}
	})
	p.inAgent("asked", "test -s /workspace/web/page.html")
	p.change("asked", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "now", Checkpoint: &v1alpha1.CheckpointRequest{}}}
	})
	p.until("asked", "the request to be done", func(f *v1alpha1.Feature) bool {
		for _, r := range f.Status.ObservedRequests {
			if r.ID == "now" && r.State == "Done" {
				return true
			}
		}
		return false
	})
	if list := p.checkpoints("asked"); len(list) == 0 || list[0].Spec.Trigger != "Requested" {
		t.Errorf("no requested checkpoint in %d", len(list))
	}
}

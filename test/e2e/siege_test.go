// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// siege is an agent that tries, one after the other, everything that once stopped a checkpoint, the runner or the
// watchdog. It waits after each attempt until checkpoints have met it, and cleans up. What succeeds although it must
// not is a line that begins with GOT in web/tried.txt.
const siege = `
cd /workspace
note() { echo "$*" >> web/tried.txt; }
met() { sleep 6; note "tried $1"; } # several checkpoints

# System calls that reach another process of the same user: each thread of PID 1.
case $(uname -m) in
x86_64) prlimit=302 scheduler=144 affinity=203 attributes=314 priority=141 io=251 ;;
aarch64) prlimit=261 scheduler=119 affinity=122 attributes=274 priority=140 io=30 ;;
esac
call() { # call NAME NUMBER ARGUMENTS…: a Perl expression each
  local name=$1; shift
  perl -e "exit(syscall($(IFS=,; echo "$*")) == -1)" && note "GOT $name" || true
}
for thread in $(ls /proc/1/task); do
  for limit in 0 6 7 8 11; do call "a limit of thread $thread" $prlimit "$thread" $limit 'pack("QQ",3,3)' 0; done
  call "the policy of thread $thread" $scheduler "$thread" 5 'pack("L",0)'
  call "the processors of thread $thread" $affinity "$thread" 8 'pack("Q",1)'
  call "the attributes of thread $thread" $attributes "$thread" 'pack("LLQlLQQQ",48,5,0,0,0,0,0,0)' 0
  call "the priority of thread $thread" $priority 0 "$thread" 19
  call "the disk priority of thread $thread" $io 1 "$thread" '3<<13'
done
call "the priority of the user" $priority 2 0 19
call "the disk priority of the user" $io 3 1000 '3<<13'
for signal in TERM KILL STOP; do kill -$signal 1 2> /dev/null && note "GOT signal $signal to PID 1" || true; done
# Handles of PID 1, signals with data of one's own, and signals for the owner of a file.
case $(uname -m) in
x86_64) queue=129 tqueue=297 tkill=200 tgkill=234 ;;
aarch64) queue=138 tqueue=240 tkill=130 tgkill=131 ;;
esac
perl -e 'my $fd = syscall(434, 1, 0); exit($fd == -1 || syscall(424, $fd, 15, 0, 0) == -1)' && note "GOT a signal by a handle of PID 1" || true
perl -e 'sysopen(my $h, "/proc/1", 0200000) or exit 1; exit(syscall(424, fileno($h), 15, 0, 0) == -1)' && note "GOT a signal by a folder of PID 1" || true
perl -e 'pipe(my $r, my $w); fcntl($r, 8, 1); exit(!fcntl($r, 10, 15))' && note "GOT a signal of one's own choice by the owner of a file" || true
perl -e 'pipe(my $r, my $w); fcntl($r, 8, 1); fcntl($r, 4, 020000 | 04000); syswrite($w, "x") for 1..100' || true
for thread in $(ls /proc/1/task); do
  for signal in 2 3 15 28; do # these are sent, and PID 1 obeys them only from outside
    perl -e "syscall($tkill, $thread, $signal); syscall($tgkill, 1, $thread, $signal)"
  done
  call "a queued signal to thread $thread" $queue "$thread" 15 'pack("x128")'
  call "a queued signal to thread $thread of PID 1" $tqueue 1 "$thread" 15 'pack("x128")'
done
note "tried signals to PID 1"
note control; call control $prlimit 0 7 0 'my $old = "\0" x 16'
met "the limits of PID 1"

head -c 6000000 /dev/urandom | base64 -w 0 > web/data.txt
met "a line of 8 MB"; rm web/data.txt

head -c 8G /dev/zero > web/full.txt 2>/dev/null || true
met "a full volume"; rm web/full.txt

mkdir web/closed; echo x > web/closed/x; chmod 000 web/closed; echo x > web/closed.txt; chmod 000 web/closed.txt
met "unreadable paths"; chmod 700 web/closed web/closed.txt; rm -r web/closed web/closed.txt

name=$(printf 'n%.0s' $(seq 300)); touch "web/$name" 2>/dev/null && note "GOT a name of 300 bytes"
deep=$(printf 'd%.0s' $(seq 200))
( cd web; for i in $(seq 40); do mkdir "$deep" && cd "$deep"; done; touch end )
met "a path of 8,000 bytes"; rm -rf "web/$deep"

truncate -s 1T web/sparse.txt; truncate -s 15T web/sparser.txt
met "sparse files"; rm web/sparse.txt web/sparser.txt

perl -e 'for my $d (1..400) { mkdir "web/m$d"; for my $f (1..1000) { open(my $h, ">", "web/m$d/$f") or die $!; print $h "$d $f\n"; close $h } }'
sleep 20; met "400,000 files"; rm -rf web/m*
`

// TestSiege: one agent tries everything in one Feature, an editor of its project tries to take the agent out of supervision, and the Git server needs
// longer for the push than many servers do for anything. Nothing is stopped or killed by them, nothing that they must not do succeeds, and what the
// agent leaves at the end is what is delivered.
func TestSiege(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 32*time.Minute) // 4 where nothing else runs; 400,000 files take long on a busy disk
	p.feature("siege", patches+`
case "$TIDEWAITER_TASK" in
siege/patches)
  new "web/$(printf 'n%.0s' $(seq 300))" long > change
  patch long change > answer && grep -q '"status":"refused"' answer
  printf 'diff --git a/web/link b/web/link\nnew file mode 120000\n--- /dev/null\n+++ b/web/link\n@@ -0,0 +1 @@\n+a\000b\n\\ No newline at end of file\n' > change
  patch nul change > answer && grep -q '"status":"refused"' answer || true
  new web/after.html 'after the patches' > change
  patch after change | grep -q '"status":"applied"'
  until [ -e "$HOME/patches" ]; do sleep 0.2; done # the mode is changed meanwhile
  mcpagent task_complete summary=tried ;;
siege/files)`+siege+`
  echo 'after the siege' > web/end.html ;;
esac`, func(s *v1alpha1.FeatureSpec) {
		s.Execution.Mode = v1alpha1.ModeDeterministic
		s.ActiveDeadline = &metav1.Duration{Duration: 30 * time.Minute}
		s.MaxRetries = ptr.To[int32](0)
		s.Workspace.Size = ptr.To(resource.MustParse("6Gi"))
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, Milestones: []v1alpha1.Milestone{{
			Name: "siege", Tasks: []v1alpha1.Task{
				{Name: "patches", Instructions: "Send patches."}, {Name: "files", Instructions: "Write files."},
			},
		}}}
	})
	p.switchDuring("siege", "siege/patches", v1alpha1.ModeInteractive)
	p.must(gitServer.Hook(p.ctx, p.repository, "#!/bin/sh\nsleep 75\n"), "slow the Git server")
	p.sabotage("siege")
	broken := p.rulesBroken("siege")
	f := p.phase("siege", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	// One attempt for each mode: nothing was lost or restarted.
	if f.Status.Attempt != 2 || f.Status.Failures != 0 || f.Status.Lost != 0 {
		t.Errorf("attempt %d, failures %d, lost %d", f.Status.Attempt, f.Status.Failures, f.Status.Lost)
	}
	got := p.history(f.Status.Branch)
	for _, want := range []string{
		"after the patches", "after the siege", "control", "tried signals to PID 1", "tried the limits of PID 1", "tried a line of 8 MB", "tried a full volume",
		"tried unreadable paths", "tried a path of 8,000 bytes", "tried sparse files", "tried 400,000 files",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the branch lacks %q", want)
		}
	}
	if !strings.Contains(got, "GOT control") {
		t.Error("the agent's system calls did not even reach itself: its attempts prove nothing")
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "GOT ") && line != "GOT control\n" {
			t.Errorf("the agent got somewhere: %s", line)
		}
	}
	for _, want := range []string{"file-size", "unreadable", "malformed-entry"} {
		if !slices.Contains(broken, want) {
			t.Errorf("no checkpoint named rule %s; those that were named: %q", want, broken)
		}
	}
	t.Logf("%d checkpoints, %d valid, %d invalid; rules broken: %q", f.Status.Checkpoints.Total, f.Status.Checkpoints.Valid,
		f.Status.Checkpoints.Invalid, broken)
}

// rulesBroken follows a Feature to its end and returns the rules that its checkpoints named. Few Checkpoints are kept, so
// they are looked at on the way.
func (p *place) rulesBroken(feature string) []string {
	p.Helper()
	var rules []string
	p.until(feature, "the end", func(f *v1alpha1.Feature) bool {
		for _, c := range p.checkpoints(feature) {
			for _, v := range c.Spec.Violations {
				if !slices.Contains(rules, v.Rule) {
					rules = append(rules, v.Rule)
				}
			}
		}
		return f.Status.Phase == v1alpha1.PhaseDelivered || f.Status.Phase == v1alpha1.PhaseFailed || f.Status.Phase == v1alpha1.PhaseBlocked
	})
	return rules
}

// sabotage is done by an editor of the project to the agent at the task siege/files: admission refuses it all, by name.
func (p *place) sabotage(feature string) {
	p.Helper()
	f := p.until(feature, "the agent at siege/files", func(f *v1alpha1.Feature) bool {
		return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.AgentRunning && f.Status.Run.Report.Task == "siege/files"
	})
	as := rest.CopyConfig(k8s.Config)
	user := "system:serviceaccount:" + p.project + ":editor"
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.project, "system:authenticated"}}
	editor, err := client.New(as, client.Options{Scheme: k8s.Scheme()})
	p.must(err, "make a client")
	p.must(k8s.Create(p.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.project, Name: "editor"}},
	}), "make an editor")
	p.must(cluster.Until(p.ctx, "the editor's role to be known", func(ctx context.Context) (bool, error) {
		err := editor.List(ctx, &batchv1.JobList{}, client.InNamespace(p.project))
		return err == nil, ignoreForbidden(err)
	}), "list Jobs")
	var pods corev1.PodList
	p.must(k8s.List(p.ctx, &pods, client.InNamespace(p.project), client.MatchingLabels{v1alpha1.LabelFeature: f.Name}), "list pods")
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: metav1.GetControllerOf(pod).Name}}
		merge := func(o client.Object, patch string) error {
			return editor.Patch(p.ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
		}
		for what, err := range map[string]error{
			"delete the Job and leave its pod":      editor.Delete(p.ctx, job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)),
			"take the pod from its Job":             merge(pod, `{"metadata":{"ownerReferences":null}}`),
			"take the pod from its Feature":         merge(pod, `{"metadata":{"labels":{"`+v1alpha1.LabelFeature+`":null}}}`),
			"keep the Job for ever":                 merge(job, `{"metadata":{"finalizers":["example.com/mine"]}}`),
			"delete the pod while it runs":          editor.Delete(p.ctx, pod.DeepCopy(), client.GracePeriodSeconds(0)),
			"suspend the Job":                       merge(job, `{"spec":{"suspend":true}}`),
			"take the Job from its Feature":         merge(job, `{"metadata":{"ownerReferences":null}}`),
			"end the pod before its work is sealed": merge(pod, `{"spec":{"activeDeadlineSeconds":1}}`),
		} {
			if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'tidewaiter-") {
				p.Errorf("an editor may %s: %v", what, err)
			}
		}
	}
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

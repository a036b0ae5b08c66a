// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}

// story is one Feature of the demo and what must be true of it in the end.
type story struct {
	name, about string
	script      string
	// plan has the tasks that a model divides the work into, which may name the gates; empty if none does.
	plan  []plannedTask
	gates []v1alpha1.Gate
	// reviewers that look at the work; nil if none does.
	reviewers *v1alpha1.ReviewerRules
	// allowed areas: none is another story's too, because agents hear of what is delivered to their areas.
	allowed []string
	// mode that the agent works in; Interactive when empty.
	mode v1alpha1.ExecutionMode
	// meanwhile is what happens to it while it runs; it is asked again until it says that it has.
	meanwhile func(ctx context.Context, d *demo, f *v1alpha1.Feature) (bool, error)
	check     func(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error
}

// plannedTask is one of a plan.
type plannedTask struct {
	name, about, script string
	gates               []string
}

var stories = []story{
	{
		name:    "years",
		about:   "puts a year into the copyright line of every Go file, inside its areas",
		allowed: []string{"internal/**", "controllers/**", "api/**", "cmd/**"},
		script: `git status --short
git ls-files 'internal/*.go' 'controllers/*.go' 'api/*.go' 'cmd/*.go' | xargs -n 25 sh -c '
  perl -pi -e "s{^// Copyright The Tidewaiter Authors\.}{// Copyright 2026 The Tidewaiter Authors.}" "$@"; sleep 0.3' sh
git diff --shortstat
git log --oneline -1`,
		check: delivered,
	},
	{
		name:    "intruder",
		about:   "works inside its areas too, but also plants a workflow, a symlink to /etc/passwd and a nested repository",
		allowed: []string{"internal/**"},
		script: `echo '// harmless' >> internal/core/protocol/paths.go
mkdir -p .github/workflows && echo 'on: push' > .github/workflows/exfiltrate.yml
ln -s /etc/passwd internal/passwd
git init --quiet internal/hidden && echo secret > internal/hidden/file`,
		check: held,
	},
	{
		name:      "survivor",
		about:     "writes a file a second; its pod is deleted in the middle",
		allowed:   []string{"docs/tour/page-*.md"},
		meanwhile: losePod,
		script: `mkdir -p docs/tour
for i in $(seq 1 12); do
  [ -e "docs/tour/page-$i.md" ] || sleep 1
  echo "Page $i" > "docs/tour/page-$i.md"
done
while [ "$TIDEWAITER_ATTEMPT" = 1 ]; do sleep 0.2; done`,
		check: deliveredAgain,
	},
	{
		name:      "regret",
		about:     "writes a good plan, then ruins it and removes the README; a user rolls it back, and the agent continues from there",
		allowed:   []string{"docs/plan/**"},
		meanwhile: rollBack,
		script: `mkdir -p docs/plan && echo 'A good plan.' > docs/plan/plan.md
until [ -e "$HOME/go" ]; do sleep 0.2; done
rm README.md; echo 'All of it is wrong.' > docs/plan/plan.md # in this order: a checkpoint between them is not valid either
while read -r line; do case "$line" in *'"type":"rollback"'*) break ;; esac; done
echo "Told on standard input: $line"
[ -e README.md ]
echo 'And what follows from it.' >> docs/plan/plan.md`,
		check: rolledBack,
	},
	{
		name:    "patcher",
		about:   "works in Deterministic mode: it cannot write, and the watchdog checks each of its patches before it applies it",
		allowed: []string{"docs/tour/patches.md"},
		mode:    v1alpha1.ModeDeterministic,
		script: `cd "$HOME"
new() { printf 'diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n' "$1" "$1" "$1" "$2"; }
if { echo direct > /workspace/docs/direct.md; } 2> error; then exit 1; fi
cat error
new docs/elsewhere.md 'Outside of its area.' > patch
mcpagent repo_apply_patch operation_id=one patch=@patch | tee answer
grep -q '"status":"refused"' answer
new docs/tour/patches.md 'The watchdog checked this line before it applied it.' > patch
mcpagent repo_apply_patch operation_id=two patch=@patch | tee answer
grep -q '"status":"applied"' answer
mcpagent task_complete summary='The tour has a page on patches.'`,
		check: patched,
	},
}

// line says what the story is about.
func (s story) line() string { return fmt.Sprintf("%-12s %s", s.name, s.about) }

func (s story) feature(d *demo) *v1alpha1.Feature {
	f := d.Script(project, s.name, d.git.URL(repository), s.script)
	f.Spec.Prompt = strings.ToUpper(s.about[:1]) + s.about[1:] + "."
	f.Spec.Plan = &v1alpha1.Plan{AllowedAreas: s.allowed}
	f.Spec.Execution = &v1alpha1.Execution{Checkpoint: &v1alpha1.CheckpointTriggers{
		Interval: &metav1.Duration{Duration: 3 * time.Second}, MinInterval: &metav1.Duration{Duration: time.Second},
	}, Mode: s.mode}
	if slices.ContainsFunc(agents, func(a story) bool { return a.name == s.name }) {
		return s.withAgent(d, f)
	}
	return f
}

// delivered checks that the branch on the server is the promoted head and shows it.
func delivered(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	if f.Status.Phase != v1alpha1.PhaseDelivered {
		return fmt.Errorf("want Delivered, is %s: %s", f.Status.Phase, cluster.Message(f, v1alpha1.ConditionSucceeded))
	}
	commit, err := git(ctx, mirror, "rev-parse", "refs/heads/"+f.Status.Branch)
	if err != nil {
		return err
	}
	if strings.TrimSpace(commit) != f.Status.Head {
		return fmt.Errorf("branch %s on the server is %s, status.head is %s", f.Status.Branch, commit, f.Status.Head)
	}
	log, err := git(ctx, mirror, "log", "--format=%h %an  %s", "--shortstat", "main.."+f.Status.Branch)
	if err != nil {
		return err
	}
	d.progress.say("branch %s on the server:", f.Status.Branch)
	d.progress.verbatim(log)
	return nil
}

func deliveredAgain(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	if f.Status.Attempt < 2 {
		return fmt.Errorf("want a second attempt after the pod was lost, is attempt %d", f.Status.Attempt)
	}
	d.progress.say("attempt %d continued where the lost one ended", f.Status.Attempt)
	return delivered(ctx, d, f, mirror)
}

// rollbackID is the request that rollBack sends.
const rollbackID = "back"

// rolledBack checks that the request was done and that the branch holds what followed from the rolled back state.
func rolledBack(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	done := ""
	for _, r := range f.Status.ObservedRequests {
		if r.ID == rollbackID && r.State == "Done" {
			done = r.Message
		}
	}
	if done == "" {
		return fmt.Errorf("the rollback is not done: %+v", f.Status.ObservedRequests)
	}
	d.progress.say("result of the rollback: %s", done)
	plan, err := git(ctx, mirror, "show", f.Status.Branch+":docs/plan/plan.md")
	if err != nil {
		return err
	}
	if want := "A good plan.\nAnd what follows from it.\n"; plan != want {
		return fmt.Errorf("the plan is %q, want %q", plan, want)
	}
	return delivered(ctx, d, f, mirror)
}

// patched checks that the work came by patches alone, and that only the one inside its areas was taken.
func patched(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	checkpoints, err := d.Checkpoints(ctx, project, f.Name)
	if err != nil {
		return err
	}
	patches := 0
	for _, c := range checkpoints {
		if c.Spec.Trigger == "Patch" {
			patches++
		}
	}
	if patches != 1 {
		return fmt.Errorf("want one patch that was applied, have %d", patches)
	}
	if _, err := git(ctx, mirror, "cat-file", "-e", "refs/heads/"+f.Status.Branch+":docs/elsewhere.md"); err == nil {
		return errors.New("what was refused is on the branch")
	}
	d.progress.say("the watchdog refused one of two patches before it wrote any of it, and applied the other")
	return delivered(ctx, d, f, mirror)
}

// held checks that nothing of the Feature reached the server and shows what the checkpoints say.
func held(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	if f.Status.Phase != v1alpha1.PhaseBlocked || cluster.Reason(f, v1alpha1.ConditionSucceeded) != v1alpha1.ReasonCheckpointInvalid {
		return fmt.Errorf("want Blocked/CheckpointInvalid, is %s/%s", f.Status.Phase, cluster.Reason(f, v1alpha1.ConditionSucceeded))
	}
	if _, err := git(ctx, mirror, "rev-parse", "--verify", "--quiet", "refs/heads/"+f.Status.Branch); err == nil {
		return fmt.Errorf("branch %s is on the server", f.Status.Branch)
	}
	d.progress.say("branch %s is not on the server; its checkpoints say:", f.Status.Branch)
	checkpoints, err := d.Checkpoints(ctx, project, f.Name)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range checkpoints {
		for _, v := range c.Spec.Violations {
			if line := fmt.Sprintf("%-20s %-36s %s\n", v.Rule, v.Path, v.Message); !seen[line] {
				seen[line] = true
				d.progress.verbatim(line)
			}
		}
	}
	if len(seen) < 3 {
		return fmt.Errorf("want a violation for each of the three intrusions, have %d", len(seen))
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"--git-dir", dir}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

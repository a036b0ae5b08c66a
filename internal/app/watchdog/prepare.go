// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/workspace"
)

// Pauses between tries of a preparation that failed, doubling.
const (
	firstTry = 2 * time.Second
	lastTry  = 30 * time.Second
)

// errEnded: the attempt was told to end before it had begun. The agent must not start.
var errEnded = errors.New("the attempt was asked to end while it was being prepared")

// workshop is an attempt with its workspace.
type workshop struct {
	*attempt

	engine *workspace.Engine // nil where there is no workspace
	// memory of what was judged before; checkpoints are taken one at a time.
	memory judge.Memory
	// shedAbove so many bytes that checkpoints have added, the budget of unpromoted content is looked at again.
	shedAbove int64
	// slow counts checkpoints in a row that took too long.
	slow int64
}

// Prepare readies the volumes for the agent. What keeps it from doing so is reported as a fault and tried again, until
// it works or the orders say that nothing is wanted any more.
func Prepare(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	w := &workshop{attempt: a}
	defer w.close()
	for tries := 0; ; tries++ {
		orders, err := a.orders.await(ctx)
		if err != nil {
			return err
		}
		if orders.Stop || orders.Suspend {
			return w.giveUp(ctx, orders)
		}
		if err = w.prepare(ctx, orders); err == nil || fatal(err) || ctx.Err() != nil {
			return err
		}
		fault := faultOf(err, contract.ReasonVolumeCorrupt)
		a.say(ctx, contract.StatusReport{State: contract.StatePreparing, Fault: &fault})
		w.rest(ctx, min(lastTry, firstTry<<min(tries, 10)))
	}
}

// rest waits for the next try, or for other orders.
func (w *workshop) rest(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-w.orders.changed:
	case <-ctx.Done():
	}
}

// prepare does everything from the beginning; what is done already is left as it is.
func (w *workshop) prepare(ctx context.Context, orders contract.Orders) error {
	for _, step := range []func(context.Context, contract.Orders) error{
		w.open,          // journal and repository
		w.fetchBase,     // once for ever
		w.verify,        // journal and repository agree
		w.prune,         // before anybody believes in an object
		w.openWorkspace, // finds out what the volume can do
		w.keepRemains,   // what the last attempt left there
		w.makeRoom,      // on a full volume
		w.layOut,        // the promoted tree or what was rolled back to, and the agent's own repository
		w.remember,      // what was laid out, for the watchdog
		w.copyRunner,
	} {
		if err := step(ctx, orders); err != nil {
			return err
		}
	}
	s := w.journal()
	w.say(ctx, contract.StatusReport{State: contract.StatePreparing, WorkspaceReady: true, Base: s.Base.Commit, Head: s.Promoted.Commit})
	return nil
}

func (w *workshop) open(ctx context.Context, orders contract.Orders) error {
	if err := w.takeOver(orders); err != nil {
		return err
	}
	if w.repo != nil {
		return nil
	}
	repo, err := git.Init(ctx, w.Paths.repository(), git.Options{})
	if err != nil {
		return err
	}
	w.repo = repo
	return nil
}

// fetchBase brings the base revision and pins it: a branch that moves later does not move the base.
func (w *workshop) fetchBase(ctx context.Context, orders contract.Orders) error {
	if w.journal().Base != nil {
		return nil
	}
	commit, err := w.repo.Ref(ctx, contract.RefBase)
	if err != nil {
		return err
	}
	if commit.IsZero() {
		if commit, err = w.fetch(ctx, orders); err != nil {
			return err
		}
	}
	tree, err := w.repo.TreeOf(ctx, commit)
	if err != nil {
		return err
	}
	return w.book.Note(journal.Record{Base: &journal.Base{Commit: commit.String(), Tree: tree.String()}})
}

func (w *workshop) fetch(ctx context.Context, orders contract.Orders) (objects.ID, error) {
	remote, err := w.remote(orders.Repository)
	if err != nil {
		return objects.ID{}, err
	}
	w.Log.InfoContext(ctx, "Fetching the base", "url", remote.URL, "revision", orders.Repository.Revision)
	commit, err := w.repo.Fetch(ctx, remote, orders.Repository.Revision)
	if err != nil {
		return objects.ID{}, err
	}
	if err := w.repo.Keep(); err != nil {
		return objects.ID{}, err
	}
	return commit, w.repo.UpdateRefs(ctx, []git.RefUpdate{
		{Name: contract.RefBase, New: commit}, {Name: contract.RefDelivery, New: commit},
	})
}

// verify completes what a crash interrupted, and refuses refs that are not where the journal has them.
func (w *workshop) verify(ctx context.Context, orders contract.Orders) error {
	// What is promoted is laid into the workspace first.
	if i := w.journal().Pending; i != nil && i.Restore != "" && i.Delivery != i.OldDelivery {
		if err := w.needWorkspace(ctx, orders); err != nil {
			return err
		}
	}
	if err := w.recover(ctx); err != nil {
		return err
	}
	if err := w.replace(ctx); err != nil {
		return err
	}
	s := w.journal()
	for _, r := range []struct{ name, want string }{
		{contract.RefBase, s.Base.Commit}, {contract.RefChain, s.Chain.Commit}, {contract.RefDelivery, s.Promoted.Commit},
	} {
		have, err := w.repo.Ref(ctx, r.name)
		if err != nil {
			return err
		}
		if have.String() != r.want && !(have.IsZero() && r.want == "") {
			return fmt.Errorf("%w: %s is %s, and the journal has %q", errCorrupt, r.name, have, r.want)
		}
	}
	return nil
}

// prune drops what no ref reaches, once that could be much. A failure is no reason not to work.
func (w *workshop) prune(ctx context.Context, _ contract.Orders) error {
	added, err := w.repo.Added()
	wanted := err == nil && added >= w.PruneAbove && w.engine == nil
	if wanted {
		wanted, err = w.anchored(ctx)
	}
	if wanted {
		w.Log.InfoContext(ctx, "Pruning the trusted repository", "bytes", added)
		err = w.dropUnreached(ctx)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "The trusted repository is not pruned", "error", err.Error())
	}
	return context.Cause(ctx)
}

// dropUnreached drops what nothing needs. Git cannot repack a chain of which some content was dropped.
func (w *workshop) dropUnreached(ctx context.Context) error {
	if len(w.journal().Dropped) == 0 {
		return w.repo.Prune(ctx)
	}
	i, err := w.takeInventory(ctx, contract.Orders{})
	if err != nil {
		return err
	}
	return w.repo.Retain(ctx, i.reach)
}

// anchored tells whether refs reach the trees that the journal speaks of. A tree that was put together for a restore is
// in no commit before the next checkpoint.
func (w *workshop) anchored(ctx context.Context) (bool, error) {
	s := w.journal()
	reached := []string{s.Base.Tree, s.Promoted.Tree}
	if s.Chain.Commit != "" {
		commit, err := objects.ParseID(s.Chain.Commit)
		if err != nil {
			return false, err
		}
		tree, err := w.repo.TreeOf(ctx, commit)
		if err != nil {
			return false, err
		}
		reached = append(reached, tree.String())
	}
	return slices.Contains(reached, s.Workspace.Tree) && slices.Contains(reached, s.Start), nil
}

func (w *workshop) openWorkspace(ctx context.Context, _ contract.Orders) error {
	if w.engine == nil {
		engine, err := workspace.Open(ctx, workspace.Options{
			Root: w.Paths.Workspace, Repository: w.repo, Scratch: w.Paths.scratch(), Now: w.Now, Logger: w.Log,
		})
		if err != nil {
			return fmt.Errorf("open workspace: %w", err)
		}
		w.engine = engine
	}
	// What the last checkpoint left is what is believed; the engine finds out what is true.
	s := w.journal()
	base, err := objects.ParseID(s.Base.Commit)
	if err != nil {
		return err
	}
	current, err := objects.ParseID(s.Workspace.Tree)
	if err != nil {
		return err
	}
	return w.engine.Reset(ctx, base, current)
}

// doubtful is why what a lost attempt left is not promoted.
const doubtful = "an attempt that was lost left it behind, perhaps half written"

// keepRemains puts what a lost attempt left in the workspace into the chain before the workspace goes back. It is never
// promoted: whoever wrote it may have been in the middle of a file.
func (w *workshop) keepRemains(ctx context.Context, orders contract.Orders) error {
	s := w.journal()
	o := occasion{trigger: contract.TriggerFinal, policy: orders.Policy, plan: orders.Plan, orders: orders,
		doubt: doubtful}
	for _, t := range orders.Tasks {
		if task, begun := s.Tasks[t.Name]; begun && !task.Done {
			o.task, o.policy, o.plan = t.Name, task.Policy, task.Plan
		}
	}
	if o.task == "" {
		return nil
	}
	j, err := w.glance(ctx, o, false)
	if err != nil {
		return err
	}
	switch j.snapshot.Tree.String() {
	case s.Promoted.Tree, s.Workspace.Tree, objects.EmptyTree.String():
		return nil
	}
	i, err := w.plan(ctx, o, j)
	if err != nil || i == nil {
		return err
	}
	return w.record(ctx, *i)
}

// makeRoom clears a full workspace of what no checkpoint holds: files that Git ignores, and the agent's own repository, which
// is made anew. An agent could not work on a full volume, nor could the workspace be laid out there.
func (w *workshop) makeRoom(ctx context.Context, _ contract.Orders) error {
	if !w.engine.Assumptions().Full {
		return nil
	}
	cleared, err := w.engine.ClearIgnored(ctx)
	w.tellCleared(ctx, cleared)
	if err != nil {
		return fmt.Errorf("make room in the workspace: %w", err)
	}
	return nil
}

// tellCleared says what was removed from a workspace that was too full to be laid out.
func (w *workshop) tellCleared(ctx context.Context, names int) {
	if names == 0 {
		return
	}
	w.Log.WarnContext(ctx, "The workspace was full: what Git ignores was removed", "names", names)
	w.health.tell(workspaceHealth, fmt.Sprintf(
		"it was full, so %d files and directories that Git ignores were removed from it; set a larger spec.workspace.size if this happens again", names))
}

func (w *workshop) layOut(ctx context.Context, orders contract.Orders) error {
	s := w.journal()
	tree, err := objects.ParseID(s.Start)
	if err != nil {
		return err
	}
	done, err := w.engine.Restore(ctx, tree)
	if errors.Is(err, git.ErrFull) {
		var cleared int
		if cleared, err = w.engine.ClearIgnored(ctx); err == nil {
			w.tellCleared(ctx, cleared)
			done, err = w.engine.Restore(ctx, tree)
		}
	}
	if err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	w.tellCleared(ctx, done.Cleared)
	commit, err := objects.ParseID(s.Promoted.Commit)
	if err != nil {
		return err
	}
	err = w.engine.PlaceAgentGit(ctx, workspace.AgentGit{Commit: commit, Branch: orders.Delivery.Branch,
		AuthorName: orders.Delivery.AuthorName, AuthorEmail: orders.Delivery.AuthorEmail})
	if err != nil {
		return fmt.Errorf("make the agent's repository: %w", err)
	}
	return nil
}

// remember leaves the signatures of what was laid out to the watchdog, so that its first checkpoint reads only what has
// changed since. Without them it reads everything.
func (w *workshop) remember(ctx context.Context, _ contract.Orders) error {
	if err := w.engine.Remember(); err != nil {
		w.Log.WarnContext(ctx, "The first checkpoint will read everything", "error", err.Error())
	}
	return nil
}

// copyRunner puts the runner where the agent's container finds it. It cannot be read there, and so not be dumped.
func (w *workshop) copyRunner(context.Context, contract.Orders) error {
	in, err := os.Open(w.Paths.Runner)
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	defer func() { _ = in.Close() }()
	temp := w.Paths.runner() + ".new"
	_ = os.Remove(temp) // a crash left it, and it cannot be opened for writing
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o711)
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o111), out.Close()); err == nil {
		err = os.Rename(temp, w.Paths.runner())
	}
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	return nil
}

// giveUp says the last word of an attempt that was told to end before its agent ran.
func (w *workshop) giveUp(ctx context.Context, orders contract.Orders) error {
	f := contract.FinalReport{Outcome: contract.OutcomeSuspended, Reason: contract.ReasonSuspended,
		Message: "suspended before the agent was started"}
	if orders.Stop {
		f = contract.FinalReport{Outcome: contract.OutcomeStopped, Reason: orders.StopReason,
			Message: "stopped before the agent was started"}
	}
	if err := w.openBook(orders.Run); err != nil {
		w.Log.WarnContext(ctx, "The end is reported, but not journaled", "error", err.Error())
		if _, err := w.spool.Append(contract.Report{Time: w.Now().UTC(), Final: &f}); err != nil {
			return err
		}
	} else if err := w.conclude(ctx, f); err != nil {
		return err
	}
	if err := w.spool.Drained(ctx); err != nil {
		return err
	}
	return errEnded
}

func (w *workshop) close() {
	if w.engine == nil {
		return
	}
	if err := w.engine.Close(); err != nil {
		w.Log.Warn("Closing the workspace failed", "error", err.Error())
	}
}

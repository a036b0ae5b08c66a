// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// errEnded: the attempt has ended before it had begun. The agent must not start.
var errEnded = errors.New("the attempt ended while it was being prepared")

// preparation is an attempt on its way to its agent.
type preparation struct {
	attempt  *attempt
	services *services // nil until open
}

// Prepare readies the volumes for the agent. If something keeps it from doing so, Prepare reports a fault and tries again. It stops when it
// succeeds, the orders end the attempt, or only a user can fix the fault.
func Prepare(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	p := &preparation{attempt: a}
	defer p.close()
	var tries supervise.Preparation
	for {
		orders, err := a.orders.await(ctx)
		if err != nil {
			return err
		}
		if orders.Stop || orders.Suspend {
			return a.giveUp(ctx, orders)
		}
		if err = p.prepare(ctx, orders); err == nil || steps.Fatal(err) || ctx.Err() != nil {
			return err
		}
		fault := faults.Of(err, protocol.ReasonPreparationFailed)
		a.say(ctx, protocol.StatusReport{State: protocol.StatePreparing, Fault: &fault})
		tries = tries.Failed(fault)
		if f, over := tries.Final(); over {
			return a.conclude(ctx, orders, f)
		}
		a.rest(ctx, tries.Pause())
	}
}

// rest waits for the next try, or for other orders.
func (a *attempt) rest(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-a.orders.changed:
	case <-ctx.Done():
	}
}

// prepare does everything from the beginning; what is done already is left as it is.
func (p *preparation) prepare(ctx context.Context, orders protocol.Orders) error {
	steps := []func(context.Context, protocol.Orders) error{
		p.open,          // journal and repository
		p.fetchBase,     // once for ever
		p.complete,      // what a crash interrupted; journal and repository agree then
		p.prune,         // before anything believes in an object
		p.openWorkspace, // finds out what the volume can do
		p.keepRemains,   // what the last attempt left there
		p.makeRoom,      // on a full volume
		p.layOut,        // the promoted tree or what was rolled back to, and the agent's own repository
		p.remember,      // the prepared files, for the watchdog
		p.copyRunner,
	}
	if orders.Run == protocol.RunGate {
		steps = []func(context.Context, protocol.Orders) error{p.open, p.settled, p.complete, p.openWorkspace, p.checkOut, p.remember, p.copyRunner}
	}
	for _, step := range steps {
		if err := step(ctx, orders); err != nil {
			return err
		}
	}
	s := p.attempt.journal.State()
	p.attempt.say(ctx, protocol.StatusReport{State: protocol.StatePreparing, WorkspaceReady: true, Base: s.Base.Commit, Head: s.Head().Commit})
	return nil
}

func (p *preparation) open(ctx context.Context, orders protocol.Orders) error {
	if err := p.attempt.takeOver(orders); err != nil || p.services != nil {
		return err
	}
	repo, err := git.Init(ctx, p.attempt.options.Paths.trusted().Repository(), git.Options{})
	if err != nil {
		return err
	}
	p.services = newServices(p.attempt, repo, false)
	return nil
}

// fetchBase brings the base revision and pins it: a branch that moves later does not move the base.
func (p *preparation) fetchBase(ctx context.Context, orders protocol.Orders) error {
	if p.attempt.journal.State().Base != nil {
		return nil
	}
	repo := p.services.repository
	commit, err := repo.Ref(ctx, protocol.RefBase)
	if err != nil {
		return err
	}
	if commit.IsZero() {
		if commit, err = p.fetch(ctx, orders); err != nil {
			return err
		}
	}
	tree, err := repo.TreeOf(ctx, commit)
	if err != nil {
		return err
	}
	return p.attempt.journal.Note(journal.Record{Base: &journal.Base{Commit: commit.String(), Tree: tree.String()}})
}

func (p *preparation) fetch(ctx context.Context, orders protocol.Orders) (objects.ID, error) {
	repo := p.services.repository
	remote, err := p.services.access.Remote(orders)
	if err != nil {
		return objects.ID{}, err
	}
	p.attempt.options.Log.InfoContext(ctx, "Fetching the base", "url", remote.URL, "revision", orders.Repository.Revision)
	commit, err := repo.Fetch(ctx, remote, orders.Repository.Revision)
	if err != nil {
		return objects.ID{}, err
	}
	if err := repo.Packs().Keep(); err != nil {
		return objects.ID{}, err
	}
	return commit, repo.UpdateRefs(ctx, []git.RefUpdate{
		{Name: protocol.RefBase, New: commit}, {Name: protocol.RefDelivery, New: commit},
	})
}

func (p *preparation) complete(ctx context.Context, _ protocol.Orders) error {
	return p.services.complete(ctx)
}

func (p *preparation) prune(ctx context.Context, _ protocol.Orders) error {
	return p.services.retain.Prune(ctx)
}

func (p *preparation) openWorkspace(ctx context.Context, _ protocol.Orders) error {
	return p.services.workspace.Open(ctx, p.attempt.journal.State())
}

func (p *preparation) keepRemains(ctx context.Context, orders protocol.Orders) error {
	return p.services.checkpoint.KeepRemains(ctx, orders)
}

// makeRoom clears a full workspace of what no checkpoint holds; the agent's own repository is made again. An agent could not work on a full
// volume, nor could the workspace be prepared there.
func (p *preparation) makeRoom(ctx context.Context, _ protocol.Orders) error {
	if !p.services.workspace.Engine().Assumptions().Full {
		return nil
	}
	if err := p.services.workspace.MakeRoom(ctx); err != nil {
		return fmt.Errorf("make room in the workspace: %w", err)
	}
	return nil
}

func (p *preparation) layOut(ctx context.Context, orders protocol.Orders) error {
	return p.layOutTree(ctx, orders, p.attempt.journal.State().Start)
}

// layOutTree makes the workspace a tree, and gives it a repository for the agent or the gate.
func (p *preparation) layOutTree(ctx context.Context, orders protocol.Orders, start string) error {
	s, w := p.attempt.journal.State(), p.services.workspace
	tree, err := objects.ParseID(start)
	if err != nil {
		return err
	}
	_, err = w.Restore(ctx, tree)
	if errors.Is(err, git.ErrFull) {
		if err = w.MakeRoom(ctx); err == nil {
			_, err = w.Restore(ctx, tree)
		}
	}
	if err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	at := s.Promoted
	if head := s.Head(); tree.String() == head.Tree { // a gate sees no documents of reviewers that look like changes
		at = head
	}
	commit, err := objects.ParseID(at.Commit)
	if err != nil {
		return err
	}
	base, err := objects.ParseID(s.Base.Commit)
	if err != nil {
		return err
	}
	err = w.Engine().PlaceAgentGit(ctx, workspace.AgentGit{Commit: commit, Base: base, Branch: orders.Delivery.Branch,
		AuthorName: orders.Delivery.AuthorName, AuthorEmail: orders.Delivery.AuthorEmail})
	if err != nil {
		return fmt.Errorf("make the agent's repository: %w", err)
	}
	return nil
}

// remember leaves the signatures of the prepared files to the watchdog, so that its first checkpoint reads only what has
// changed since. Without them it reads everything.
func (p *preparation) remember(ctx context.Context, _ protocol.Orders) error {
	if err := p.services.workspace.Engine().Remember(); err != nil {
		p.attempt.options.Log.WarnContext(ctx, "The first checkpoint will read everything", "error", err.Error())
	}
	return nil
}

// copyRunner puts the runner where the agent's container finds it. It cannot be read there, and so not be dumped.
func (p *preparation) copyRunner(context.Context, protocol.Orders) error {
	in, err := os.Open(p.attempt.options.Paths.Runner)
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	defer func() { _ = in.Close() }()
	temp := p.attempt.options.Paths.runner() + ".new"
	_ = os.Remove(temp) // a crash left it, and it cannot be opened for writing
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o711)
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o111), out.Close()); err == nil {
		err = os.Rename(temp, p.attempt.options.Paths.runner())
	}
	if err != nil {
		return fmt.Errorf("copy runner: %w", err)
	}
	return nil
}

// giveUp sends the final report of an attempt with orders to end before its agent ran.
func (a *attempt) giveUp(ctx context.Context, orders protocol.Orders) error {
	f := protocol.FinalReport{Outcome: protocol.OutcomeSuspended, Reason: protocol.ReasonSuspended,
		Message: "suspended before the agent started"}
	if orders.Stop {
		f = protocol.FinalReport{Outcome: protocol.OutcomeStopped, Reason: orders.StopReason,
			Message: "stopped before the agent started"}
	}
	return a.conclude(ctx, orders, f)
}

// conclude sends the final report of an attempt whose agent did not run, and waits for its acknowledgment.
func (a *attempt) conclude(ctx context.Context, orders protocol.Orders, f protocol.FinalReport) error {
	if err := a.claimJournal(orders.Run); err != nil {
		a.options.Log.WarnContext(ctx, "Reported the end, but cannot journal it", "error", err.Error())
		if _, err := a.spool.Append(protocol.Report{Time: a.options.Now().UTC(), Final: &f}); err != nil {
			return err
		}
	} else if err := a.reports.Conclude(ctx, f); err != nil {
		return err
	}
	if err := a.spool.Drained(ctx); err != nil {
		return err
	}
	return errEnded
}

func (p *preparation) close() {
	if p.services != nil {
		p.services.close()
	}
}

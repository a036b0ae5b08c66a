// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Run supervises the agent until the attempt has ended. After a crash, a new call continues where it was.
func Run(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	s, err := resume(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	near, err := listenForAgent(a, steeringRecord{journal: a.journal, handover: s.handover}, s.directives)
	if err != nil {
		return err
	}
	defer near.close()
	agent, err := runnerlink.Listen(o.Paths.socket(), trusted.NewSession(o.Paths.trusted(), o.Attempt))
	if err != nil {
		return fmt.Errorf("listen for the runner: %w", err)
	}
	defer func() { _ = agent.Close() }()
	l := newLoop(s, agent, *a.journal.State().Orders)
	l.acts.modelsURL, l.acts.toolsURL, l.acts.proxyURL = near.modelsURL, near.toolsURL, near.proxyURL
	l.accounts, l.steering, l.acts.steering, l.calls = accounts{models: near.proxy, log: o.Log}, near.steering, near.steering, near.calls
	l.acts.teller.steering = near.steering
	if !a.reach().Lines {
		l.acts.teller.post = near.steering.Post
		l.acts.teller.recall(l.latest.Feature.Name)
		l.acts.teller.cutOff(l.queue.Waits(l.latest))
	}
	near.serve(ctx, l)
	if err := l.run(ctx); err != nil {
		return err
	}
	steps.Pause(ctx, o.Linger)
	return nil
}

// resume reads what earlier processes have left, completes what they could not, and starts to watch.
func resume(ctx context.Context, a *attempt) (_ *services, err error) {
	if err := a.openJournal(); err != nil {
		return nil, err
	}
	j := a.journal.State()
	if j.Epoch != a.options.Attempt || j.Orders == nil || j.Base == nil {
		return nil, fmt.Errorf("%w: attempt %d was not prepared: the journal is of attempt %d", trusted.ErrCorrupt, a.options.Attempt, j.Epoch)
	}
	repo, err := git.Open(ctx, a.options.Paths.trusted().Repository(), git.Options{})
	if err != nil {
		return nil, err
	}
	s := newServices(a, repo, false)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.workspace.Open(ctx, j); err != nil {
		return nil, err
	}
	if err := s.complete(ctx); err != nil {
		return nil, err
	}
	recalled, err := s.workspace.Engine().Recall(ctx)
	if err != nil {
		return nil, err
	}
	if a.options.Gate == "" {
		if err := s.workspace.Engine().Watch(ctx); err != nil {
			return nil, fmt.Errorf("watch workspace: %w", err)
		}
	}
	a.options.Log.InfoContext(ctx, "Opened the workspace", "knownFromPrepare", recalled)
	return s, nil
}

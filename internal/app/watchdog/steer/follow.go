// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
)

const (
	// pulseEvery is how often the agent's processes are looked at: a fraction of the shortest silence that a policy may set.
	pulseEvery = 30 * time.Second
	// keepEvery is how often what is remembered is kept, where nothing was said to the model. Of what is lost, most is heard again.
	keepEvery = 10 * time.Second
	// maxCommands and maxCommand, in bytes, are what a runner tells.
	maxCommands, maxCommand = 32, 15
)

// Follow watches the agent's activity, stores the state of the session, and sends delayed reports, until the context ends.
func (s *Service) Follow(ctx context.Context, pulse func(context.Context) (protocol.RunnerPulse, error)) {
	defer s.keepDirty()
	var pulses sync.WaitGroup // a runner may take long to answer
	defer pulses.Wait()
	pulses.Go(func() { s.followPulse(ctx, pulse) })
	keeps := time.NewTicker(keepEvery)
	defer keeps.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-keeps.C:
			s.keepDirty()
		case <-s.late.C:
			s.with(func(state *session.State, f session.Facts) session.Effects { return state.Late(f) })
		}
	}
}

// followPulse takes the pulse until the context ends.
func (s *Service) followPulse(ctx context.Context, pulse func(context.Context) (protocol.RunnerPulse, error)) {
	pulses := time.NewTicker(pulseEvery)
	defer pulses.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pulses.C:
			if p, err := pulse(ctx); err == nil { // another place reports a runner that does not answer
				s.Pulse(p)
			}
		}
	}
}

// Pulse of the agent's processes.
func (s *Service) Pulse(p protocol.RunnerPulse) {
	s.with(func(state *session.State, f session.Facts) session.Effects {
		pulse := anomaly.Pulse{
			CPU: p.CPU, Processes: p.Processes, Output: p.Written, Idle: s.idle, Commands: commands(p.Commands), Answers: s.passed.Swap(false), Lives: s.lives.Swap(false),
		}
		return state.Pulse(f, pulse, p.Age)
	})
}

// commands are the processes other than the agent's own, as far as the detectors look at them.
func commands(told []protocol.RunnerProcess) (list []anomaly.Command) {
	for _, c := range told[:min(len(told), maxCommands)] {
		list = append(list, anomaly.Command{Name: plain.CutBytes(c.Name, maxCommand), Age: c.Age})
	}
	return list
}

// keepDirty keeps what was not.
func (s *Service) keepDirty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty {
		s.keep()
	}
}

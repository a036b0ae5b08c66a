// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// plugs ends the processes of one life, one after the other, each after another step: a crash costs a restart, and not a life.
type plugs struct {
	t  *testing.T
	mu sync.Mutex
	// left are the steps to come. What happens at the same time has a list each: a list is in the order of its steps.
	left [][]plug
	// pulled are the steps after which a process ended, oldest first.
	pulled []plug
	// heard is how many of them the test has waited for.
	heard int
	// passed are all steps of the process that runs.
	passed []string
}

// plug is a step after which a process ends.
type plug struct {
	step string
	// lost: with the process, something is lost. A test says what.
	lost bool
	// nth time that the process comes to the step; 0 is the first one.
	nth int
	// passes: the step is waited for, and ends no process.
	passes bool
}

// String names the plug.
func (p plug) String() string {
	text := p.step
	if p.nth > 0 {
		text += fmt.Sprintf(", time %d", p.nth)
	}
	if p.lost {
		text += ", with a loss"
	}
	return text
}

// after are plugs with which nothing is lost.
func after(steps ...string) []plug {
	plugs := make([]plug, 0, len(steps))
	for _, step := range steps {
		plugs = append(plugs, plug{step: step})
	}
	return plugs
}

// past are steps that have to come first, and end no process.
func past(steps ...string) []plug {
	plugs := after(steps...)
	for i := range plugs {
		plugs[i].passes = true
	}
	return plugs
}

// lost are plugs with which something is lost.
func lost(steps ...string) []plug {
	plugs := after(steps...)
	for i := range plugs {
		plugs[i].lost = true
	}
	return plugs
}

// newPlugs for one life. If its test fails, the log says which plugs were pulled before.
func newPlugs(t *testing.T, lists ...[]plug) *plugs {
	p := &plugs{t: t, left: slices.Clone(lists)}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(slices.Concat(p.left...)) > 0 {
			t.Error("not every step of the test was made")
		}
		if t.Failed() {
			t.Logf("plugs pulled, oldest first: %q; left: %q; the last process has passed %q", p.pulled, p.left, p.passed)
		}
	})
	return p
}

// probe for one process: the first plug whose turn it is ends the process.
func (p *plugs) probe() func(string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = nil
	ended := false
	return func(reached string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ended { // what ran next to it has not heard of it yet
			return nil
		}
		p.passed = append(p.passed, reached)
		for i, list := range p.left {
			if len(list) > 0 && list[0].step == reached && p.times(reached) >= list[0].nth {
				p.left[i] = list[1:]
				if list[0].passes {
					continue
				}
				p.pulled, ended = append(p.pulled, list[0]), true
				return errPulled
			}
		}
		return nil
	}
}

// add plugs that count from now on.
func (p *plugs) add(list []plug) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.passed = append(p.left, list), nil
}

// times that the process has come to a step.
func (p *plugs) times(step string) (n int) {
	for _, s := range p.passed {
		if s == step {
			n++
		}
	}
	return n
}

// last is the step after which a process ended last.
func (p *plugs) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pulled[len(p.pulled)-1].step
}

// all is how many processes are still to end, and have ended without the test having waited for it.
func (p *plugs) all() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range append(slices.Concat(p.left...), p.pulled[p.heard:]...) {
		if !one.passes {
			n++
		}
	}
	return n
}

// ended holds the end of a process against a pulled plug.
func (p *plugs) ended(w *world, err error) plug {
	p.t.Helper()
	if !errors.Is(err, errPulled) {
		p.t.Fatalf("the watchdog ended with %v before every plug was pulled", err)
	}
	p.mu.Lock()
	last := p.pulled[len(p.pulled)-1]
	p.heard = len(p.pulled)
	p.mu.Unlock()
	if repeated, refused := w.intake.Repeated(), w.intake.Refused(); len(repeated)+len(refused) > 0 {
		p.t.Fatalf("when the watchdog ended after %q, intake has these twice: %v, and refused these: %v", last, repeated, refused)
	}
	return last
}

// processes pulls all plugs of a pod's watchdog: after each, another process goes on beside the same agent. It may have lost the conversation. The
// process that is returned has no plug.
func (p *plugs) processes(run *pod) *pod {
	p.t.Helper()
	for range p.all() {
		if p.ended(run.w, run.wait()).lost {
			run.lose()
		}
		run.watch(p.probe())
	}
	return run
}

// pods pulls all plugs: after each, another pod follows if the plug says that the pod is lost, else another process.
func (p *plugs) pods(run *pod) *pod {
	p.t.Helper()
	for range p.all() {
		if !p.ended(run.w, run.wait()).lost {
			run.watch(p.probe())
			continue
		}
		run.kill()
		run = run.w.start(run.attempt+1, p.probe())
	}
	return run
}

// alternately are the plugs for two lives, so that no life has a crash after each step, and a fault at one is seen in one of them.
func alternately(list []plug) map[string][]plug {
	lives := map[string][]plug{}
	for i, p := range list {
		life := map[bool]string{true: "even", false: "odd"}[i%2 == 0]
		lives[life] = append(lives[life], p)
	}
	return lives
}

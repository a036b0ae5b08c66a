// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress tells a waiting user what happens: one line when a step begins, a sign of life while it
// lasts, one line when it ends.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// signOfLife is how often a step that lasts says so.
const signOfLife = 15 * time.Second

// Reporter writes the lines. Its zero value is not usable; see New.
type Reporter struct {
	out   io.Writer
	now   func() time.Time
	start time.Time

	mu    sync.Mutex
	step  int
	total int
}

// New returns a reporter that writes to out and counts up to total steps.
func New(out io.Writer, now func() time.Time, total int) *Reporter {
	return &Reporter{out: out, now: now, start: now(), total: total}
}

// Note writes a line that is not a step.
func (r *Reporter) Note(format string, arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "  "+format+"\n", arguments...)
}

// Step runs do as the next step. status, which may be nil, returns the progress while it lasts.
func (r *Reporter) Step(title string, status func() string, do func() error) error {
	r.mu.Lock()
	r.step++
	label := fmt.Sprintf("[%d/%d] %s", r.step, r.total, title)
	fmt.Fprintln(r.out, label)
	r.mu.Unlock()

	begin := r.now()
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() { r.tick(done, begin, status) })
	err := do()
	close(done)
	ticking.Wait()
	if took := r.now().Sub(begin); err == nil && took >= time.Second {
		r.Note("done in %s", round(took))
	}
	return err
}

// Elapsed is the time since New.
func (r *Reporter) Elapsed() time.Duration { return round(r.now().Sub(r.start)) }

func (r *Reporter) tick(done <-chan struct{}, begin time.Time, status func() string) {
	ticker := time.NewTicker(signOfLife)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			line := fmt.Sprintf("… %s", round(r.now().Sub(begin)))
			if status != nil {
				line += "  " + status()
			}
			r.Note("%s", line)
		}
	}
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

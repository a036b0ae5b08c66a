// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// progress prints a line whenever something changed, so that it reads the same on a terminal and in a log.
type progress struct {
	out     io.Writer
	started time.Time
	said    map[string]string
	// running is when each Feature's agent was first seen at work.
	running map[string]time.Duration
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, started: time.Now(), said: map[string]string{}, running: map[string]time.Duration{}}
}

func (p *progress) title(format string, args ...any) {
	fmt.Fprintf(p.out, "\n[%4.0fs] == %s\n", time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
}

func (p *progress) paragraph(format string, args ...any) {
	fmt.Fprintf(p.out, "\n  "+format+"\n", args...)
}

func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "[%4.0fs] %s\n", time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
}

func (p *progress) verbatim(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprint(p.out, "    ", line)
	}
}

// feature says what changed about a Feature since it was last looked at.
func (p *progress) feature(f *v1alpha1.Feature, checkpoints []v1alpha1.Checkpoint) {
	if f.Status.Phase == "" {
		return
	}
	if f.Status.Phase == v1alpha1.PhaseRunning {
		if _, known := p.running[f.Name]; !known {
			p.running[f.Name] = time.Since(f.CreationTimestamp.Time)
		}
	}
	p.change(f.Name, "%s/%s (attempt %d)", f.Status.Phase, cluster.Reason(f, v1alpha1.ConditionSucceeded), f.Status.Attempt)
	for _, c := range checkpoints {
		verdict := strings.TrimSpace(string(c.Spec.Verdict) + " " + c.Spec.Reason)
		p.change(c.Name, "checkpoint %d: %s, %s, %d files", c.Spec.Sequence, verdict, c.Spec.Action, c.Spec.Files.Total)
	}
}

func (p *progress) change(name, format string, args ...any) {
	if state := fmt.Sprintf(format, args...); p.said[name] != state {
		p.said[name] = state
		p.say("%s", fmt.Sprintf("%-12s %s", name, state))
	}
}

func (p *progress) farewell(kubectl string, agent bool) {
	withAgent := ""
	if agent {
		withAgent = "\nA real agent asks models through the gateway, which records every turn (writer). The watchdog tells an agent that it repeats itself (circler).\nA model divides work into tasks, and a gate proves one (planner). One of two reviewers finds something in finished work (apprentice)."
	}
	fmt.Fprintf(p.out, `
You saw: Tidewaiter delivers work that keeps the rules (years), and holds work that breaks them and says why (intruder).
A lost pod costs no work (survivor). A user takes work back (regret). An agent that cannot write sends patches (patcher).%[3]s
The cluster stays up. Look further: %[1]s describe feature intruder --namespace %[2]s
Apply a Feature of your own: docs/get-started/quick-start.md shows one; %[1]s explain feature.spec
Remove everything: make cluster-down
`, kubectl, project, withAgent)
}

// figures prints what the run cost, from the objects themselves.
func (d *demo) figures(ctx context.Context) error {
	for _, s := range d.stories() {
		checkpoints, err := d.Checkpoints(ctx, project, s.name)
		if err != nil {
			return err
		}
		for _, c := range checkpoints {
			frozen := "not frozen"
			if c.Spec.Capture.Frozen {
				frozen = fmt.Sprintf("%d processes frozen for %s", c.Spec.Capture.Processes, micros(c.Spec.Capture.FrozenMicros))
			}
			d.progress.say("%-12s captured in %s, made durable in %s, checked in %s, %s", c.Name,
				micros(c.Spec.Durations.CaptureMicros), micros(c.Spec.Durations.SyncMicros), micros(c.Spec.Durations.JudgeMicros), frozen)
		}
		d.progress.say("%-12s agent at work %s after the Feature was applied", s.name, d.progress.running[s.name].Round(100*time.Millisecond))
	}
	return nil
}

func micros(n int64) time.Duration {
	return (time.Duration(n) * time.Microsecond).Round(100 * time.Microsecond)
}

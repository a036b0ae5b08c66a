// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
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
	state := string(f.Status.Phase)
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		state += "/" + c.Reason
	}
	p.change(f.Name, fmt.Sprintf("%s (attempt %d)", state, f.Status.Attempt))
	for _, c := range checkpoints {
		verdict := strings.TrimSpace(string(c.Spec.Verdict) + " " + c.Spec.Reason)
		p.change(c.Name, fmt.Sprintf("checkpoint %d: %s, %s, %d files", c.Spec.Sequence, verdict, c.Spec.Action, c.Spec.Files.Total))
	}
}

func (p *progress) change(name, state string) {
	if p.said[name] != state {
		p.said[name] = state
		p.say("%-12s %s", name, state)
	}
}

func (p *progress) farewell(kubectl string, agent bool) {
	withAgent := ""
	if agent {
		withAgent = "\nA real agent asked models through the gateway, and every turn is on record (writer); one that went round in circles was told so (circler)."
	}
	fmt.Fprintf(p.out, `
Seen: work that keeps its rules is delivered (years), work that breaks them is held and says why (intruder);
a lost pod costs no work (survivor), a person takes work back (regret), and an agent that cannot write patches (patcher).%[3]s
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
			d.progress.say("%-12s captured in %s, made durable in %s, judged in %s, %s", c.Name,
				micros(c.Spec.Durations.CaptureMicros), micros(c.Spec.Durations.SyncMicros), micros(c.Spec.Durations.JudgeMicros), frozen)
		}
		d.progress.say("%-12s agent at work %s after the Feature was applied", s.name, d.progress.running[s.name].Round(100*time.Millisecond))
	}
	return nil
}

func micros(n int64) time.Duration {
	return (time.Duration(n) * time.Microsecond).Round(100 * time.Microsecond)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instructions composes the text that an agent gets at the start of a task. The text is a function of its Facts. It never cuts the
// instructions themselves. Each section before them has a budget, in which whole lines stand, and says what it leaves out.
package instructions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// bytesPerToken is how the budgets of sections count tokens.
const bytesPerToken = 4

// Facts are what the text is made of.
type Facts struct {
	// Feature is its name, from which the names of checkpoints follow.
	Feature string
	// Repository is its URL, and Revision what the work is based on. Branch receives the work; empty if nothing is pushed.
	Repository, Revision, Branch string
	// Bounds say where the agent may write; empty for anywhere.
	Bounds string
	// Knowledge of the project, as knowledge.Select has it; empty where the policy gives none.
	Knowledge []string
	// Tasks of the Feature in the sequence in which they run, and Current the name of the task that the agent begins.
	Tasks   []Task
	Current string
	// Directives are the lines about what the agent must address, as directives.List has them.
	Directives []string
}

// Task of a Feature.
type Task struct {
	// Name is milestone/task, or the Feature's name if the prompt is the only task.
	Name string
	// Done for ever, or Aborted: it could not be done, and the work continues without it. Work is what is known of it; nil if nothing is, or if too
	// many tasks are over since.
	Done, Aborted bool
	Work          *protocol.TaskWork
	// Message says why it was aborted; empty if that is not known.
	Message string
}

// Of returns the facts for the agent of the current task under orders. Bounds say where it may write, and known what is known of a task apart from
// its name.
func Of(o protocol.Orders, current, bounds string, known func(task string) Task) Facts {
	f := Facts{Feature: o.Feature.Name, Repository: o.Repository.URL, Revision: o.Repository.Revision, Bounds: bounds, Current: current}
	if o.Delivery.Push {
		f.Branch = o.Delivery.Branch
	}
	f.Tasks = make([]Task, 0, len(o.Tasks))
	for _, t := range o.Tasks {
		task := known(t.Name)
		task.Name = t.Name
		f.Tasks = append(f.Tasks, task)
	}
	return f
}

// lines of a section: their number, and each by its place from 0. Most of a long list has no room, and is never written.
type lines struct {
	count int
	at    func(i int) string
}

func listed(list []string) lines { return lines{len(list), func(i int) string { return list[i] }} }

// section before the instructions.
type section struct {
	title string
	// tokens is its budget, with its title.
	tokens int
	// one and many are what it counts when it leaves lines out.
	one, many string
	lines     func(Facts) lines
	// alone says that there is reason for sections when only this one says something.
	alone bool
}

// ownTitle is the title of the section with the instructions themselves, and knowledgeTitle that of the one with knowledge.
const (
	ownTitle       = "INSTRUCTIONS"
	knowledgeTitle = "PROJECT KNOWLEDGE"
)

// sections in their order.
func sections() []section {
	return []section{
		{"PROJECT CONTEXT", 1000, "line", "lines", Facts.context, false},
		{knowledgeTitle, 2000, "entry", "entries", func(f Facts) lines { return listed(f.Knowledge) }, true},
		{"CURRENT MILESTONE", 500, "task", "tasks", Facts.milestone, true},
		{"ACTIVE DIRECTIVES", 1500, "directive", "directives", func(f Facts) lines { return listed(f.Directives) }, true},
		{"COMPLETED WORK", 1500, "task", "tasks", Facts.completed, true},
	}
}

// Titles of all sections, in their order.
func Titles() (titles []string) {
	for _, s := range sections() {
		titles = append(titles, s.title)
	}
	return append(titles, ownTitle)
}

// KnowledgeRoom is how many bytes the lines of Facts.Knowledge can have together, with a line end between two of them.
func KnowledgeRoom() int {
	for _, s := range sections() {
		if s.title == knowledgeTitle {
			return s.tokens*bytesPerToken - len(heading(s.title))
		}
	}
	return 0
}

// Text for an agent whose work is the given instructions. If no section but the first has anything to say, there are no sections: the bounds
// follow the instructions.
func (f Facts) Text(work string) string {
	before := f.Before()
	if before == "" {
		return strings.TrimSpace(work + "\n\n" + f.Bounds)
	}
	return before + "\n\n" + heading(ownTitle) + work
}

// Before is everything before the instructions; empty if there are no sections.
func (f Facts) Before() string {
	var texts []string
	reason := false
	for _, s := range sections() {
		if text := s.text(f); text != "" {
			texts, reason = append(texts, text), reason || s.alone
		}
	}
	if !reason {
		return ""
	}
	return strings.Join(texts, "\n\n")
}

func heading(title string) string { return "## " + title + "\n\n" }

// text of a section; empty if it has nothing to say.
func (s section) text(f Facts) string {
	all := s.lines(f)
	if all.count == 0 {
		return ""
	}
	head := heading(s.title)
	return head + s.within(all, s.tokens*bytesPerToken-len(head))
}

// within gives as many of the first lines as have room in the given number of bytes, and says how many are left out.
func (s section) within(all lines, room int) string {
	var kept []string
	shown, size := 0, 0
	for i := range all.count {
		line := all.at(i)
		size += len(line) + len("\n")
		if size-len("\n") > room {
			break
		}
		kept = append(kept, line)
		if left := all.count - i - 1; left == 0 || size+len(s.left(left)) <= room {
			shown = i + 1
		}
	}
	kept = kept[:shown]
	if left := all.count - shown; left > 0 {
		kept = append(kept, s.left(left))
	}
	return strings.Join(kept, "\n")
}

// left says how many are left out.
func (s section) left(n int) string {
	unit := s.many
	if n == 1 {
		unit = s.one
	}
	return fmt.Sprintf("... %d more %s", n, unit)
}

// context says what the agent works on.
func (f Facts) context() lines {
	var list []string
	if f.Repository != "" {
		list = append(list, fmt.Sprintf("- Repository: %s, revision %s.", judge.Escape(f.Repository), judge.Escape(f.Revision)))
	}
	if f.Branch != "" {
		list = append(list, fmt.Sprintf("- The supervisor delivers valid work to the branch %s.", judge.Escape(f.Branch)))
	}
	if f.Bounds == "" {
		return listed(list)
	}
	if len(list) > 0 {
		list = append(list, "")
	}
	return listed(append(list, strings.Split(f.Bounds, "\n")...))
}

// milestone of the current task. A Feature with one task has none.
func (f Facts) milestone() lines {
	current, task, in := strings.Cut(f.Current, "/")
	if len(f.Tasks) < 2 || !in {
		return lines{}
	}
	var list []string
	position, count, last := 0, 0, ""
	for _, t := range f.Tasks {
		name, of, in := strings.Cut(t.Name, "/")
		if !in {
			continue
		}
		if name != last {
			count, last = count+1, name
		}
		if name != current {
			continue
		}
		position = count
		state := "to do"
		switch {
		case of == task:
			state = "your task"
		case t.Done:
			state = "done"
		case t.Aborted:
			state = "aborted"
		}
		list = append(list, fmt.Sprintf("- %s: %s", judge.Escape(of), state))
	}
	if len(list) == 0 {
		return lines{}
	}
	return listed(append([]string{fmt.Sprintf("Milestone %s, %d of %d. Your task is %s. The tasks of the milestone:", judge.Escape(current), position, count, judge.Escape(task))}, list...))
}

// completed and aborted tasks, the newest first. Those of which it is not known when they ended come last, in the reverse sequence of the list.
func (f Facts) completed() lines {
	var done []Task
	for _, t := range slices.Backward(f.Tasks) {
		if (t.Done || t.Aborted) && t.Name != f.Current {
			done = append(done, t)
		}
	}
	plain.SortStable(done, func(a, b *Task) int { return cmp.Compare(b.checkpoint(), a.checkpoint()) })
	return lines{len(done), func(i int) string { return f.done(done[i]) }}
}

// checkpoint that ended the task; 0 if it is not known.
func (t Task) checkpoint() int64 {
	if t.Work == nil {
		return 0
	}
	return t.Work.Checkpoint
}

// done is a completed or aborted task as one line.
func (f Facts) done(t Task) string {
	line := "- " + judge.Escape(t.Name)
	if t.Aborted {
		return line + f.aborted(t)
	}
	if t.Work == nil {
		return line
	}
	promoted := "nothing was promoted"
	switch n := t.Work.Promoted; {
	case n == 1:
		promoted = "1 checkpoint was promoted"
	case n > 1:
		promoted = fmt.Sprintf("%d checkpoints were promoted", n)
	}
	line += fmt.Sprintf(": done at checkpoint %s; %s.", naming.Checkpoint(f.Feature, t.Work.Checkpoint), promoted)
	if t.Work.Summary != "" {
		line += fmt.Sprintf(" Its agent said: %q", plain.Line(t.Work.Summary, protocol.MaxTaskSummary))
	}
	return line
}

// aborted says that a task is not done, and why.
func (f Facts) aborted(t Task) string {
	said := ": NOT done. The supervisor aborted it"
	if t.Work != nil {
		said += " at checkpoint " + naming.Checkpoint(f.Feature, t.Work.Checkpoint)
	}
	said += ", and its changes are not in the workspace."
	if why := plain.Line(t.Message, maxWhy); why != "" {
		said += fmt.Sprintf(" Why: %q", why)
	}
	return said
}

// maxWhy bounds why a task was aborted, in characters.
const maxWhy = 300

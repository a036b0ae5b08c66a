// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// maxCritical is how many tasks Critical directives of reviewers can add to a Feature. Later ones are given with the listed tasks.
const maxCritical = 32

// NextCritical is the next task for a Critical directive of a reviewer, of which the given ones are open, without its text. The directive must not have had one,
// the one before must be over, and no listed task may be unfinished.
func (s State) NextCritical(open []string) (t TaskAdded, is bool) {
	if name, _ := s.Unfinished(); name != "" {
		return t, false
	}
	had := map[string]bool{}
	for _, have := range s.Added {
		if protocol.Directs(have.Name) {
			if had[have.Name] = true; !s.Tasks[have.Name].Over() {
				return t, false
			}
		}
	}
	i := slices.IndexFunc(open, func(id string) bool { return !had[protocol.DirectivePrefix+id] })
	if i < 0 || len(had) >= maxCritical {
		return t, false
	}
	return TaskAdded{Name: protocol.DirectivePrefix + open[i], Directives: open[i : i+1], After: s.lastListed()}, true
}

// Complements says that only tasks for directives of reviewers are to come: the work could be delivered without them.
func (s State) Complements(o protocol.Orders) bool {
	return !slices.ContainsFunc(o.Tasks, func(t protocol.Task) bool { return !protocol.Extra(t.Name) && !s.Tasks[t.Name].Over() })
}

// lastListed is the name of the listed task that was over last; empty if there is none.
func (s State) lastListed() string {
	last := s.LastOver()
	for _, t := range s.Added {
		if t.Name == last && protocol.Directs(last) {
			return t.After
		}
	}
	return last
}

// escalated ends a Critical directive whose task was aborted: nothing of what the agent did for it is in the workspace.
func (s *State) escalated(task string, why *TaskAborted) {
	id, is := strings.CutPrefix(task, protocol.DirectivePrefix)
	if !is || !protocol.Directs(task) {
		return
	}
	d := protocol.Directive{ID: id}
	for _, list := range [][]protocol.Directive{s.Answered, s.Found} {
		if i := at(list, id); i >= 0 {
			d = list[i]
		}
	}
	e, is := s.Directives.Failed(id, why.Message, s.TasksDone())
	if !is || d.Source == "" {
		return
	}
	s.Directives = s.Directives.With([]directives.Entry{e})
	s.Answered = without(s.Answered, id)
	if at(s.Found, id) < 0 {
		s.Found = append(slices.Clone(s.Found), d)
	}
}

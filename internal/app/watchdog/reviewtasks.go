// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// directText is the task for a Critical directive, with its id and what it says.
const directText = "A reviewer has found a problem that the next tasks build on. Address directive %s of ACTIVE DIRECTIVES, or explain why it does not apply. Change nothing else. It says: %s"

// direct gives the agent a task for a Critical directive of a reviewer, before the next task.
func (x *acts) direct(ctx context.Context, open []protocol.Directive) (supervise.Event, error) {
	t, is := x.attempt.journal.State().NextCritical(idsOf(open))
	if !is { // orders have changed that
		return supervise.Consulted{}, nil
	}
	i := slices.IndexFunc(open, func(d protocol.Directive) bool { return d.ID == t.Directives[0] })
	t.Text = fmt.Sprintf(directText, open[i].ID, open[i].Description)
	x.log().InfoContext(ctx, "A reviewer has given a Critical directive: the agent gets a task for it", "task", t.Name, "after", t.After)
	if err := x.note(journal.Record{TaskAdded: &t}, "task added"); err != nil {
		return nil, err
	}
	return supervise.Directed{Task: t.Name}, nil
}

// idsOf directives.
func idsOf(list []protocol.Directive) (ids []string) {
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

// polishText is the task in which the agent addresses what reviewers have found.
const polishText = "The work is done. Address each directive of ACTIVE DIRECTIVES, or explain why it does not apply. Change nothing else, and keep what the work does as it is."

// polish gives the agent a task after the last one.
func (x *acts) polish(ctx context.Context, open []string) (supervise.Event, error) {
	name := x.attempt.journal.State().NextPolish(open)
	if name == "" { // orders have changed that
		return supervise.Consulted{}, nil
	}
	x.log().InfoContext(ctx, "Directives of reviewers are open: the agent polishes the work", "task", name, "directives", open)
	if err := x.note(journal.Record{TaskAdded: &journal.TaskAdded{Name: name, Text: polishText, Directives: open}}, "task added"); err != nil {
		return nil, err
	}
	return supervise.Polished{Task: name}, nil
}

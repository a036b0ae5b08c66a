// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// instructing composes what the agent of the last task of the largest plan is told, from orders and journal, next to the encoding of the same orders,
// which the watchdog does once for each change of them.
func instructing(t *testing.T, s scale, b *board.Board) {
	const tasks = 32 * 64
	o := protocol.Orders{
		Feature: protocol.FeatureRef{Name: "login"}, Repository: protocol.Repository{URL: "https://git.example.com/shop.git", Revision: "main"},
		Delivery: protocol.Delivery{Branch: "tidewaiter/login", Push: true},
	}
	j := journal.State{Tasks: map[string]journal.Task{}}
	for i := range tasks {
		name := fmt.Sprintf("milestone-%02d/task-%02d", i/64, i%64)
		o.Tasks = append(o.Tasks, protocol.Task{Name: name, Instructions: strings.Repeat("Add a form. ", 16)})
		j.Tasks[name] = journal.Task{Done: i < tasks-1, Work: protocol.TaskWork{Checkpoint: int64(i + 1), Promoted: 1, Summary: "The form is there."}}
	}
	for i := range protocol.MaxDirectives {
		o.Directives = append(o.Directives, protocol.Directive{ID: fmt.Sprint("d", i), Source: protocol.SourcePerson, Description: strings.Repeat("Take the labels. ", 30)})
	}
	j.Directives = j.Directives.With(j.Directives.Given(o.Directives, tasks-1).Follow())
	current := o.Tasks[tasks-1]
	var composed, encoded []time.Duration
	for range max(s.runs, 11) {
		began := time.Now()
		works := j.Works()
		f := instructions.Of(o, current.Name, "", func(name string) instructions.Task {
			return instructions.Task{Done: j.Tasks[name].Done, Work: works[name]}
		})
		f.Directives = j.Directives.Given(o.Directives, j.TasksDone()).Instructions()
		text := f.Text(current.Instructions)
		composed = append(composed, time.Since(began))
		for _, part := range []string{"\n\n## ACTIVE DIRECTIVES\n\n", "\n\n## COMPLETED WORK\n\n", " more directives\n", " more tasks\n"} {
			if !strings.Contains(text, part) {
				t.Fatalf("no %q in %s", part, text)
			}
		}
		began = time.Now()
		if _, err := json.Marshal(o); err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, time.Since(began))
	}
	b.Beside(fmt.Sprintf("instructions/tasks=%d", tasks), board.Quantile(composed, 0.5), board.Quantile(encoded, 0.5), board.AtMost(5))
}

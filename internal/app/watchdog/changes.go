// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/host/eventlog"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// maxFileChanges bounds the events of one checkpoint; how many more there were is told in one line.
const maxFileChanges = 20_000

// fileChange is one line of the log of file events: what happened to a path between two checkpoints. It is derived from
// their trees and not from what a watcher saw, so that it is true and complete; what came and went in between is not in it.
type fileChange struct {
	Timestamp time.Time `json:"timestamp"`
	// EventType is add, change, unlink, or omitted for a line that stands for more events than are kept.
	EventType string `json:"event_type"`
	// FilePath as it is where it is text, quoted as in Go where it is not.
	FilePath     string `json:"file_path"`
	FileSize     int64  `json:"file_size"`
	CheckpointID string `json:"checkpoint_id"`
	Omitted      int    `json:"omitted,omitempty"`
}

// logChanges writes the file events of a checkpoint. It is a log for people: where it cannot be written the checkpoint is
// none the worse, and the chain still holds everything that is in it.
func (w *workshop) logChanges(ctx context.Context, i journal.Intent) {
	err := w.writeChanges(ctx, i)
	w.health.tell(eventsHealth, "")
	if err != nil {
		w.health.tell(eventsHealth, "those of the last checkpoint are not logged: "+err.Error())
		w.Log.WarnContext(ctx, "File events are not logged", "checkpoint", i.Sequence, "error", err.Error())
	}
}

func (w *workshop) writeChanges(ctx context.Context, i journal.Intent) error {
	if i.Commit == i.OldChain {
		return nil
	}
	before := i.OldChain
	if before == "" {
		before = w.journal().Base.Commit
	}
	from, err := objects.ParseID(before)
	if err != nil {
		return err
	}
	to, err := objects.ParseID(i.Commit)
	if err != nil {
		return err
	}
	touched, err := w.repo.Touched(ctx, from, to)
	if err != nil {
		return err
	}
	if w.changes == nil {
		if w.changes, err = eventlog.Open(eventlog.Options{Path: w.Paths.changes(), KeyOf: checkpointOf}); err != nil {
			return err
		}
	}
	id := naming.Checkpoint(w.Feature, i.Sequence)
	if err = w.changes.Append(id, fileChanges(touched, i.Report.CapturedAt, id)...); err != nil {
		err = errors.Join(err, w.changes.Close())
		w.changes = nil
	}
	return err
}

func fileChanges(touched []git.Touched, at time.Time, id string) []any {
	kept := min(len(touched), maxFileChanges)
	events := make([]any, 0, kept+1)
	for _, t := range touched[:kept] {
		events = append(events, fileChange{Timestamp: at, EventType: eventType(t.Kind), FilePath: wholePath(t.Path), FileSize: t.Size, CheckpointID: id})
	}
	if more := len(touched) - kept; more > 0 {
		events = append(events, fileChange{Timestamp: at, EventType: "omitted", CheckpointID: id, Omitted: more})
	}
	return events
}

func eventType(k judge.Kind) string {
	switch k {
	case judge.Added:
		return "add"
	case judge.Deleted:
		return "unlink"
	case judge.Modified, judge.TypeChanged:
	}
	return "change"
}

// wholePath is a path of any length as text.
func wholePath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}

// checkpointOf is the key of a line.
func checkpointOf(line []byte) (string, bool) {
	var c fileChange
	err := json.Unmarshal(line, &c)
	return c.CheckpointID, err == nil && c.CheckpointID != ""
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/pod/eventlog"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxFileChanges bounds the events of one checkpoint; one line has the number of further ones.
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

// fileEvents is the log of them. It is a log for users: if it cannot be written, the checkpoint continues, and the chain
// still holds everything that is in it.
type fileEvents struct {
	path string
	log  *eventlog.Log // nil until there is one to write
}

// logChanges writes the file events of a checkpoint, and tells where it cannot.
func (r *recorder) logChanges(ctx context.Context, i journal.Intent) {
	err := r.writeChanges(ctx, i)
	r.Health.Tell(health.FileEvents, "")
	if err != nil {
		r.Health.Tell(health.FileEvents, "the log lacks the events of the last checkpoint: "+err.Error())
		r.Log.WarnContext(ctx, "Cannot log file events", "checkpoint", i.Sequence, "error", err.Error())
	}
}

func (r *recorder) writeChanges(ctx context.Context, i journal.Intent) error {
	if i.Commit == i.OldChain {
		return nil
	}
	before := i.OldChain
	if before == "" {
		before = r.Journal.State().Base.Commit
	}
	from, err := objects.ParseID(before)
	if err != nil {
		return err
	}
	to, err := objects.ParseID(i.Commit)
	if err != nil {
		return err
	}
	changes, err := r.Repository.Diff(ctx, from, to)
	if err != nil {
		return err
	}
	return r.events.append(naming.Checkpoint(r.Feature, i.Sequence), changes, i.Report.CapturedAt)
}

// append the events of a checkpoint, once.
func (f *fileEvents) append(id string, changes []judge.Change, at time.Time) (err error) {
	if f.log == nil {
		if f.log, err = eventlog.Open(eventlog.Options{Path: f.path, KeyOf: checkpointOf}); err != nil {
			return err
		}
	}
	if err = f.log.Append(id, fileChanges(changes, at, id)...); err != nil {
		err = errors.Join(err, f.close())
	}
	return err
}

func (f *fileEvents) close() error {
	if f.log == nil {
		return nil
	}
	log := f.log
	f.log = nil
	return log.Close()
}

func fileChanges(changes []judge.Change, at time.Time, id string) []any {
	kept := min(len(changes), maxFileChanges)
	events := make([]any, 0, kept+1)
	for _, c := range changes[:kept] {
		events = append(events, fileChange{Timestamp: at, EventType: eventType(c.Kind), FilePath: wholePath(c.Path), FileSize: c.New.Size, CheckpointID: id})
	}
	if more := len(changes) - kept; more > 0 {
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

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/host/trusted"
)

// entry is a checkpoint that the gateway has not taken yet.
type entry struct {
	sequence, previous    int64
	at                    time.Time
	task, verdict, action string
	// from and to are commits; equal where nothing was changed.
	from, to string
}

func entryOf(i journal.Intent, base string) entry {
	e := entry{
		sequence: i.Sequence, previous: i.Report.Previous, at: i.Report.CapturedAt, task: i.Report.Task, verdict: string(i.Report.Verdict), action: i.Report.Action,
		from: i.OldChain, to: i.Commit,
	}
	if e.from == "" {
		e.from = base
	}
	if i.Withheld != "" {
		e.action = protocol.ActionHeld
	}
	return e
}

// mostQueued bounds what is in memory. What comes beyond it is read from the journal when there is room.
const mostQueued = 4096

// queue of checkpoints. The journal is where they are kept: it is on the disk before anything is done, and says what has to be
// compared with what. A mark says how far the gateway has it.
type queue struct {
	dir   trusted.Dir
	ready chan struct{}
	// read the journal.
	read func(dir trusted.Dir, after int64) (entries []entry, more bool, err error)

	mu      sync.Mutex
	entries []entry
	// mark is the last checkpoint that the gateway has taken, last the newest that is known here.
	mark, last int64
	// behind: the journal has more than entries. Reading: it is being read, and may have.
	behind, reading bool
}

// mark is what is on the disk of it.
type mark struct {
	Checkpoint int64 `json:"checkpoint"`
}

func readMark(dir trusted.Dir) (int64, error) {
	var m mark
	text, err := os.ReadFile(dir.HandedOver())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return 0, fmt.Errorf("read which checkpoints the gateway has: %w", err)
	}
	return m.Checkpoint, nil
}

func newQueue(dir trusted.Dir, mark int64) *queue {
	return &queue{dir: dir, ready: make(chan struct{}, 1), read: readEntries, behind: true, mark: mark, last: mark}
}

// add a checkpoint that is in the journal. It never blocks for long.
func (q *queue) add(e entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.sequence > q.last {
		if q.behind || len(q.entries) >= mostQueued {
			q.behind = true
		} else {
			q.entries = append(q.entries, e)
		}
		q.last = e.sequence
	}
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next is the oldest checkpoint that the gateway has not taken; false where there is none.
func (q *queue) next() (entry, bool, error) {
	q.mu.Lock()
	if len(q.entries) == 0 && q.behind {
		// What is added meanwhile is in the journal before, or is added to the queue after.
		q.behind, q.reading = false, true
		after := q.mark
		q.mu.Unlock()
		read, more, err := q.read(q.dir, after)
		q.mu.Lock()
		q.reading = false
		if err != nil {
			q.behind = true
			q.mu.Unlock()
			return entry{}, false, err
		}
		q.merge(read, more)
	}
	defer q.mu.Unlock()
	if len(q.entries) == 0 {
		return entry{}, false, nil
	}
	return q.entries[0], true, nil
}

// merge what the journal had with what was added while it was read.
func (q *queue) merge(read []entry, more bool) {
	if more {
		q.entries, q.behind = read, true
		return
	}
	newest := q.mark
	if len(read) > 0 {
		newest = read[len(read)-1].sequence
	}
	for _, e := range q.entries {
		if e.sequence > newest {
			read = append(read, e)
		}
	}
	q.entries = read
	if len(read) > 0 {
		q.last = max(q.last, read[len(read)-1].sequence)
	}
}

// taken notes that the gateway has a checkpoint.
func (q *queue) taken(sequence int64) error {
	text, err := json.Marshal(mark{Checkpoint: sequence})
	if err == nil {
		err = trusted.Replace(q.dir.HandedOver(), text)
	}
	if err != nil {
		return fmt.Errorf("note that the gateway has checkpoint %d: %w", sequence, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mark = sequence
	if len(q.entries) > 0 && q.entries[0].sequence == sequence {
		q.entries = q.entries[1:]
	}
	return nil
}

// waiting says whether the gateway lacks anything that is known here, and how many checkpoints are in memory.
func (q *queue) waiting() (is bool, known int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries) > 0 || q.behind || q.reading, len(q.entries)
}

// readEntries of the journal that come after a checkpoint and were acted on, as many as there is room for.
func readEntries(dir trusted.Dir, after int64) (entries []entry, more bool, err error) {
	data, err := trusted.ReadJournal(dir)
	if errors.Is(err, trusted.ErrNoJournal) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	records, _, err := journal.Decode(data)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", trusted.ErrCorrupt, err)
	}
	base := ""
	var pending *journal.Intent
	for _, r := range records {
		switch {
		case r.Base != nil:
			base = r.Base.Commit
		case r.Intent != nil:
			i := *r.Intent
			pending = &i
		case r.Withheld != nil && pending != nil && pending.Sequence == r.Withheld.Sequence:
			pending.Withheld = r.Withheld.Reason
		case r.Done != nil && pending != nil && pending.Sequence == r.Done.Sequence && pending.Sequence > after:
			if len(entries) == mostQueued {
				return entries, true, nil
			}
			entries = append(entries, entryOf(*pending, base))
		}
	}
	return entries, false, nil
}

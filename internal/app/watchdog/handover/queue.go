// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/history"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// entry is a checkpoint, a step of steering, or an entry of the history, that the gateway has not taken yet.
type entry struct {
	// steering is the step, and history the entry of the history; both are nil for a checkpoint, which the other fields are about.
	steering *protocol.SteeringStep
	history  *protocol.HistoryEntry

	sequence, previous    int64
	at                    time.Time
	task, verdict, action string
	// from and to are commits; equal where nothing was changed.
	from, to string
}

// String names it in logs.
func (e entry) String() string {
	if e.steering != nil {
		return fmt.Sprintf("step %d of steering", e.steering.Sequence)
	}
	if e.history != nil {
		return fmt.Sprintf("entry %d of the history", e.history.Sequence)
	}
	return fmt.Sprintf("checkpoint %d", e.sequence)
}

// bytes of memory that it refers to.
func (e entry) bytes() int {
	switch {
	case e.steering != nil:
		return len(e.steering.Evidence) + len(e.steering.Message) + len(e.steering.Before) + len(e.steering.After)
	case e.history != nil:
		return len(e.history.Message) + len(e.history.Text)
	}
	return 0
}

func entryOf(i journal.Intent, base string) entry {
	e := entry{
		sequence: i.Sequence, previous: i.Report.Previous, at: i.Report.CapturedAt, task: i.Report.Task, verdict: string(i.Report.Verdict), action: i.Report.Action,
		from: i.OldChain, to: i.Commit,
	}
	// Until something changes the chain has no commit of its own.
	e.from, e.to = cmp.Or(e.from, base), cmp.Or(e.to, base)
	if i.Withheld != "" {
		e.action = protocol.ActionHeld
	}
	return e
}

// mostQueued entries with mostBytes are in memory. What comes beyond them is read from the journal when there is room.
const mostQueued, mostBytes = 4096, 2 << 20

// queue of checkpoints, of steps of steering, and of entries of the history. The journal is where they are kept: it is on the disk before anything is done, and says
// what has to be compared with what. A mark says how far the gateway has it.
type queue struct {
	dir   trusted.Dir
	ready chan struct{}
	// read the journal.
	read func(dir trusted.Dir, after mark) (entries []entry, more bool, err error)

	mu      sync.Mutex
	entries []entry
	// bytes of entries.
	bytes int
	// mark is what the gateway has taken, last the newest that is known here.
	mark, last mark
	// behind: the journal has more than entries. Reading: it is being read, and may have.
	behind, reading bool
}

// mark is the number of the newest checkpoint, that of the newest step of steering, and that of the newest entry of the history. It is what is
// on the disk of a queue.
type mark struct {
	Checkpoint int64 `json:"checkpoint"`
	Steering   int64 `json:"steering,omitempty"`
	History    int64 `json:"history,omitempty"`
}

// has says whether an entry is before the mark.
func (m mark) has(e entry) bool {
	if e.steering != nil {
		return e.steering.Sequence <= m.Steering
	}
	if e.history != nil {
		return e.history.Sequence <= m.History
	}
	return e.sequence <= m.Checkpoint
}

// with is the mark behind an entry, too.
func (m mark) with(e entry) mark {
	switch {
	case e.steering != nil:
		m.Steering = max(m.Steering, e.steering.Sequence)
	case e.history != nil:
		m.History = max(m.History, e.history.Sequence)
	default:
		m.Checkpoint = max(m.Checkpoint, e.sequence)
	}
	return m
}

func readMark(dir trusted.Dir) (mark, error) {
	var m mark
	text, err := os.ReadFile(dir.HandedOver())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return mark{}, fmt.Errorf("read what the gateway has: %w", err)
	}
	return m, nil
}

func newQueue(dir trusted.Dir, have mark) *queue {
	return &queue{dir: dir, ready: make(chan struct{}, 1), read: readEntries, behind: true, mark: have, last: have}
}

// add what is in the journal. It never blocks for long.
func (q *queue) add(e entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.last.has(e) {
		if q.behind || len(q.entries) > 0 && (len(q.entries) >= mostQueued || q.bytes+e.bytes() > mostBytes) {
			q.behind = true
		} else {
			q.entries, q.bytes = append(q.entries, e), q.bytes+e.bytes()
		}
		q.last = q.last.with(e)
	}
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next is the oldest that the gateway has not taken; false where there is none.
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
	newest := q.mark
	for _, e := range read {
		newest = newest.with(e)
	}
	for _, e := range q.entries {
		if !more && !newest.has(e) {
			read = append(read, e)
		}
	}
	q.entries, q.bytes, q.behind = read, 0, q.behind || more
	for _, e := range read {
		q.last, q.bytes = q.last.with(e), q.bytes+e.bytes()
	}
}

// taken notes that the gateway has an entry.
func (q *queue) taken(e entry) error {
	q.mu.Lock()
	have := q.mark.with(e)
	q.mu.Unlock()
	text, err := json.Marshal(have)
	if err == nil {
		err = durable.Replace(q.dir.HandedOver(), text)
	}
	if err != nil {
		return fmt.Errorf("note that the gateway has %s: %w", e, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mark = have
	if len(q.entries) > 0 && have.has(q.entries[0]) {
		q.bytes -= q.entries[0].bytes()
		q.entries = q.entries[1:]
	}
	return nil
}

// waiting says whether the gateway lacks anything that is known here, and how many entries are in memory.
func (q *queue) waiting() (is bool, known int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries) > 0 || q.behind || q.reading, len(q.entries)
}

// readEntries of the journal that come after a mark: checkpoints that were acted on, steps of steering, and entries of the history; as many as
// there is room for.
func readEntries(dir trusted.Dir, after mark) (entries []entry, more bool, err error) {
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
	bytes, read := 0, newReader()
	for position, r := range trusted.Positions(records) {
		for _, e := range read.entries(position, r) {
			if after.has(e) {
				continue
			}
			if len(entries) > 0 && (len(entries) >= mostQueued || bytes+e.bytes() > mostBytes) {
				return entries, true, nil
			}
			entries, bytes = append(entries, e), bytes+e.bytes()
		}
	}
	return entries, false, nil
}

// reader of a whole journal.
type reader struct {
	base    string
	pending *journal.Intent
	walk    journal.Walk
	teller  *history.Teller
	// lost: the records do not add up, so that what follows has no history. Checkpoints and steps of steering need none.
	lost bool
}

func newReader() *reader { return &reader{teller: history.NewTeller(journal.State{})} }

// entries of the next record.
func (x *reader) entries(position int64, r journal.Record) []entry {
	var list []entry
	switch {
	case r.Base != nil:
		x.base = r.Base.Commit
	case r.Intent != nil:
		i := *r.Intent
		x.pending = &i
	case r.Withheld != nil && x.pending != nil && x.pending.Sequence == r.Withheld.Sequence:
		x.pending.Withheld = r.Withheld.Reason
	case r.Done != nil && x.pending != nil && x.pending.Sequence == r.Done.Sequence:
		list = append(list, entryOf(*x.pending, x.base))
	case r.Steered != nil:
		list = append(list, entry{steering: r.Steered})
	}
	if x.lost {
		return list
	}
	state, err := x.walk.Next(r)
	if x.lost = err != nil; x.lost {
		return list
	}
	return append(list, told(x.teller, position, state, r)...)
}

// told are the entries of the history that a record has.
func told(t *history.Teller, position int64, after journal.State, r journal.Record) []entry {
	var list []entry
	for _, e := range t.Tell(position, after, r) {
		list = append(list, entry{history: &e})
	}
	return list
}

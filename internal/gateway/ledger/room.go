// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// lookTime is how long the measured room counts as available, while little is recorded.
	lookTime = time.Second
	// dropSteps is how many transactions a batch of calls waits for, so that it does not wait long.
	dropSteps = 8
	// roomTime bounds the making of room. Calls may be recorded all the same.
	roomTime = 5 * time.Second
	// tellTime is the pause between two lines of the log about what was dropped.
	tellTime = time.Minute
	// dropped replaces answers that made room.
	dropped = "[dropped: the ledger was nearly full, and no other Feature had more of it]"
)

// Dropped has the records of a Feature that the ledger dropped to make room for calls.
type Dropped struct {
	Owner

	// Answers is the number of calls that lost only their answers, and Calls the number of calls of which only the totals remain.
	Answers, Calls int
	// Bytes that this gave back.
	Bytes int64
}

// fullness is what is known of the room for calls. One goroutine has it: that which records them.
type fullness struct {
	ledger *Ledger
	// size that is configured, in bytes; 0 for none.
	size    uint64
	dropped func(Dropped)

	// looked is when the room was looked at, and recorded how many bytes were recorded since then, of the many before it is looked at again.
	looked         time.Time
	recorded, many int64
	// told is when the log had its last line, and untold what was dropped since then.
	told    time.Time
	untold  []Dropped
	nothing bool
}

func (l *Ledger) newFullness(o Options) *fullness {
	return &fullness{ledger: l, size: uint64(max(o.Size, 0)), dropped: o.Dropped}
}

// room that the ledger has. A Size of 0 is not known.
func (f *fullness) room(ctx context.Context) (core.Room, error) {
	l := f.ledger
	var room core.Room
	if l.dir != "" {
		var s unix.Statfs_t
		if err := unix.Statfs(l.dir, &s); err != nil {
			return room, fmt.Errorf("look at the volume of the ledger: %w", err)
		}
		// What the file has given back is free, too.
		var pages, each uint64
		if err := l.reader.QueryRowContext(ctx, selectFree).Scan(&pages, &each); err != nil {
			return room, err
		}
		block := uint64(max(s.Bsize, 0))
		room = core.Room{Free: s.Bavail*block + pages*each, Size: s.Blocks * block}
	}
	if f.size == 0 {
		return room, nil
	}
	var stored uint64
	if err := l.reader.QueryRowContext(ctx, selectStored).Scan(&stored); err != nil {
		return room, err
	}
	return room.Tighter(core.Room{Free: f.size - min(stored, f.size), Size: f.size}), nil
}

// makeRoom for a batch of calls. If the ledger is nearly full, the Feature with the most loses the oldest of it, so that no Feature that
// has no more than an equal share of the whole loses anything. A failure is logged: the calls may be recorded all the same.
func (f *fullness) makeRoom(batch []*settlement) {
	log, now := f.ledger.log, f.ledger.now()
	for _, s := range batch {
		f.recorded += s.stored()
	}
	if f.recorded <= f.many && now.Sub(f.looked).Abs() < lookTime {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), roomTime)
	defer cancel()
	for range dropSteps {
		room, err := f.room(ctx)
		if err != nil {
			log.Warn("Cannot find out how much room the ledger has", "error", err.Error())
			return
		}
		f.looked, f.recorded, f.many = now, 0, room.Often()
		lacking := room.Lacking()
		if lacking == 0 {
			break
		}
		lost, err := f.drop(ctx, lacking)
		if err != nil {
			log.Warn("Cannot make room in the ledger", "error", err.Error())
			return
		}
		f.note(lost)
		if lost == (Dropped{}) {
			break
		}
	}
	if (len(f.untold) > 0 || f.nothing) && now.Sub(f.told).Abs() >= tellTime {
		f.told = now
		f.tell()
	}
}

// note what was dropped; nothing, where there is nothing that could be.
func (f *fullness) note(lost Dropped) {
	if f.nothing = lost == (Dropped{}); f.nothing {
		return
	}
	if f.dropped != nil {
		f.dropped(lost)
	}
	for i, u := range f.untold {
		if u.FeatureUID == lost.FeatureUID {
			f.untold[i].Answers, f.untold[i].Calls, f.untold[i].Bytes = u.Answers+lost.Answers, u.Calls+lost.Calls, u.Bytes+lost.Bytes
			return
		}
	}
	f.untold = append(f.untold, lost)
}

// tell what was dropped, and of whom.
func (f *fullness) tell() {
	for _, u := range f.untold {
		f.ledger.log.Warn("The ledger is nearly full: the Feature that has the most of it loses its oldest answers, then its oldest calls. Make the volume larger, or lower retention.ledgerPeriod",
			"feature", u.Namespace+"/"+u.Feature, "answers", u.Answers, "calls", u.Calls, "bytes", u.Bytes)
	}
	if f.nothing {
		f.ledger.log.Error("The ledger is nearly full, and not by calls: make its volume larger, or remove what else is there")
	}
	f.untold, f.nothing = nil, false
}

// drop the oldest of the Feature with the most, in one transaction: answers, as long as there are any, and then whole calls. What calls have used
// stays in the totals.
func (f *fullness) drop(ctx context.Context, lacking int64) (lost Dropped, err error) {
	mark := f.ledger.bodies.compress([]byte(dropped))
	err = f.ledger.write(ctx, "make room in the ledger", quick, func(tx *transaction) error {
		lost = Dropped{}
		switch err := tx.QueryRowContext(ctx, selectLargest).Scan(&lost.FeatureUID, &lost.Namespace, &lost.Feature); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		uid := lost.FeatureUID
		var last, from int64
		if err := tx.QueryRowContext(ctx, lockStored, uid).Scan(&last, &from); err != nil {
			return err
		}
		if from == last {
			return lost.dropCalls(ctx, tx, last, min(lacking/core.RowBytes+1, maxExpired))
		}
		until, err := lost.choose(ctx, tx, from, lacking, int64(len(mark)))
		if err != nil {
			return err
		}
		if until == from { // these calls have passed
			until = last
		}
		if _, err := tx.ExecContext(ctx, dropAnswers, uid, from, until, mark, []byte{}, len(mark)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, takeStored, uid, lost.Bytes, until)
		return err
	})
	return lost, err
}

// dropCalls removes the oldest calls of a Feature, of which the newest has a number.
func (d *Dropped) dropCalls(ctx context.Context, tx *transaction, last, limit int64) (err error) {
	if d.Calls, d.Bytes, err = removeCalls(ctx, tx, dropInteractions, d.FeatureUID, limit); err != nil {
		return err
	}
	taken := d.Bytes
	if d.Calls == 0 { // the account is wrong: nobody else would lose anything before it is right
		taken = math.MaxInt64
	}
	if _, err := tx.ExecContext(ctx, takeStored, d.FeatureUID, taken, last); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, forgetFeature, d.FeatureUID)
	return err
}

// choose answers that give back what is lacking, the oldest first after a number; not more than a transaction should have. Until is the number
// of the last one.
func (d *Dropped) choose(ctx context.Context, tx *transaction, after, lacking, mark int64) (until int64, err error) {
	rows, err := tx.QueryContext(ctx, selectAnswers, d.FeatureUID, after, maxExpired)
	if err != nil {
		return after, err
	}
	defer rows.Close()
	for until = after; d.Bytes < min(lacking, maxBatchBytes) && rows.Next(); {
		var size int64
		if err := rows.Scan(&until, &size); err != nil {
			return after, err
		}
		if size > mark {
			d.Answers, d.Bytes = d.Answers+1, d.Bytes+size-mark
		}
	}
	return until, rows.Err()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// maxBatch is how many calls share a transaction. What a commit costs is then no more than what its rows cost.
	maxBatch = 64
	// maxBatchBytes bounds the compressed answers of a transaction, so that others do not wait long for it.
	maxBatchBytes = 8 << 20
	// commitTime bounds a transaction. A caller may give up before, or try again.
	commitTime = 15 * time.Second
)

// errClosed is what is said of calls that come after Close.
var errClosed = errors.New("the ledger is closed")

// settlement is a call that waits for being recorded, and for the answer.
type settlement struct {
	reservation string
	// entry is bounded and without secrets; its answers are in raw and formatted, compressed.
	entry          core.Interaction
	raw, formatted []byte
	// results of tools, compressed.
	results    []byte
	violations string
	// count of calls that it stands for, where folds says that its row is one for many.
	count int64
	folds bool
	// refused before it reached a backend: it counts in no total.
	refused bool
	done    chan error
}

// Settle records an ended call and releases its reservation. When it returns nil, both survive a crash of the machine. It leaves an
// existing record as it is. Calls that end at the same time share a transaction. A call that failed and cost nothing shares its row with
// others: the ledger then does not keep its ID, and a repeated call of Settle may count twice.
func (l *Ledger) Settle(ctx context.Context, reservationID string, i core.Interaction) error {
	const what = "record a call"
	if i.ID == "" || len(i.ID) > maxID || i.FeatureUID == "" {
		return fmt.Errorf("%s: give it an ID of 1 to %d bytes and the UID of its Feature", what, maxID)
	}
	s, err := l.prepare(ctx, i)
	if err != nil {
		return l.explain(ctx, what, err)
	}
	s.reservation = word(reservationID, maxID)
	select {
	case l.queue <- s:
	case <-l.closing:
		return fmt.Errorf("%s: %w", what, errClosed)
	case <-ctx.Done():
		return l.explain(ctx, what, ctx.Err())
	}
	select {
	case err = <-s.done:
	case <-l.stopped: // it came too late, or it was the last
		select {
		case err = <-s.done:
		default:
			err = errClosed
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	return l.explain(ctx, what, err)
}

// settleAll records calls until the ledger is closed. A single call does not wait for others; calls that come while one is being recorded
// are recorded together.
func (l *Ledger) settleAll() {
	defer close(l.stopped)
	for {
		select {
		case first := <-l.queue:
			l.settle(l.batch(first))
		case done := <-l.refused.due:
			l.refused.settle()
			close(done)
		case <-l.closing:
			for {
				select {
				case first := <-l.queue:
					l.settle(l.batch(first))
				default:
					l.refused.settle()
					l.full.tell()
					return
				}
			}
		}
	}
}

// batch is what has come, and what comes from those who wait for nothing but a processor: on a busy machine they are several, and the first of them
// would have a transaction of its own.
func (l *Ledger) batch(first *settlement) []*settlement {
	batch, size := []*settlement{first}, first.size()
	for had := 0; had < len(batch); {
		had = len(batch)
		runtime.Gosched()
		for len(l.queue) > 0 && len(batch) < maxBatch && size < maxBatchBytes { // nobody else takes any
			next := <-l.queue
			batch, size = append(batch, next), size+next.size()
		}
	}
	return batch
}

func (s *settlement) size() int {
	return len(s.raw) + len(s.formatted) + len(s.results) + len(s.violations)
}

// settle records calls together.
func (l *Ledger) settle(batch []*settlement) {
	l.full.makeRoom(batch)
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	used, err := l.record(ctx, durable, batch)
	l.failed.Store(err != nil)
	if err == nil {
		l.reservations.settled(batch, used)
	}
	for _, s := range batch {
		s.done <- err
	}
}

// writable fails where the last call could not be recorded, and a trial shows that the next one could not be either. While one is
// tried the others are refused: SQLite does not end a wait with the context of who waits.
func (l *Ledger) writable(ctx context.Context) error {
	if !l.failed.Load() {
		return nil
	}
	if !l.trial.TryLock() {
		return ErrUnavailable
	}
	defer l.trial.Unlock()
	err := l.write(ctx, "try whether calls can be recorded", quick, func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, upsertReservation, "trial", "", "", 0, 0, 0, l.now().UnixNano()) // has passed, and is removed as others are
		return err
	})
	if err == nil {
		l.failed.Store(false)
	}
	return err
}

// account is whose total it is, and of when.
type account struct {
	scope       core.Scope
	key, period string
}

// record calls in one transaction, and say what is used of each account then. Rows that several replicas change are locked in the same order
// everywhere: Features, then projects, then the one of all.
func (l *Ledger) record(ctx context.Context, d durability, batch []*settlement) (used map[account]core.Amount, err error) {
	err = l.write(ctx, "record calls", d, func(tx *transaction) error {
		if err := tx.lockFeatures(ctx, batch); err != nil {
			return err
		}
		charged := map[account]charges{}
		for _, s := range folded(batch) {
			fresh, err := s.store(ctx, tx, tx.features[s.entry.FeatureUID].last+1)
			if err != nil {
				return err
			}
			rows := int64(0)
			if fresh {
				f := tx.features[s.entry.FeatureUID]
				f.last++
				tx.features[s.entry.FeatureUID] = f
				rows = 1
			}
			if fresh || s.folds {
				s.charge(charged, rows)
			}
		}
		for _, s := range batch {
			if s.reservation == "" {
				continue
			}
			if err := l.reservations.settle(ctx, tx, s.reservation); err != nil {
				return err
			}
		}
		used, err = addAll(ctx, tx, charged)
		return err
	})
	return used, err
}

// feature is what its row in features says, and the number of its newest row in interactions.
type feature struct {
	Owner

	last int64
}

// mostFeatures bounds the remembered Features: many more than are at work. Above it, all are read again.
const mostFeatures = 4096

// lockFeatures of calls, and find out which number the newest row of each has. Features known from the transaction before need neither:
// nobody else writes.
func (t *transaction) lockFeatures(ctx context.Context, batch []*settlement) error {
	owners := map[string]Owner{}
	for _, s := range batch {
		owners[s.entry.FeatureUID] = Owner{s.entry.FeatureUID, s.entry.Namespace, s.entry.Feature, s.entry.Keep}
	}
	if t.features == nil || len(t.features)+len(owners) > mostFeatures {
		t.features = map[string]feature{}
	}
	for _, uid := range slices.Sorted(maps.Keys(owners)) {
		if t.features[uid].Owner == owners[uid] {
			continue
		}
		var last int64
		if err := t.QueryRowContext(ctx, lockTotals, string(core.Feature), uid, "").Scan(&last); err != nil {
			return err
		}
		if _, err := keepFeature(ctx, t, owners[uid]); err != nil {
			return err
		}
		t.features[uid] = feature{owners[uid], last}
	}
	t.calls = true
	return nil
}

// charges of an account: what calls have used, and the rows that were added for them.
type charges struct {
	core.Usage

	rows, stored int64
}

// stored is how much of the ledger the row of a call takes, in bytes.
func (s *settlement) stored() int64 { return core.RowBytes + int64(s.size()) }

// charge adds a call to the totals of the period in which it ended.
func (s *settlement) charge(used map[account]charges, rows int64) {
	calls := s.count
	if s.refused {
		calls = 0
	}
	amount, cached := bounded(s.entry.Tokens.Amount(s.entry.Cost)), min(max(s.entry.Tokens.Cached, 0), maxTokens)
	for a := range s.accounts() {
		if s.refused && a.scope != core.Feature {
			continue
		}
		u := used[a]
		next := charges{core.Usage{Amount: u.Plus(amount), Cached: u.Cached + cached, Calls: u.Calls + calls}, u.rows + rows, u.stored}
		if a.scope == core.Feature {
			next.stored += rows * s.stored()
		}
		used[a] = next
	}
}

// accounts that the call counts in.
func (s *settlement) accounts() iter.Seq[account] {
	return func(yield func(account) bool) {
		for _, scope := range scopes {
			key, _ := keyOf(core.Reservation{FeatureUID: s.entry.FeatureUID, Namespace: s.entry.Namespace}, scope)
			if !yield(account{scope, key, scope.Period(s.entry.At)}) {
				return
			}
		}
		if s.entry.Role == policy.RoleSupervisor { // whoever takes this row has that of the Feature
			yield(account{core.Supervisor, s.entry.FeatureUID, core.Supervisor.Period(s.entry.At)})
		}
	}
}

// addAll adds to totals, and gives what is used then.
func addAll(ctx context.Context, tx *transaction, charged map[account]charges) (map[account]core.Amount, error) {
	used := make(map[account]core.Amount, len(charged))
	accounts := slices.SortedFunc(maps.Keys(charged), func(a, b account) int {
		return cmp.Or(cmp.Compare(slices.Index(scopes, a.scope), slices.Index(scopes, b.scope)), cmp.Compare(a.key, b.key), cmp.Compare(a.period, b.period))
	})
	for _, a := range accounts {
		var total core.Amount
		u := charged[a]
		row := tx.QueryRowContext(ctx, addTotals, string(a.scope), a.key, a.period, u.Input, u.Cached, u.Output, u.Cost, u.Calls, u.rows, u.stored)
		if err := row.Scan(&total.Input, &total.Output, &total.Cost); err != nil {
			return nil, err
		}
		used[a] = total
	}
	return used, nil
}

// store the row of a call, or count it in the one that it shares; not fresh, where the row was there.
func (s *settlement) store(ctx context.Context, tx *transaction, sequence int64) (fresh bool, err error) {
	if s.folds {
		return s.fold(ctx, tx, sequence)
	}
	if fresh, err = s.insert(ctx, tx, sequence); err == nil && fresh && s.noted() {
		err = s.note(ctx, tx)
	}
	return fresh, err
}

// noted says that the call has additional content.
func (s *settlement) noted() bool {
	used := s.entry.Tokens.Uses
	used.Searches = 0 // which the row has
	return s.entry.Detail != "" || used != core.Uses{}
}

// insert adds the row of a call; not fresh, where it is there.
func (s *settlement) insert(ctx context.Context, tx *transaction, sequence int64) (fresh bool, err error) {
	i := s.entry
	result, err := tx.ExecContext(ctx, insertInteraction, i.ID, i.At.UnixNano(), i.FeatureUID, i.Namespace, i.Feature, i.Attempt, i.Task, sequence,
		i.Dialect, i.Backend, i.ModelAsked, i.Model, i.Role, i.RequestDigest, i.RequestBytes, i.TemplateHash, i.AnswerBytes, s.violations, i.Retries,
		i.Tokens.Input, i.Tokens.Output, i.Tokens.Cached, i.Cost, i.Status, i.Reason, int64(i.FirstByte), int64(i.Duration),
		i.Tokens.Writes, i.Tokens.LongWrites, i.Tokens.Searches, flag(i.Estimated), i.OutputLimit, s.raw, s.formatted, i.Turn, s.results)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// flag is 1 for true: SQLite has no booleans.
func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

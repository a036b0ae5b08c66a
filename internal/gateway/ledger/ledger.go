// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the long record of model calls in an SQL database: requests and answers, their cost, and what calls in progress may
// still cost. The database is SQLite, in a file, or PostgreSQL, which several replicas share. internal/core/ledger decides.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// tries of a transaction whose connection was lost or that another one was in the way of. Each loses one connection, and
	// there may be as many of them as are kept.
	tries = connections + 1
	// openTime bounds the opening of a database with its migrations.
	openTime = time.Minute
)

// ErrNotFound is wrapped if the ledger does not have the record.
var ErrNotFound = errors.New("the ledger does not have it")

// Options of a Ledger. URL, Log and Now are required.
type Options struct {
	// URL of the database: sqlite:///path/to/file or postgres://user:password@host:port/database.
	URL string
	Log *slog.Logger
	Now func() time.Time
	// Size is how much the ledger may store, in bytes. Without it, the volume limits SQLite, and nothing limits PostgreSQL.
	Size int64
	// Dropped gets what the ledger dropped to make room.
	Dropped func(Dropped)
}

// Ledger is the record. Make it with Open. Its methods are safe for concurrent use, and each may be called again when it
// has failed.
type Ledger struct {
	log    *slog.Logger
	now    func() time.Time
	engine engine
	handles
	prepared map[string]*sql.Stmt
	bodies   *bodies
	queue    chan *settlement
	refused  *refusals
	full     *fullness
	// changing is full while the changes of a checkpoint, or a step of steering, are recorded.
	changing chan struct{}
	closing  chan struct{}
	closed   sync.Once
	// stopped is closed when nothing is settled any more.
	stopped      chan struct{}
	reservations reservations
	// features of which the last transaction has recorded calls, by UID, where nobody else writes. Who has the connection that writes has them.
	features map[string]feature
	// failed says that the last calls could not be recorded.
	failed atomic.Bool
	trial  sync.Mutex
}

// Open opens the database and brings its tables to this version. A database that cannot be reached now is ErrUnavailable.
// No error has the URL's password.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	e, err := engineOf(o.URL)
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		log: o.Log, now: o.Now, engine: e, bodies: newBodies(), queue: make(chan *settlement, maxBatch), changing: make(chan struct{}, 1),
		closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	l.refused, l.full = l.newRefusals(), l.newFullness(o)
	if l.handles, err = e.open(); err == nil {
		err = e.migrate(ctx, l.writer)
	}
	if err == nil {
		l.prepared, err = prepared(ctx, l.writer)
	}
	if err == nil {
		l.reservations, err = e.reservations(ctx, l)
	}
	if err != nil {
		return nil, errors.Join(l.explain(ctx, "open the ledger", err), l.handles.close())
	}
	l.log.Info("Opened the ledger", "database", e.describe())
	go l.settleAll()
	return l, nil
}

// Close waits for the settling in progress and closes the database.
func (l *Ledger) Close() error {
	l.closed.Do(func() { close(l.closing) })
	<-l.stopped
	l.reservations.end()
	return l.handles.close()
}

// durability of a transaction.
type durability bool

const (
	// durable: it survives a crash of the machine once it has ended.
	durable durability = true
	// quick: a crash of the machine may take it back, in the order of transactions. A crash of the process may not. SQLite is always durable.
	quick durability = false
)

// write runs a function in a transaction; more than once, where a connection is lost.
func (l *Ledger) write(ctx context.Context, what string, d durability, do func(tx *transaction) error) error {
	return l.explain(ctx, what, retry(func() error { return l.transact(ctx, d, do) }))
}

func (l *Ledger) transact(ctx context.Context, d durability, do func(tx *transaction) error) (err error) {
	conn, err := l.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back
	ctx = l.engine.statements(ctx)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the error before it says more
		}
	}()
	if promise := l.engine.promise(d); promise != "" {
		if _, err := tx.ExecContext(ctx, promise); err != nil {
			return err
		}
	}
	t := &transaction{Tx: tx, engine: l.engine, prepared: l.prepared, bound: map[string]*sql.Stmt{}}
	alone := l.lock != nil // with one connection that writes, which this transaction has
	if alone {
		t.features, l.features = l.features, nil // until they are true
	}
	if err := do(t); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if alone && t.calls {
		l.features = t.features
	}
	return nil
}

// read runs a function that reads; more than once, where a connection is lost.
func (l *Ledger) read(ctx context.Context, what string, do func(db *sql.DB) error) error {
	return l.explain(ctx, what, retry(func() error { return do(l.reader) }))
}

// retry a function whose connection is lost.
func retry(do func() error) error {
	var err error
	for range tries {
		if err = do(); err == nil || !again(err) {
			break
		}
	}
	return err
}

// Usage returns the totals of a scope in its current period; key is as in core.Budget. Calls that were removed count.
func (l *Ledger) Usage(ctx context.Context, scope core.Scope, key string) (core.Usage, error) {
	var u core.Usage
	err := l.read(ctx, "read the usage", func(db *sql.DB) error {
		u = core.Usage{}
		row := db.QueryRowContext(ctx, selectTotals, string(scope), word(key, maxWord), scope.Period(l.now()))
		err := row.Scan(&u.Input, &u.Cached, &u.Output, &u.Cost, &u.Calls)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return u, err
}

// explain says what failed, and whether to try again. Errors of a decision stay as they are.
func (l *Ledger) explain(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case unavailable(err):
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

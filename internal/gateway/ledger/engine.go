// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// connections that are open at most.
	connections = 8
	// dialTime bounds a connection to a server, where its URL has no connect_timeout.
	dialTime = 5 * time.Second
	// busyTime is how long SQLite waits for another process that writes: a backup, or a shell.
	busyTime = 10 * time.Second
	// lockSuffix of the lock file next to the database: SQLite has locks of its own on the database.
	lockSuffix = "-lock"
	// idleTime is how long a server waits for the next statement of a transaction. A replica that is lost, or that hangs, would keep
	// its locks for as long as TCP believes in it; the next statement of one that works comes within milliseconds.
	idleTime = 5 * time.Second
	// migrationLock is the advisory lock of replicas that start at the same time: "ledger" in ASCII.
	migrationLock = 0x6c6564676572
)

//go:embed migrations/*.sql
var migrations embed.FS

// engine is all that SQLite and PostgreSQL differ in. Tables and statements are the same: both take $1 as a placeholder, ON
// CONFLICT and RETURNING.
type engine interface {
	// open makes handles. It need not connect. Those that it has made when it fails have to be closed, too.
	open() (handles, error)
	// migrate brings the tables to this version.
	migrate(ctx context.Context, db *sql.DB) error
	// promise is a statement at the beginning of a transaction, so that it is as durable as asked for; empty where it is so anyway.
	promise(d durability) string
	// statements gives the context in which the statements of a transaction are carried out.
	statements(ctx context.Context) context.Context
	// reservations of an open ledger.
	reservations(ctx context.Context, l *Ledger) (reservations, error)
	// describe it for logs, without secrets.
	describe() string
}

// handles of an open database. Writer and reader are the same for PostgreSQL.
type handles struct {
	writer, reader *sql.DB
	// lock keeps other processes away, if only one may have the database; nil otherwise.
	lock *os.File
	// dir that the database is in; empty where it is on a server.
	dir string
}

func (h handles) close() error {
	var errs []error
	for _, db := range []*sql.DB{h.writer, h.reader} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if h.lock != nil {
		if err := h.lock.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// engineOf reads a URL. It is in no error: it may have a password.
func engineOf(text string) (engine, error) {
	scheme, _, _ := strings.Cut(text, ":")
	switch scheme {
	case "sqlite":
		u, err := url.Parse(text)
		if err != nil || u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return nil, errors.New("the ledger's URL cannot be read: write sqlite:///path/to/file, with three slashes and nothing after the path")
		}
		return &sqliteEngine{path: u.Path}, nil
	case "postgres", "postgresql":
		config, err := pgx.ParseConfig(text)
		if err != nil {
			return nil, errors.New("the ledger's URL cannot be read: write postgres://user:password@host:port/database?sslmode=verify-full, " +
				"with %40 for an @ in the password and so on")
		}
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = dialTime
		}
		return &postgresEngine{config: config}, nil
	}
	return nil, errors.New("the ledger's URL must begin with sqlite:// or postgres://")
}

// sqliteEngine is a file that only this process uses: what calls have reserved is in its memory.
type sqliteEngine struct{ path string }

func (e *sqliteEngine) describe() string { return "SQLite, " + e.path }

func (e *sqliteEngine) open() (h handles, err error) {
	// SQLite would make it with what the umask leaves; the files next to it get the mode of this one.
	file, err := os.OpenFile(e.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return h, err
	}
	if err := file.Close(); err != nil {
		return h, err
	}
	h.dir = filepath.Dir(e.path)
	if h.lock, err = lock(e.path + lockSuffix); err != nil {
		return h, err
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "journal_mode(WAL)", "foreign_keys(1)",
		"journal_size_limit(67108864)", // 64 MiB of a log that grew while somebody was reading are given back
		"synchronous(FULL)",            // what is committed survives a crash of the machine
	}
	// Transactions take the lock for writing when they begin: one that takes it later may find that what it has read is old.
	if h.writer, err = e.handle(url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}, 1); err != nil {
		return h, err
	}
	h.reader, err = e.handle(url.Values{"_pragma": append(pragmas, "query_only(1)")}, connections)
	return h, err
}

// lock a file until it is closed, or the process ends.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { //nolint:gosec // descriptors are small
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

func (e *sqliteEngine) handle(parameters url.Values, most int) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: e.path, OmitHost: true, RawQuery: parameters.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

func (e *sqliteEngine) migrate(ctx context.Context, db *sql.DB) error {
	return migrate(ctx, db, goose.DialectSQLite3)
}

func (e *sqliteEngine) promise(durability) string { return "" }

// statements implements engine. The driver would watch the context with a goroutine for each statement, which takes longer than most
// statements. What takes long is bounded by itself: busyTime, and the number of rows.
func (e *sqliteEngine) statements(ctx context.Context) context.Context {
	return context.WithoutCancel(ctx)
}

func (e *sqliteEngine) reservations(ctx context.Context, l *Ledger) (reservations, error) {
	totals, err := l.reader.PrepareContext(ctx, selectTotals) // it is closed with the database
	if err != nil {
		return nil, err
	}
	return newMemoryReservations(l.now, totals, l.writable), nil
}

// postgresEngine is a server that replicas share.
type postgresEngine struct{ config *pgx.ConnConfig }

func (e *postgresEngine) describe() string {
	return fmt.Sprintf("PostgreSQL, %s:%d/%s", e.config.Host, e.config.Port, e.config.Database)
}

func (e *postgresEngine) open() (handles, error) {
	db := stdlib.OpenDB(*e.config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return handles{writer: db, reader: db}, nil
}

func (e *postgresEngine) migrate(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	defer func() {
		_, unlock := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrationLock))
		err = errors.Join(err, unlock)
	}()
	return migrate(ctx, db, goose.DialectPostgres)
}

func (e *postgresEngine) promise(d durability) string {
	commit := "off"
	if d == durable {
		commit = "on"
	}
	return fmt.Sprintf("SET LOCAL synchronous_commit = %s; SET LOCAL idle_in_transaction_session_timeout = %d", commit, idleTime.Milliseconds())
}

func (e *postgresEngine) statements(ctx context.Context) context.Context { return ctx }

func (e *postgresEngine) reservations(_ context.Context, l *Ledger) (reservations, error) {
	return l.newTableReservations(), nil
}

func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("its tables have version %d and this program knows %d: run the version of Tidewaiter that has written them, or a newer one", current, target)
	}
	_, err = provider.Up(ctx)
	return err
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const (
	// connections that are open at most.
	connections = 8
	// dialTime bounds a connection to a server, where its URL has no connect_timeout.
	dialTime = 5 * time.Second
	// busyTime is how long SQLite waits for another process that writes: a backup, or a shell.
	busyTime = 10 * time.Second
	// migrationLock is the advisory lock of replicas that start at the same time: "ledger" in ASCII.
	migrationLock = 0x6c6564676572
)

//go:embed migrations/*.sql
var migrations embed.FS

// engine is all that SQLite and PostgreSQL differ in. Tables and statements are the same: both take $1 as a placeholder, ON
// CONFLICT and RETURNING.
type engine interface {
	// open makes handles for writing and reading. It need not connect.
	open() (writer, reader *sql.DB, err error)
	// migrate brings the tables to this version.
	migrate(ctx context.Context, db *sql.DB) error
	// promises are statements before a transaction and in it, so that it is as durable as asked for.
	promises(d durability) (before, within string)
	// serialize lets one transaction at a time decide about a budget.
	serialize(ctx context.Context, tx *sql.Tx, b core.Budget) error
	// describe it for logs, without secrets.
	describe() string
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

// sqliteEngine is a file of this process alone.
type sqliteEngine struct{ path string }

func (e *sqliteEngine) describe() string { return "SQLite, " + e.path }

func (e *sqliteEngine) open() (writer, reader *sql.DB, err error) {
	// SQLite would make it with what the umask leaves; the files beside it get the mode of this one.
	file, err := os.OpenFile(e.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := file.Close(); err != nil {
		return nil, nil, err
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "journal_mode(WAL)", "foreign_keys(1)",
		"journal_size_limit(67108864)", // 64 MiB of a log that grew while somebody was reading are given back
	}
	// Transactions take the lock for writing when they begin: one that takes it later may find that what it has read is old.
	if writer, err = e.handle(url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}, 1); err != nil {
		return nil, nil, err
	}
	reader, err = e.handle(url.Values{"_pragma": append(pragmas, "query_only(1)")}, connections)
	return writer, reader, err
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
	if err := migrate(ctx, db, goose.DialectSQLite3); err != nil {
		return err
	}
	// The calls of an earlier process have ended with it.
	_, err := db.ExecContext(ctx, deleteReservations)
	return err
}

func (e *sqliteEngine) promises(d durability) (before, within string) {
	if d == durable {
		return "PRAGMA synchronous = FULL", ""
	}
	return "PRAGMA synchronous = NORMAL", ""
}

// serialize implements engine: there is one writer.
func (e *sqliteEngine) serialize(context.Context, *sql.Tx, core.Budget) error { return nil }

// postgresEngine is a server that replicas share.
type postgresEngine struct{ config *pgx.ConnConfig }

func (e *postgresEngine) describe() string {
	return fmt.Sprintf("PostgreSQL, %s:%d/%s", e.config.Host, e.config.Port, e.config.Database)
}

func (e *postgresEngine) open() (writer, reader *sql.DB, err error) {
	db := stdlib.OpenDB(*e.config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, db, nil
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

func (e *postgresEngine) promises(d durability) (before, within string) {
	if d == durable {
		return "", "SET LOCAL synchronous_commit = on"
	}
	return "", "SET LOCAL synchronous_commit = off"
}

// serialize implements engine: by a lock of the transaction. Budgets whose hashes are equal wait for one another, and that is all.
func (e *postgresEngine) serialize(ctx context.Context, tx *sql.Tx, b core.Budget) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(b.Scope) + "\x00" + b.Key))
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(hash.Sum64())) //nolint:gosec // any number will do
	return err
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

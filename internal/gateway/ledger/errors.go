// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnavailable is wrapped when the database cannot be used now: it is unreachable, busy or full. Nothing was decided; the caller may repeat the call.
var ErrUnavailable = errors.New("the ledger's database cannot be used at the moment; try again")

// ErrInUse is wrapped, with ErrUnavailable, when another process has opened a database that only one process can open.
var ErrInUse = errors.New("another process has it: only one gateway can use SQLite; for several replicas use PostgreSQL")

// Codes of errors by which a server says that the reason is not in the statement
// (https://www.postgresql.org/docs/current/errcodes-appendix.html): by class, the first two characters.
var unavailableClasses = []string{
	"08", // connection exception
	"25", // invalid transaction state: a server that only reads, after a failover
	"40", // transaction rollback: another one was in the way
	"53", // insufficient resources
	"55", // object not in prerequisite state: a lock, a server that starts
	"57", // operator intervention
	"58", // system error
}

// The same of SQLite (https://sqlite.org/rescode.html), without what stands above the first byte.
var unavailableCodes = []int{
	sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
	sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
}

// unavailable says whether an error is about the database and not about what was to be done.
func unavailable(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); is {
		return true
	}
	if e, is := errors.AsType[*pgconn.PgError](err); is {
		return slices.Contains(unavailableClasses, e.Code[:min(2, len(e.Code))])
	}
	if e, is := errors.AsType[*sqlite.Error](err); is {
		return slices.Contains(unavailableCodes, e.Code()&0xff)
	}
	return lost(err) || errors.Is(err, context.DeadlineExceeded)
}

// lost says whether a connection has ended. What was under way may have been done.
func lost(err error) bool {
	if _, is := errors.AsType[*net.OpError](err); is {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// again says whether it helps to try again at once: on another connection, or after another transaction.
func again(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); is {
		return false
	}
	if e, is := errors.AsType[*pgconn.PgError](err); is {
		const stopped, idle, serialization, deadlock = "57P01", "25P03", "40001", "40P01"
		return slices.Contains([]string{stopped, idle, serialization, deadlock}, e.Code)
	}
	return lost(err) && !errors.Is(err, context.DeadlineExceeded)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postgres gives tests a real PostgreSQL: a schema of the server that all tests share, or a server that a test may kill.
package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Variable has the URL of the server that tests share.
const Variable = "TIDEWAITER_POSTGRES"

// URL of an empty schema on the shared server. Connections have its name as their application_name, by which a test knows its own.
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Fatalf("%s is not set: run hack/test.sh, or export %s=$(hack/postgres.sh up) and in the end hack/postgres.sh down", Variable, Variable)
	}
	schema := "t" + strings.ToLower(rand.Text())
	if _, err := Open(t, server).ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	query.Set("application_name", schema)
	u.RawQuery = query.Encode()
	return u.String()
}

// Open connects until the test ends.
func Open(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Server is a server for only one test.
type Server struct {
	// URL of its database.
	URL string

	t    testing.TB
	name string
}

// Start a server of a name, which no other test may use. It ends with the test.
func Start(t testing.TB, name string) *Server {
	t.Helper()
	s := &Server{t: t, name: name}
	s.run("down") // of an earlier run that was cut off
	s.URL = strings.TrimSpace(s.run("up"))
	t.Cleanup(func() { s.run("down") })
	return s
}

// Kill the server, as the loss of its machine does. What it had not written to files is lost.
func (s *Server) Kill() { s.run("kill") }

// Again starts the server again with its data, at the same address.
func (s *Server) Again() { s.run("again") }

// run hack/postgres.sh, which knows how to run a server.
func (s *Server) run(command string) string {
	s.t.Helper()
	root, err := root()
	if err != nil {
		s.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), filepath.Join(root, "hack", "postgres.sh"), command, s.name)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("hack/postgres.sh %s %s: %v: %s", command, s.name, err, errs.String())
	}
	return out.String()
}

// root of the checkout.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = parent
	}
}

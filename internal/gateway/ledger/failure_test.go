// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// childVariable makes this program one that only writes to the database that it names.
const childVariable = "TIDEWAITER_LEDGER_CHILD"

func TestMain(m *testing.M) {
	if url := os.Getenv(childVariable); url != "" {
		if err := writeForever(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeForever settles calls from several goroutines and prints the ID of each that is settled.
func writeForever(url string) error {
	l, err := ledger.Open(context.Background(), ledger.Options{URL: url, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for worker := range 8 {
		go func() {
			for n := 0; ; n++ {
				id := name("call", worker, n)
				err := l.Reserve(context.Background(), reservation(id, 10), []core.Budget{{Scope: core.Global, Limit: core.Amount{Input: 1 << 60}}})
				if err == nil {
					err = l.Settle(context.Background(), id, call(id))
				}
				if err != nil {
					failed <- err
				}
				// One write for each line: lines are whole however the process ends.
				if _, err := os.Stdout.WriteString(id + "\n"); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// TestCrash: whatever was settled before a process was killed is there, once, and the totals are those of what is there.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), childVariable+"="+w.url)
		child.Stderr = os.Stderr
		lines, err := child.StdoutPipe()
		w.must(err)
		w.must(child.Start())
		settled := map[string]bool{}
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			settled[scanner.Text()] = true
			if len(settled) == 200 {
				w.must(child.Process.Kill())
			}
		}
		_ = child.Wait() // it was killed
		if len(settled) < 200 {
			t.Fatalf("the child ended after %d calls", len(settled))
		}
		l := w.open()
		// The lock of the one that was killed is gone, and a server has ended what it was at.
		w.must(l.Settle(t.Context(), "", call("after")))
		var count int64
		for after := int64(0); ; {
			turns, err := l.Turns(t.Context(), "uid", after, 500)
			w.must(err)
			if len(turns) == 0 {
				break
			}
			for _, i := range turns {
				count++
				if after = i.Sequence; i.Sequence != count {
					t.Fatalf("call %d has sequence %d", count, i.Sequence)
				}
				delete(settled, i.ID)
			}
		}
		if len(settled) > 0 {
			t.Errorf("%d calls are lost: %v", len(settled), settled)
		}
		w.usage(l, core.Feature, "uid", calls(count))
	})
}

// TestAReplicaThatHangs: one that stops in the middle of its transactions, as on a machine that is lost, keeps the others waiting for
// a moment only. It goes on when it can.
func TestAReplicaThatHangs(t *testing.T) {
	w := newWorld(t, postgres.URL(t))
	l, db := w.open(), postgres.Open(t, w.url)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childVariable+"="+w.url)
	child.Stderr = os.Stderr
	lines, err := child.StdoutPipe()
	w.must(err)
	w.must(child.Start())
	settled := bufio.NewScanner(lines)
	next := func() {
		if !settled.Scan() {
			t.Fatal("the child has ended")
		}
	}
	// It holds the lock of the budget, and the row of the Feature.
	const waits = `SELECT COUNT(DISTINCT l.locktype) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
WHERE a.state = 'idle in transaction' AND a.application_name = current_setting('application_name') AND l.granted AND (l.locktype = 'advisory' OR l.locktype = 'transactionid')`
	for held := 0; held < 2; {
		w.must(child.Process.Signal(syscall.SIGCONT))
		next()
		w.must(child.Process.Signal(syscall.SIGSTOP))
		time.Sleep(10 * time.Millisecond) // a statement that the server has may end
		w.must(db.QueryRowContext(t.Context(), waits).Scan(&held))
	}
	asked := time.Now()
	w.must(l.Settle(t.Context(), "", call("mine")))
	w.must(l.Reserve(t.Context(), reservation("mine", 10), []core.Budget{{Scope: core.Global, Limit: core.Amount{Input: 1 << 60}}}))
	if waited := time.Since(asked); waited > time.Minute {
		t.Errorf("a replica that hangs kept another one waiting for %s", waited)
	}
	w.must(child.Process.Signal(syscall.SIGCONT))
	for range 200 {
		next()
	}
	w.must(child.Process.Kill())
	_ = child.Wait() // it was killed
}

// TestWhatCannotBeRecordedIsNotReserved: no call is made while the last one could not be recorded and the next one could not be either.
func TestWhatCannotBeRecordedIsNotReserved(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		other := w.other()
		swap := func(from, to string) {
			for _, table := range []string{"interactions", "reservations"} {
				_, err := other.ExecContext(t.Context(), "ALTER TABLE "+table+from+" RENAME TO "+table+to)
				w.must(err)
			}
		}
		w.must(l.Reserve(t.Context(), reservation("one", 10), nil))
		swap("", "_away")
		if l.Settle(t.Context(), "one", call("one")) == nil {
			t.Error("a call is recorded nowhere")
		}
		for n := range 3 {
			if l.Reserve(t.Context(), reservation(name("call", n), 10), nil) == nil {
				t.Error("a call may be made that cannot be recorded")
			}
		}
		swap("_away", "")
		w.must(l.Reserve(t.Context(), reservation("two", 10), nil))
		w.must(l.Settle(t.Context(), "one", call("one")))
		w.must(l.Settle(t.Context(), "two", call("two")))
		w.usage(l, core.Feature, "uid", calls(2))
	})
}

// TestACallThatIsTakenBack: the number of a call whose transaction fails after its row was added is that of the next one.
func TestACallThatIsTakenBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l, other := w.open(), w.other()
		w.must(l.Settle(t.Context(), "", call("one")))
		noted := call("two")
		noted.Detail = "stands in notes"
		for _, step := range []struct {
			from, to string
			fails    bool
		}{{"notes", "notes_away", true}, {"notes_away", "notes", false}} {
			_, err := other.ExecContext(t.Context(), "ALTER TABLE "+step.from+" RENAME TO "+step.to)
			w.must(err)
			if err := l.Settle(t.Context(), "", noted); (err != nil) != step.fails {
				t.Fatal(err)
			}
		}
		if i, err := l.Turn(t.Context(), "uid", 2); err != nil || i.ID != "two" {
			t.Errorf("%+v, %v", i, err)
		}
		w.usage(l, core.Feature, "uid", calls(2))
	})
}

// TestConnectionsThatEnd: a server that ends all connections, as at a restart, is not noticed.
func TestConnectionsThatEnd(t *testing.T) {
	w := newWorld(t, postgres.URL(t))
	l := w.open()
	db, err := sql.Open("pgx", w.url)
	w.must(err)
	defer db.Close()
	for round := range 5 {
		// Several connections are open.
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				if err := l.Reserve(w.Context(), reservation(name("call", round, n), 1), nil); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		// Those of this test alone.
		_, err := db.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()")
		w.must(err)
		id := name("call", round, 0)
		w.must(l.Settle(t.Context(), id, call(id)))
		w.usage(l, core.Feature, "uid", calls(int64(round+1)))
	}
}

// TestDatabaseThatIsAway: everything says that it may be tried again, and works when the database is back.
func TestDatabaseThatIsAway(t *testing.T) {
	w := newWorld(t, postgres.URL(t))
	u, err := url.Parse(w.url)
	w.must(err)
	line := &relay{target: u.Host}
	w.must(line.up(addresses.Free()))
	t.Cleanup(line.down)
	u.Host = line.address
	w.url = u.String()
	l := w.open()
	w.must(l.Reserve(t.Context(), reservation("one", 10), nil))
	for range 2 {
		line.down()
		_, usage := l.Usage(t.Context(), core.Global, "")
		_, turns := l.Turns(t.Context(), "uid", 0, 1)
		_, _, pin := l.Pin(t.Context(), ledger.PinKey{}, nil, "")
		_, expire := l.Expire(t.Context(), "uid", 1)
		_, _, recorded := l.Checkpoints().Record(t.Context(), ledger.Owner{FeatureUID: "uid"}, protocol.Changes{Checkpoint: 1})
		_, changes := l.Checkpoints().Changes(t.Context(), "uid", 1)
		_, events := l.Checkpoints().Events(t.Context(), "uid", 0, 1)
		_, _, steered := l.Steering().Record(t.Context(), ledger.Owner{FeatureUID: "uid"}, protocol.SteeringStep{Sequence: 1})
		_, steps := l.Steering().List(t.Context(), "uid", 0, 1)
		_, step := l.Steering().Step(t.Context(), "uid", 1)
		_, owners := l.Owners(t.Context(), "")
		for what, err := range map[string]error{
			"Usage": usage, "Turns": turns, "Pin": pin, "Expire": expire, "RecordChanges": recorded, "Changes": changes, "Events": events, "Owners": owners,
			"RecordSteering": steered, "Steering": steps, "Step": step,
			"Keep": l.Keep(t.Context(), "uid", 1), "Sweep": l.Sweep(t.Context(), 1),
			"Reserve": l.Reserve(t.Context(), reservation("x", 1), nil), "Settle": l.Settle(t.Context(), "one", call("one")),
		} {
			if !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.must(line.up(line.address))
		w.must(l.Settle(t.Context(), "one", call("one")))
		w.usage(l, core.Feature, "uid", calls(1))
	}
}

// relay is a line to a server that can be cut.
type relay struct {
	target, address string
	mu              sync.Mutex
	listener        net.Listener
	open            []net.Conn
}

func (r *relay) up(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.address = listener, listener.Addr().String()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", r.target)
			if err != nil {
				_ = from.Close()
				continue
			}
			r.mu.Lock()
			r.open = append(r.open, from, to)
			r.mu.Unlock()
			go pipe(from, to)
			go pipe(to, from)
		}
	}()
	return nil
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

func (r *relay) down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

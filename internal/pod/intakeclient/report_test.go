// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/intakeclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
	"github.com/tidewaiter/tidewaiter/internal/testkit/fakeintake"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

func client(i *fakeintake.Intake) *intakeclient.Client {
	return intakeclient.NewClient(intakeclient.Options{URL: i.URL, ServerName: fakeintake.ServerName, CAPath: i.CAPath, TokenPath: i.TokenPath})
}

func orders() protocol.Orders { return protocol.Orders{Version: protocol.OrdersVersion, Attempt: 1} }

// log is a buffer that may be written and read at once.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func TestOrdersArePolled(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	c := client(intake)
	o, etag, changed, err := c.Orders(t.Context(), "", 0)
	if err != nil || !changed || o.Attempt != 1 || etag == "" {
		t.Fatalf("orders %+v, etag %q, changed %v, %v", o, etag, changed, err)
	}
	if _, again, changed, err := c.Orders(t.Context(), etag, time.Second); err != nil || changed || again != etag {
		t.Errorf("nothing changed, got changed %v, etag %q, %v", changed, again, err)
	}
	go intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	if o, _, changed, err := c.Orders(t.Context(), etag, 20*time.Second); err != nil || !changed || !o.Suspend {
		t.Errorf("a change was missed: %+v, %v, %v", o, changed, err)
	}
}

func TestWhoIsNotIntakeGetsNoToken(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	for name, change := range map[string]func(*intakeclient.Options){
		"another name":         func(o *intakeclient.Options) { o.ServerName = "intake.example.org" },
		"another CA":           func(o *intakeclient.Options) { o.CAPath = filepath.Join(t.TempDir(), "missing") },
		"a bundle of nonsense": func(o *intakeclient.Options) { o.CAPath = o.TokenPath },
		"no token":             func(o *intakeclient.Options) { o.TokenPath = filepath.Join(t.TempDir(), "missing") },
	} {
		t.Run(name, func(t *testing.T) {
			o := intakeclient.Options{URL: intake.URL, ServerName: fakeintake.ServerName, CAPath: intake.CAPath, TokenPath: intake.TokenPath}
			change(&o)
			if _, _, _, err := intakeclient.NewClient(o).Orders(t.Context(), "", 0); err == nil {
				t.Error("no error")
			}
		})
	}
	if intake.Polls() != 0 {
		t.Errorf("%d requests came through", intake.Polls())
	}
}

func TestStatusesAreToldApart(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	for status, want := range map[int]string{
		http.StatusTooEarly:            "does not know this pod yet",
		http.StatusUnauthorized:        "does not accept the pod's token",
		http.StatusForbidden:           "not the pod of the Feature's current attempt",
		http.StatusServiceUnavailable:  "intake failed",
		http.StatusMovedPermanently:    "intake failed",
		http.StatusInternalServerError: "refused by the test",
	} {
		intake.Refuse(status)
		_, _, _, err := client(intake).Orders(t.Context(), "", 0)
		var got *intakeclient.StatusError
		if !errors.As(err, &got) || got.Code != status || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: %v, want %q", status, err, want)
		}
	}
}

func TestARotatedCAIsTakenUp(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	good, err := os.ReadFile(intake.CAPath)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(intake.CAPath, []byte("not yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(intake)
	if _, _, _, err := c.Orders(t.Context(), "", 0); err == nil {
		t.Fatal("a bundle of nonsense was trusted")
	}
	if err := os.WriteFile(intake.CAPath, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.Orders(t.Context(), "", 0); err != nil {
		t.Errorf("the new bundle was not read: %v", err)
	}
}

func TestARenewedTokenIsTakenUp(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	if err := os.WriteFile(intake.TokenPath, []byte("expired"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(intake)
	if _, _, _, err := c.Orders(t.Context(), "", 0); err == nil {
		t.Fatal("an expired token was accepted")
	}
	if err := os.WriteFile(intake.TokenPath, []byte(fakeintake.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.Orders(t.Context(), "", 0); err != nil {
		t.Errorf("the new token was not read: %v", err)
	}
}

func TestReportsWaitForIntake(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	intake.Refuse(http.StatusServiceUnavailable)
	q, err := spool.Open(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var lines log
	var done sync.WaitGroup
	done.Go(func() { client(intake).Deliver(ctx, q, slog.New(slog.NewTextHandler(&lines, nil))) })
	defer done.Wait()
	defer cancel()
	for n := range int64(3) {
		if _, err := q.Append(reports.New(1, n+1, reports.Taken(n+1, protocol.Valid))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the absence is logged", func() bool { return lines.count("kind=failing") > 0 })
	intake.Refuse(http.StatusTooEarly)
	eventually(t, "another reason is logged", func() bool { return lines.count("kind=too-early") > 0 })
	intake.Refuse(0)
	eventually(t, "everything is delivered", func() bool { return q.Pending() == 0 })
	if got := intake.Checkpoints(); len(got) != 3 || got[0].Sequence != 1 || got[2].Sequence != 3 {
		t.Errorf("delivered %+v", got)
	}
	if lines.count("kind=failing") != 1 {
		t.Errorf("one cause was logged %d times", lines.count("kind=failing"))
	}
}

// A report that intake can never apply does not stand in the way of those behind it.
func TestARefusedReportIsSetAside(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	intake.RefuseReport(2)
	q, err := spool.Open(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		if _, err := q.Append(reports.New(1, n+1, reports.Taken(n+1, protocol.Valid))); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var lines log
	var done sync.WaitGroup
	done.Go(func() { client(intake).Deliver(ctx, q, slog.New(slog.NewTextHandler(&lines, nil))) })
	defer done.Wait()
	defer cancel()
	eventually(t, "everything is delivered", func() bool { return q.Pending() == 0 })
	if got := intake.Checkpoints(); len(got) != 2 || got[0].Sequence != 1 || got[1].Sequence != 3 {
		t.Errorf("delivered %+v", got)
	}
	if lines.count("setting it aside") != 1 {
		t.Errorf("logged %d times", lines.count("setting it aside"))
	}
}

// queue is one whose reports are as large as a test likes: a spool bounds what is in it.
type queue struct {
	*spool.Spool

	mu   sync.Mutex
	text map[int64]string
}

func (q *queue) Batch(bytes, most int) []protocol.Report {
	batch := q.Spool.Batch(bytes, most)
	for i := range batch {
		q.mu.Lock()
		batch[i].Checkpoint.UnsettledReason = q.text[batch[i].Sequence]
		q.mu.Unlock()
	}
	return batch
}

// TestAReportThatIsTooLargeIsSetAside: it does not stand in the way of those that are sent with it, and of those behind it, whether the sender sees that
// it is too large or intake does.
func TestAReportThatIsTooLargeIsSetAside(t *testing.T) {
	for name, status := range map[string]int{"seen before it is sent": 0, "seen by intake": http.StatusRequestEntityTooLarge} {
		t.Run(name, func(t *testing.T) {
			intake := fakeintake.Start(t, orders())
			kept, err := spool.Open(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			q := &queue{Spool: kept, text: map[int64]string{2: "large"}}
			if status == 0 {
				q.text[2] = strings.Repeat("x", 2<<20)
			}
			intake.RefuseText("large", status)
			for n := range int64(3) {
				if _, err := q.Append(reports.New(1, n+1, reports.Taken(n+1, protocol.Valid))); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var lines log
			var done sync.WaitGroup
			done.Go(func() { client(intake).Deliver(ctx, q, slog.New(slog.NewTextHandler(&lines, nil))) })
			defer done.Wait()
			defer cancel()
			eventually(t, "everything is delivered", func() bool { return q.Pending() == 0 })
			if got := intake.Checkpoints(); len(got) != 2 || got[0].Sequence != 1 || got[1].Sequence != 3 {
				t.Errorf("delivered %+v", got)
			}
			if lines.count("setting it aside") != 1 || q.Refused() != 1 || q.NewlyRefused() != 1 || q.NewlyRefused() != 0 {
				t.Errorf("logged %d times, %d refused", lines.count("setting it aside"), q.Refused())
			}
		})
	}
}

func TestOrdersAreFollowed(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	intake.Refuse(http.StatusTooEarly)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan protocol.Orders, 10)
	var done sync.WaitGroup
	done.Go(func() {
		client(intake).Follow(ctx, slog.New(slog.DiscardHandler), func(o protocol.Orders) { got <- o })
	})
	defer done.Wait()
	defer cancel()
	intake.Refuse(0)
	if o := <-got; o.Suspend {
		t.Errorf("orders %+v before the change", o)
	}
	intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	if o := <-got; !o.Suspend {
		t.Errorf("orders %+v after the change", o)
	}
}

// TestOrdersNeverGoBack: whatever replica answers, and however late its caches are.
func TestOrdersNeverGoBack(t *testing.T) {
	intake := fakeintake.Start(t, orders())
	c := client(intake)
	get := func() (protocol.Orders, error) {
		o, _, _, err := c.Orders(t.Context(), "", 0)
		return o, err
	}
	intake.At("100/50/")
	if _, err := get(); err != nil {
		t.Fatal(err)
	}
	for _, older := range []string{"99/50/", "100/9/", "1000/49/7"} {
		intake.At(older)
		if o, err := get(); !errors.Is(err, intakeclient.ErrOlder) {
			t.Errorf("orders at %s after 100/50: %+v, %v", older, o, err)
		}
	}
	for _, newer := range []string{"100/50/", "100/50/8", "1000/50/8", ""} {
		intake.At(newer)
		if _, err := get(); err != nil {
			t.Errorf("orders at %s: %v", newer, err)
		}
	}
	intake.At("1000/50/7")
	if _, err := get(); !errors.Is(err, intakeclient.ErrOlder) {
		t.Errorf("an older prompt: %v", err)
	}
}

// TestOrdersOfAnotherVersionAreRefused: what they say may mean something else.
func TestOrdersOfAnotherVersionAreRefused(t *testing.T) {
	for _, version := range []int{0, protocol.OrdersVersion - 1, protocol.OrdersVersion + 1} {
		_, _, _, err := client(fakeintake.Start(t, protocol.Orders{Version: version, Attempt: 1})).Orders(t.Context(), "", 0)
		if want := fmt.Sprintf("orders have version %d, and this watchdog reads version %d", version, protocol.OrdersVersion); err == nil || err.Error() != want {
			t.Errorf("orders of version %d: %v, want %q", version, err, want)
		}
	}
}

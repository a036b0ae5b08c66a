// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/history"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/testkit/fakeintake"
)

// ledger takes what checkpoints have changed and how the agent was steered, as the gateway's does: each once.
type ledger struct {
	t *testing.T

	mu    sync.Mutex
	taken map[int64]protocol.Changes
	order []int64
	// steps of steering by their numbers.
	steps map[int64]protocol.SteeringStep
	// history has the entries by their numbers.
	history map[int64]protocol.HistoryEntry
	// away: it answers with an error.
	away  bool
	tries int
}

// serveLedger begins to serve one.
func (w *world) serveLedger() {
	w.t.Helper()
	w.ledger = &ledger{t: w.t, taken: map[int64]protocol.Changes{}, steps: map[int64]protocol.SteeringStep{}, history: map[int64]protocol.HistoryEntry{}}
	server := httptest.NewTLSServer(w.ledger)
	w.t.Cleanup(server.Close)
	w.ledgerURL = server.URL
	ca, err := os.ReadFile(w.paths.CA)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("ledger.crt", string(ca)+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.paths.CA = w.dir + "/ledger.crt"
}

// ServeHTTP takes the changes of one checkpoint, or one step of steering.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tries++; l.away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path != protocol.ChangesPath && r.URL.Path != protocol.SteeringPath && r.URL.Path != protocol.HistoryPath || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer "+fakeintake.Token || r.Header.Get("Content-Encoding") != "gzip" {
		l.t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	var c protocol.Changes
	var step protocol.SteeringStep
	var entry protocol.HistoryEntry
	body, err := gzip.NewReader(r.Body)
	switch {
	case err != nil:
	case r.URL.Path == protocol.SteeringPath:
		err = json.NewDecoder(body).Decode(&step)
	case r.URL.Path == protocol.HistoryPath:
		err = json.NewDecoder(body).Decode(&entry)
	default:
		err = json.NewDecoder(body).Decode(&c)
	}
	if err != nil {
		l.t.Error(err)
	}
	defer w.WriteHeader(http.StatusNoContent)
	if r.URL.Path == protocol.SteeringPath {
		if have, known := l.steps[step.Sequence]; known {
			if diff := cmp.Diff(have, step); diff != "" {
				l.t.Errorf("handed over again, and different (-before +now):\n%s", diff)
			}
		}
		l.steps[step.Sequence] = step
		return
	}
	if r.URL.Path == protocol.HistoryPath {
		if have, known := l.history[entry.Sequence]; known {
			if diff := cmp.Diff(have, entry); diff != "" {
				l.t.Errorf("handed over again, and different (-before +now):\n%s", diff)
			}
		}
		l.history[entry.Sequence] = entry
		return
	}
	if have, known := l.taken[c.Checkpoint]; known {
		if diff := cmp.Diff(have, c); diff != "" {
			l.t.Errorf("handed over again, and different (-before +now):\n%s", diff)
		}
	} else {
		l.taken[c.Checkpoint] = c
		l.order = append(l.order, c.Checkpoint)
	}
}

// steered are the steps of steering that were taken.
func (l *ledger) steered() map[int64]protocol.SteeringStep {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.steps)
}

// all that was taken, in the order in which it came.
func (l *ledger) all() (list []protocol.Changes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.order {
		list = append(list, l.taken[n])
	}
	return list
}

func (l *ledger) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *ledger) tried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// wantHandedOver: the ledger has every checkpoint that was reported, in order, and their files add up to the newest.
func (w *world) wantHandedOver() {
	w.t.Helper()
	type line struct {
		Checkpoint, Previous int64
		Verdict, Action      string
	}
	var want, got []line
	for _, c := range w.intake.Checkpoints() {
		want = append(want, line{c.Sequence, c.Previous, string(c.Verdict), c.Action})
	}
	files := w.sizes(protocol.RefBase)
	for _, c := range w.ledger.all() {
		got = append(got, line{c.Checkpoint, c.Previous, c.Verdict, c.Action})
		if c.Missing != "" || int64(len(c.Listed)) != c.Files {
			w.t.Errorf("checkpoint %d lacks %q; %d of %d files are listed", c.Checkpoint, c.Missing, len(c.Listed), c.Files)
		}
		for _, f := range c.Listed {
			if _, exists := files[f.Path]; exists != (f.Type != protocol.ChangeAdd) || !strings.Contains(c.Patch, "/"+f.Path+"\n") {
				w.t.Errorf("checkpoint %d: %+v, and whether it exists: %t\n%s", c.Checkpoint, f, exists, c.Patch)
			}
			if files[f.Path] = strconv.FormatInt(f.Size, 10); f.Type == protocol.ChangeUnlink {
				delete(files, f.Path)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("the ledger has something else than was reported (-reported +ledger):\n%s", diff)
	}
	if diff := cmp.Diff(w.sizes(protocol.RefChain), files); diff != "" {
		w.t.Errorf("files in the ledger add up to something else (-chain +ledger):\n%s", diff)
	}
}

// wantHistory: the ledger has every entry that follows from the journal as it is in the end, once, and nothing else.
func (w *world) wantHistory() {
	w.t.Helper()
	data, err := trusted.ReadJournal(trusted.Dir(w.paths.Trusted))
	if err != nil {
		w.t.Fatal(err)
	}
	records, _, err := journal.Decode(data)
	if err != nil {
		w.t.Fatal(err)
	}
	want, teller := map[int64]protocol.HistoryEntry{}, history.NewTeller(journal.State{})
	var walk journal.Walk
	for position, r := range trusted.Positions(records) {
		s, err := walk.Next(r)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range teller.Tell(position, s, r) {
			want[e.Sequence] = e
		}
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	if diff := cmp.Diff(want, w.ledger.history); diff != "" {
		w.t.Errorf("the history (-journal +ledger):\n%s", diff)
	}
}

// TestALedgerThatIsAway delays nothing but its own record: checkpoints are taken, the attempt ends, and the next one hands over what
// is left.
func TestALedgerThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", keen)
	w.ledger.setAway(true)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `[ "$TIDEWAITER_ATTEMPT" = 2 ] && { echo c > web/c.html; exit 0; }; echo a > web/a.html; ` + w.waitFor("go") + `echo b > web/b.html; ` + w.waitFor("never")
	})
	p := w.start(1, nil)
	w.eventually("the ledger is tried, and a checkpoint is taken", func() bool { return w.ledger.tried() > 0 && len(w.intake.Checkpoints()) > 0 })
	w.signal("go")
	w.eventually("checkpoints go on", func() bool { return len(w.intake.Checkpoints()) > 1 })
	began := time.Now()
	p.terminate()
	if err := p.wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the pod was held up for %s", took)
	}
	<-p.gone
	if got := w.ledger.all(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	w.ledger.setAway(false)
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantHandedOver()
}

// TestAnAttemptEndsWithoutTheLedger: the end waits for a bounded time, and everybody knows how it ended before.
func TestAnAttemptEndsWithoutTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo a > web/a.html", keen)
	w.handover = 5 * time.Second
	w.ledger.setAway(true)
	p := w.start(1, nil)
	w.eventually("the final report", func() bool { return w.intake.Final(1) != nil })
	began := time.Now()
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if took := time.Since(began); took < 5*time.Second || took > 3*time.Minute {
		t.Errorf("the end took %s", took)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeintake is an intake without a cluster: real HTTPS, the contract's documents, one Feature. It uses intake's own code to decide
// what it accepts, and how it refuses.
package fakeintake

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// ServerName that the server's certificate has.
const ServerName = "example.com"

// Token that the server accepts.
const Token = "token-of-the-pod"

// Intake is a server for one Feature. Its methods are safe for concurrent use.
type Intake struct {
	// URL of the server; CAPath and TokenPath are files for its clients.
	URL       string
	CAPath    string
	TokenPath string

	mu        sync.Mutex
	orders    protocol.Orders
	version   int
	changed   chan struct{}
	refusal   int
	reports   []protocol.Report
	mark      protocol.ReportAck
	repeated  []string
	refused   []string
	polls     int
	known     string
	poison    int64
	text      string
	code      int
	silent    bool
	revision  string
	inquiry   string
	answers   map[string]string
	elsewhere int
}

// Start serves until the test ends.
func Start(t testing.TB, orders protocol.Orders) *Intake {
	t.Helper()
	i := &Intake{orders: orders, version: 1, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.OrdersPath, i.getOrders)
	mux.HandleFunc("POST "+protocol.ReportsPath, i.postReports)
	mux.HandleFunc("POST "+protocol.AnswersPath+"{id}", i.postAnswer)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	i.URL = server.URL
	dir := t.TempDir()
	i.CAPath, i.TokenPath = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, content := range map[string][]byte{i.CAPath: certificate, i.TokenPath: []byte(Token + "\n")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// Order changes the orders.
func (i *Intake) Order(change func(*protocol.Orders)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.orders)
	i.version++
	close(i.changed)
	i.changed = make(chan struct{})
}

// At says how new the orders are, in the form of core/revision.
func (i *Intake) At(revision string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revision = revision
}

// Refuse answers every request with an HTTP status; 0 ends that.
func (i *Intake) Refuse(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refusal = status
	close(i.changed)
	i.changed = make(chan struct{})
}

// RefuseReport refuses the report with a sequence for good.
func (i *Intake) RefuseReport(sequence int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.poison = sequence
}

// RefuseText answers every batch that has a text with an HTTP status, and reads nothing of it; with 0 it is as any other.
func (i *Intake) RefuseText(text string, status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.text, i.code = text, status
}

// LoseAnswers of reports: they are applied, and their sender does not hear of it.
func (i *Intake) LoseAnswers(lose bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.silent = lose
}

// Reports that were applied, oldest first.
func (i *Intake) Reports() []protocol.Report {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.reports)
}

// Checkpoints that were applied, oldest first.
func (i *Intake) Checkpoints() []protocol.CheckpointReport {
	var out []protocol.CheckpointReport
	for _, r := range i.Reports() {
		if r.Checkpoint != nil {
			out = append(out, *r.Checkpoint)
		}
	}
	return out
}

// Failures of checkpoints that were reported, oldest first.
func (i *Intake) Failures() []protocol.CheckpointFailure {
	var out []protocol.CheckpointFailure
	for _, r := range i.Reports() {
		if r.Failed != nil {
			out = append(out, *r.Failed)
		}
	}
	return out
}

// Plans that were reported, oldest first.
func (i *Intake) Plans() []protocol.PlanReport {
	var out []protocol.PlanReport
	for _, r := range i.Reports() {
		if r.Planned != nil {
			out = append(out, *r.Planned)
		}
	}
	return out
}

// Status that was applied last; an empty one before the first.
func (i *Intake) Status() *protocol.StatusReport {
	reports := i.Reports()
	for _, r := range slices.Backward(reports) {
		if r.Status != nil {
			return r.Status
		}
	}
	return &protocol.StatusReport{}
}

// Final report of an attempt; nil before there is one.
func (i *Intake) Final(epoch int64) *protocol.FinalReport {
	for _, r := range i.Reports() {
		if r.Final != nil && r.Epoch == epoch {
			return r.Final
		}
	}
	return nil
}

// Polls counts the requests for orders.
func (i *Intake) Polls() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.polls
}

// Heard says whether the watchdog has the newest orders: its last question names them.
func (i *Intake) Heard() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known == i.etag()
}

// Repeated names what came again in another report: each is a mistake of the sender.
func (i *Intake) Repeated() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.repeated)
}

// Refused says why reports were refused: each is a mistake of the sender, unless the test has caused it.
func (i *Intake) Refused() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.refused)
}

// admit checks the token and says whether the request may go on.
func (i *Intake) admit(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	refusal := i.refusal
	i.mu.Unlock()
	switch {
	case refusal != 0:
		http.Error(w, "refused by the test", refusal)
	case r.Header.Get("Authorization") != "Bearer "+Token:
		http.Error(w, "unknown token", http.StatusUnauthorized)
	default:
		return true
	}
	return false
}

func (i *Intake) getOrders(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.polls++
	i.known = r.Header.Get("If-None-Match")
	etag, changed := i.etag(), i.changed
	i.mu.Unlock()
	if known := r.Header.Get("If-None-Match"); known != "" && known == etag {
		seconds, _ := strconv.Atoi(r.URL.Query().Get(protocol.WaitQuery))
		if i.asks(w, r) {
			w.Header().Set("ETag", etag)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-time.After(time.Duration(seconds) * time.Second):
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if !i.admit(w, r) {
		return
	}
	i.asks(w, r)
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("ETag", i.etag())
	if i.revision != "" {
		w.Header().Set(protocol.RevisionHeader, i.revision)
	}
	if r.Header.Get("If-None-Match") == i.etag() {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	i.reply(w, i.orders)
}

// reply writes a document; a caller that hung up asks again.
func (i *Intake) reply(w http.ResponseWriter, document any) {
	text, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}

func (i *Intake) etag() string { return fmt.Sprintf(`"v%d"`, i.version) }

func (i *Intake) postReports(w http.ResponseWriter, r *http.Request) {
	if !i.admit(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reports, err := runstatus.Receive(bytes.NewReader(body))
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.code != 0 && bytes.Contains(body, []byte(i.text)) {
		http.Error(w, "refused by the test", i.code)
		return
	}
	for _, report := range reports {
		if report.Sequence == i.poison {
			err = &runstatus.Refusal{Report: protocol.ReportAck{Epoch: report.Epoch, Sequence: report.Sequence}, Reason: "refused by the test"}
			break
		}
		i.apply(report)
	}
	if refused, is := errors.AsType[*runstatus.Refusal](err); is {
		i.refused = append(i.refused, refused.Error())
		w.WriteHeader(refused.Code())
		i.reply(w, protocol.Problem{Error: refused.Error(), Epoch: refused.Report.Epoch, Sequence: refused.Report.Sequence})
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if i.silent {
		http.Error(w, "the answer is lost", http.StatusBadGateway)
		return
	}
	i.reply(w, i.mark)
}

// apply takes a report once, by number; a checkpoint once, by its own number.
func (i *Intake) apply(r protocol.Report) {
	if r.Epoch < i.mark.Epoch || r.Epoch == i.mark.Epoch && r.Sequence <= i.mark.Sequence {
		return
	}
	i.mark = protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}
	if what := once(r); what != "" && slices.ContainsFunc(i.reports, func(have protocol.Report) bool { return once(have) == what }) {
		i.repeated = append(i.repeated, what)
		return
	}
	i.reports = append(i.reports, r)
}

// once names what no second report may tell; it is empty for what may be told again.
func once(r protocol.Report) string {
	switch {
	case r.Checkpoint != nil:
		return fmt.Sprintf("checkpoint %d", r.Checkpoint.Sequence)
	case r.Request != nil:
		return "request " + r.Request.ID
	case r.Final != nil:
		return fmt.Sprintf("the end of attempt %d", r.Epoch)
	}
	return ""
}

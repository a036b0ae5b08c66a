// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/view"
)

const (
	// askTime bounds a question to the gateway.
	askTime = 20 * time.Second
	// maxAnswer bounds its answer, in bytes: one turn with a whole answer, many without, or the diff of a checkpoint.
	maxAnswer = 16 << 20
)

// gatewayLedger asks the gateway for what its ledger has.
type gatewayLedger struct {
	endpoints endpoints
	// bundle vouches for the gateway.
	bundle func() []byte
	// token is a file; it changes while the process lives.
	token     string
	namespace string
}

var _ view.Ledger = gatewayLedger{}

// Turns implements view.Ledger.
func (g gatewayLedger) Turns(ctx context.Context, query url.Values) ([]protocol.Turn, error) {
	var turns protocol.Turns
	err := g.ask(ctx, protocol.TurnsPath, query, &turns)
	return turns.Turns, err
}

// Changes implements view.Ledger.
func (g gatewayLedger) Changes(ctx context.Context, query url.Values) (protocol.Changes, error) {
	var changes protocol.Changes
	err := g.ask(ctx, protocol.CheckpointPath, query, &changes)
	return changes, err
}

// Events implements view.Ledger.
func (g gatewayLedger) Events(ctx context.Context, query url.Values) ([]protocol.FileEvent, error) {
	var events protocol.FileEvents
	err := g.ask(ctx, protocol.EventsPath, query, &events)
	return events.Events, err
}

// Steering implements view.Ledger.
func (g gatewayLedger) Steering(ctx context.Context, query url.Values) ([]protocol.SteeringStep, error) {
	var steps protocol.SteeringSteps
	err := g.ask(ctx, protocol.SteeringListPath, query, &steps)
	return steps.Steps, err
}

// History implements view.Ledger.
func (g gatewayLedger) History(ctx context.Context, query url.Values) ([]protocol.HistoryEntry, error) {
	var history protocol.History
	err := g.ask(ctx, protocol.HistoryListPath, query, &history)
	return history.Entries, err
}

// Answers says why the gateway does not answer at all. Any answer will do.
func (g gatewayLedger) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := g.get(ctx, protocol.TurnsPath, nil)
	// Without the addresses and ports of the connection, which differ each time.
	if op, is := errors.AsType[*net.OpError](err); is {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// get an answer, whichever it is.
func (g gatewayLedger) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	_, gateway, err := g.endpoints.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(g.token)
	if err != nil {
		return nil, fmt.Errorf("read the token for the gateway's ledger: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(g.bundle())
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: protocol.GatewayService + "." + g.namespace + ".svc", MinVersion: tls.VersionTLS13},
		DisableKeepAlives: true, // people ask now and then
	}
	target := "https://" + net.JoinHostPort(gateway.String(), strconv.Itoa(protocol.LedgerPort)) + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	return answer, nil
}

// ask for a document.
func (g gatewayLedger) ask(ctx context.Context, path string, query url.Values, document any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := g.get(ctx, path, query)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the gateway's answer: %w", err)
	case len(text) > maxAnswer:
		return errors.New("the gateway's answer is too large")
	case answer.StatusCode == http.StatusNotFound:
		return view.ErrNotRecorded
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the gateway answers with status %d: %.200s", answer.StatusCode, strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal(text, document); err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	return nil
}

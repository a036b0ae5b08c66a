// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Query parameters of turns. paramTurn is the number of one turn, counted over the whole Feature.
const (
	paramAfter = "after"
	paramLimit = "limit"
	paramTurn  = "turn"
)

// ErrNoTurn says that the ledger has no such turn.
var ErrNoTurn = errors.New("there is no such turn")

// Ledger has what was said to models. The query is that of protocol.TurnsPath.
type Ledger interface {
	Turns(ctx context.Context, query url.Values) ([]protocol.Turn, error)
}

// featureTurns lists the calls of models that a Feature has made, or shows one with its answer.
func (s *Server) featureTurns(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramAfter, paramLimit, paramTurn, paramOutput)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	asJSON, err := wantsJSON(query.Get(paramOutput), r.Header.Get("Accept"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	for _, name := range []string{paramAfter, paramLimit, paramTurn} {
		if text := query.Get(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
				fail(w, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is no number of turns", name, text)))
				return
			}
		}
	}
	release, refused := s.streams.take(whoAsks(r).GetName())
	if refused != "" {
		fail(w, apierrors.NewTooManyRequests(refused, 1))
		return
	}
	defer release()
	key := feature(r)
	var f v1alpha1.Feature
	if err := s.options.Live.Get(r.Context(), key, &f); err != nil {
		s.refuse(w, r, key, err)
		return
	}
	ask := url.Values{"feature": {string(f.UID)}}
	for _, name := range []string{paramAfter, paramLimit, paramTurn} {
		if query.Has(name) {
			ask.Set(name, query.Get(name))
		}
	}
	turns, err := s.options.Ledger.Turns(r.Context(), ask)
	switch {
	case errors.Is(err, ErrNoTurn):
		fail(w, failure(http.StatusNotFound, fmt.Sprintf("the Feature %s has no turn %s", key.Name, query.Get(paramTurn))))
	case err != nil:
		s.options.Logger.Error(err, "Cannot read the ledger", "feature", key)
		fail(w, failure(http.StatusServiceUnavailable, "the gateway's ledger cannot be read at the moment; the manager's log says why"))
	default:
		writeTurns(w, turns, query.Has(paramTurn), asJSON)
	}
}

// writeTurns for programs or for people. What a model said is never taken for a page by a browser, nor kept by a proxy.
func writeTurns(w http.ResponseWriter, turns []protocol.Turn, one, asJSON bool) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if asJSON {
		header.Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(protocol.Turns{Turns: turns}); err != nil {
			panic(http.ErrAbortHandler) // a part must not look like the whole answer
		}
		return
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(table(turns))
	if !one || len(turns) != 1 {
		return
	}
	t := turns[0]
	if t.Text == "" && len(t.Tools) == 0 { // an error, say
		t.Text = t.Answer
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", strings.TrimRight(t.Text, "\n"))
	for _, tool := range t.Tools {
		_, _ = fmt.Fprintf(w, "\n[calls %s] %s\n", tool.Name, tool.Arguments)
	}
	for _, v := range t.Violations {
		_, _ = fmt.Fprintf(w, "\n[%s %s] %s\n", strings.ToLower(v.Severity), v.Type, v.Message)
	}
	if t.Formatted != "" {
		_, _ = fmt.Fprintf(w, "\n[the agent got]\n%s\n", strings.TrimRight(t.Formatted, "\n"))
	}
}

// table for people.
func table(turns []protocol.Turn) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "TURN\tENDED\tATTEMPT\tTASK\tMODEL\tROLE\tINPUT\tCACHED\tOUTPUT\tCOST\tSTATUS\tREASON\tTIME")
	for _, x := range turns {
		_, _ = fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s/%s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s\n", x.Sequence, x.At.UTC().Format(time.RFC3339), x.Attempt, x.Task,
			x.Backend, x.Model, x.Role, x.InputTokens, x.CachedInputTokens, x.OutputTokens, x.Cost, x.Status, x.Reason, time.Duration(x.Duration)*time.Millisecond)
	}
	_ = t.Flush() // a buffer takes everything
	return b.Bytes()
}

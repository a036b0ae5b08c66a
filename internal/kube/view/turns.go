// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Query parameters of lists. paramCall is the number of one call, counted over the whole Feature.
const (
	paramAfter = "after"
	paramLimit = "limit"
	paramCall  = "call"
)

// ErrNotRecorded says that the ledger does not have it.
var ErrNotRecorded = errors.New("the ledger does not have it")

// Ledger has the model calls, the changes of checkpoints, the steering of agents in trouble, and the history of Features. Queries are as for
// protocol.TurnsPath, CheckpointPath, EventsPath, SteeringListPath and HistoryListPath.
type Ledger interface {
	Turns(ctx context.Context, query url.Values) ([]protocol.Turn, error)
	Changes(ctx context.Context, query url.Values) (protocol.Changes, error)
	Events(ctx context.Context, query url.Values) ([]protocol.FileEvent, error)
	Steering(ctx context.Context, query url.Values) ([]protocol.SteeringStep, error)
	History(ctx context.Context, query url.Values) ([]protocol.HistoryEntry, error)
}

// featureTurns lists the calls of models that a Feature has made, or shows one with its answer.
func (s *Server) featureTurns(w http.ResponseWriter, r *http.Request) {
	s.list(w, r, []string{paramAfter, paramLimit, paramCall}, nil, func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error {
		turns, err := s.options.Ledger.Turns(ctx, ask)
		if err == nil {
			writeTurns(w, turns, ask.Has(paramCall), asJSON)
		}
		if errors.Is(err, ErrNotRecorded) {
			err = failure(http.StatusNotFound, fmt.Sprintf("the Feature %s has no call %s", key.Name, ask.Get(paramCall)))
		}
		return err
	})
}

// featureEvents lists what happened to files of a Feature.
func (s *Server) featureEvents(w http.ResponseWriter, r *http.Request) {
	s.list(w, r, []string{paramAfter, paramLimit}, nil, func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error {
		events, err := s.options.Ledger.Events(ctx, ask)
		if err == nil {
			writeEvents(w, key.Name, events, asJSON)
		}
		return err
	})
}

// list something of a Feature that the ledger has. The parameters are numbers, and names.
func (s *Server) list(w http.ResponseWriter, r *http.Request, numbers, names []string, find func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error) {
	query, err := parameters(r, slices.Concat(numbers, names, []string{paramOutput})...)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	asJSON, err := wantsJSON(query.Get(paramOutput), r.Header.Get("Accept"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	ask := url.Values{}
	for _, name := range numbers {
		if text := query.Get(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
				fail(w, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is not a number of 0 or more", name, text)))
				return
			}
		}
		if query.Has(name) {
			ask.Set(name, query.Get(name))
		}
	}
	for _, name := range names {
		if len(query.Get(name)) > maxName {
			fail(w, apierrors.NewBadRequest(fmt.Sprintf("%s has at most %d characters", name, maxName)))
			return
		}
		if query.Get(name) != "" {
			ask.Set(name, query.Get(name))
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
	ask.Set("feature", string(f.UID))
	switch err := find(r.Context(), key, ask, asJSON); {
	case apierrors.IsNotFound(err):
		fail(w, err)
	case err != nil:
		s.options.Logger.Error(err, "Cannot read the ledger", "feature", key)
		fail(w, failure(http.StatusServiceUnavailable, "the manager cannot read the gateway's ledger at the moment; its log says why"))
	}
}

// writeJSON for programs.
func writeJSON(w http.ResponseWriter, document any) {
	asText(w)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		panic(http.ErrAbortHandler) // a part must not look like the whole answer
	}
}

// writeEvents for programs or for people.
func writeEvents(w http.ResponseWriter, feature string, events []protocol.FileEvent, asJSON bool) {
	if asJSON {
		writeJSON(w, protocol.FileEvents{Events: events})
		return
	}
	p := toPeople(w)
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "EVENT\tTIME\tCHECKPOINT\tTYPE\tSIZE\tPATH")
	for _, e := range events {
		what := e.Path
		if e.Type == protocol.ChangeOmitted {
			what = fmt.Sprintf("(%d more files)", e.Count)
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\n", e.Sequence, e.CaptureTime.UTC().Format(time.RFC3339), naming.Checkpoint(feature, e.Checkpoint), cell(e.Type), e.Size, cell(what))
	}
	_ = t.Flush()
	_ = p.Flush() // fails where the client has closed the connection
}

// writeTurns for programs or for people.
func writeTurns(w http.ResponseWriter, turns []protocol.Turn, one, asJSON bool) {
	if asJSON {
		writeJSON(w, protocol.Turns{Turns: turns})
		return
	}
	p := toPeople(w)
	_, _ = p.Write(table(turns))
	if one && len(turns) == 1 {
		writeTurn(p, turns[0])
	}
	_ = p.Flush() // fails where the client has closed the connection
}

// writeTurn as it was said.
func writeTurn(w io.Writer, t protocol.Turn) {
	writeGiven(w, t)
	if t.Text == "" && len(t.Tools) == 0 { // an error, say
		t.Text = t.Answer
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", said(strings.TrimRight(t.Text, "\n")))
	for _, tool := range t.Tools {
		_, _ = fmt.Fprintf(w, "\n[calls %s] %s\n", cell(tool.Name), said(tool.Arguments))
	}
	for _, v := range t.Violations {
		_, _ = fmt.Fprintf(w, "\n[%s %s] %s\n", cell(strings.ToLower(v.Severity)), cell(v.Type), said(v.Message))
	}
	if t.Formatted != "" {
		_, _ = fmt.Fprintf(w, "\n[the agent got]\n%s\n", said(strings.TrimRight(t.Formatted, "\n")))
	}
}

// writeGiven shows what tools gave back to the model before it answered.
func writeGiven(w io.Writer, t protocol.Turn) {
	for _, r := range t.ToolResults {
		failed := ""
		if r.Failed {
			failed = ", an error"
		}
		_, _ = fmt.Fprintf(w, "\n[result of %s] %d bytes, SHA-256 %s, call %s%s\n", cell(cmp.Or(r.Tool, "a tool")), r.Bytes, cell(r.SHA256), cell(cmp.Or(r.Call, "without an ID")), failed)
		if text := strings.TrimRight(r.Text, "\n"); text != "" {
			_, _ = fmt.Fprintln(w, said(text))
		}
	}
	if t.MoreToolResults > 0 {
		_, _ = fmt.Fprintf(w, "\n[%d more results are not in the ledger]\n", t.MoreToolResults)
	}
}

// about marks what a provider has not counted.
func about(t protocol.Turn) string {
	if t.Estimated {
		return "~"
	}
	return ""
}

// detail of a turn, with what the provider's tools have done.
func detail(t protocol.Turn) string {
	var parts []string
	if t.Detail != "" {
		parts = append(parts, t.Detail)
	}
	for _, x := range []struct {
		number int64
		what   string
	}{
		{t.Searches, "web searches"}, {t.Fetches, "pages fetched"}, {t.CodeExecutions, "code executions"}, {t.FileSearches, "file searches"},
		{t.Images, "images made"}, {t.ConnectorCalls, "calls of connectors"},
	} {
		if x.number > 0 {
			parts = append(parts, fmt.Sprintf("%s by the provider: %d", x.what, x.number))
		}
	}
	return strings.Join(parts, "; ")
}

// table for people.
func table(turns []protocol.Turn) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "CALL\tTURN\tENDED\tATTEMPT\tTASK\tMODEL\tROLE\tINPUT\tCACHED\tWRITTEN\tOUTPUT\tCOST\tSTATUS\tREASON\tCOUNT\tTIME\tDETAIL")
	for _, x := range turns {
		turn := "-"
		if x.Turn > 0 {
			turn = fmt.Sprint(x.Turn)
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\t%s/%s\t%s\t%d\t%d\t%d\t%d\t%s%s\t%d\t%s\t%d\t%s\t%s\n", x.Sequence, turn, x.EndTime.UTC().Format(time.RFC3339), x.Attempt, cell(x.Task),
			cell(x.Backend), cell(x.Model), cell(x.Role), x.InputTokens, x.CachedInputTokens, x.CacheWriteTokens+x.CacheWriteHourTokens, x.OutputTokens, about(x), x.Cost, x.Status, cell(x.Reason), max(x.Count, 1), time.Duration(x.Duration)*time.Millisecond, cell(detail(x)))
	}
	_ = t.Flush() // a buffer takes everything
	return b.Bytes()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// paramEntry is the number of one entry of a history.
const paramEntry = "entry"

// featureHistory lists what happened in a Feature: attempts, its plan, tasks, gates, questions and answers. With an entry it shows that one with
// its text.
func (s *Server) featureHistory(w http.ResponseWriter, r *http.Request) {
	s.list(w, r, []string{paramAfter, paramLimit, paramEntry}, []string{paramTask}, func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error {
		entries, err := s.options.Ledger.History(ctx, ask)
		switch {
		case err == nil:
			writeHistory(w, entries, ask.Has(paramEntry), asJSON)
		case errors.Is(err, ErrNotRecorded):
			err = failure(http.StatusNotFound, fmt.Sprintf("the history of the Feature %s has no entry %s", key.Name, ask.Get(paramEntry)))
		}
		return err
	})
}

// writeHistory for programs or for people.
func writeHistory(w http.ResponseWriter, entries []protocol.HistoryEntry, one, asJSON bool) {
	if asJSON {
		writeJSON(w, protocol.History{Entries: entries})
		return
	}
	p := toPeople(w)
	writeEntries(p, entries, one)
	_ = p.Flush() // fails where the client has closed the connection
}

// writeEntries for people. Writing fails where the client has closed the connection.
func writeEntries(w io.Writer, entries []protocol.HistoryEntry, one bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ENTRY\tTIME\tATTEMPT\tKIND\tEVENT\tTASK\tNAME\tCAUSE\tSECONDS\tMESSAGE")
	for _, e := range entries {
		took := "-"
		if e.Kind == protocol.HistoryGate {
			took = fmt.Sprintf("%.1f", time.Duration(e.Duration*int64(time.Millisecond)).Seconds())
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Sequence, e.Time.UTC().Format(time.RFC3339), e.Attempt, cell(e.Kind), cell(e.Event),
			cell(cmp.Or(e.Task, "-")), cell(cmp.Or(e.Name, "-")), cell(cmp.Or(e.Cause, "-")), took, strings.Join(strings.Fields(e.Message), " "))
	}
	_ = t.Flush()
	if !one || len(entries) != 1 {
		return
	}
	if text := strings.TrimRight(entries[0].Text, "\n"); text != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", said(text))
	}
	if entries[0].Missing != "" {
		_, _ = fmt.Fprintf(w, "\ntidewaiter: this text is not complete: %s\n", cell(entries[0].Missing))
	}
}

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

// paramStep is the number of one step of steering, counted over the whole Feature.
const paramStep = "step"

// featureSteering lists what was done about the agent of a Feature when it was in trouble, or shows one step whole.
func (s *Server) featureSteering(w http.ResponseWriter, r *http.Request) {
	s.list(w, r, []string{paramAfter, paramLimit, paramStep}, nil, func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error {
		steps, err := s.options.Ledger.Steering(ctx, ask)
		switch {
		case err == nil:
			writeSteering(w, steps, ask.Has(paramStep), asJSON)
		case errors.Is(err, ErrNotRecorded):
			err = failure(http.StatusNotFound, fmt.Sprintf("the Feature %s has no step %s of steering", key.Name, ask.Get(paramStep)))
		}
		return err
	})
}

// writeSteering for programs or for people.
func writeSteering(w http.ResponseWriter, steps []protocol.SteeringStep, one, asJSON bool) {
	if asJSON {
		writeJSON(w, protocol.SteeringSteps{Steps: steps})
		return
	}
	p := toPeople(w)
	writeSteps(p, steps, one)
	_ = p.Flush() // fails where the client has closed the connection
}

// writeSteps for people. Writing fails where the client has closed the connection.
func writeSteps(w io.Writer, steps []protocol.SteeringStep, one bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "STEP\tTIME\tATTEMPT\tTASK\tTHREAD\tTURN\tCALL\tANOMALY\tDONE\tTOLD\tEVIDENCE")
	for _, x := range steps {
		call, done := "-", x.Rung
		if x.Call > 0 {
			call = fmt.Sprint(x.Call)
		}
		if x.Over {
			done = "Over"
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", x.Sequence, x.Time.UTC().Format(time.RFC3339), x.Attempt, cell(x.Task), x.Thread, x.Turn, call,
			cell(x.Anomaly), cell(done), cell(cmp.Or(x.Channel, "-")), strings.Join(strings.Fields(x.Evidence), " "))
	}
	_ = t.Flush()
	if !one || len(steps) != 1 {
		return
	}
	s := steps[0]
	for _, part := range []struct{ title, text string }{{"", s.Message}, {"[taken out of the conversation]\n", s.Before}, {"[put in instead]\n", s.After}} {
		if part.text != "" {
			_, _ = fmt.Fprintf(w, "\n%s%s\n", part.title, said(strings.TrimSpace(part.text)))
		}
	}
	if s.Missing != "" {
		_, _ = fmt.Fprintf(w, "\ntidewaiter: this record is not complete: %s\n", cell(s.Missing))
	}
}

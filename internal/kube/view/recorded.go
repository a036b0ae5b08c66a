// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// ledgerTime bounds a question to the ledger that the trusted volume can answer as well: kube-apiserver ends requests after a minute.
const ledgerTime = 5 * time.Second

// diff answers from the ledger what it has, and asks the trusted volume for everything else: for another comparison, for what
// `git apply` takes, and for what the ledger has no room for.
func (s *Server) diff(w http.ResponseWriter, r *http.Request, key types.NamespacedName, q protocol.Inquiry) {
	release, refused := s.streams.take(whoAsks(r).GetName())
	if refused != "" {
		fail(w, apierrors.NewTooManyRequests(refused, 1))
		return
	}
	c, is := s.recorded(r.Context(), key, q)
	release()
	switch {
	case is && c.Missing == "":
		writeDiff(w, c)
	case is:
		s.answer(w, r, key, q, func() { writeDiff(w, c) })
	default:
		s.answer(w, r, key, q, nil)
	}
}

// recorded is what the ledger has of a comparison; false where that is another one. A ledger that cannot be read is no reason for no
// answer.
func (s *Server) recorded(ctx context.Context, key types.NamespacedName, q protocol.Inquiry) (protocol.Changes, bool) {
	var f v1alpha1.Feature
	if q.Patch || s.options.Live.Get(ctx, key, &f) != nil {
		return protocol.Changes{}, false
	}
	if q.To == 0 {
		if run := f.Status.Run; run == nil || run.LastCheckpoint == nil {
			return protocol.Changes{}, false
		}
		var known bool
		if q.To, known = naming.Sequence(key.Name, f.Status.Run.LastCheckpoint.Name); !known {
			return protocol.Changes{}, false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerTime)
	defer cancel()
	c, err := s.options.Ledger.Changes(ctx, url.Values{"feature": {string(f.UID)}, "checkpoint": {strconv.FormatInt(q.To, 10)}})
	if err != nil {
		if !errors.Is(err, ErrNotRecorded) {
			s.options.Logger.Error(err, "Cannot read the ledger", "feature", key)
		}
		return c, false
	}
	switch {
	case q.Base:
		return c, c.Previous == 0
	case q.From != 0:
		return c, c.Previous == q.From
	}
	return c, true
}

// writeDiff as a trusted volume answers, with what is missing at the end.
func writeDiff(w http.ResponseWriter, c protocol.Changes) {
	asText(w)
	before := "the base"
	if c.Previous > 0 {
		before = fmt.Sprintf("checkpoint %d", c.Previous)
	}
	_, _ = fmt.Fprintf(w, "checkpoint %d: %s, %s; compared with %s\n%s", c.Checkpoint, c.Verdict, c.Action, before, c.Patch)
	if c.Missing != "" {
		_, _ = fmt.Fprintf(w, "\ntidewaiter: this diff is not complete: %s\n", c.Missing)
	}
}

// toPeople writes what an agent, its model, its tools or the people of a project have said, so that no terminal acts on it. Flush it at the end.
func toPeople(w http.ResponseWriter) *plain.Writer {
	asText(w)
	return plain.NewWriter(w)
}

// ends of rows and columns of a table.
var ends = strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`, "\v", `\u000b`, "\f", `\u000c`)

// cell of a table, or a part of a heading: a name that a model, a tool or a provider chose makes no row or line of its own.
func cell(name string) string { return ends.Replace(name) }

// headings are how the lines of a record begin that say what a text is.
var headings = strings.NewReplacer("\n[", "\n [", "\ntidewaiter:", "\n tidewaiter:")

// said is a text that stands between headings: no line of it looks like one.
func said(text string) string { return headings.Replace("\n" + text)[1:] }

// asText answers for people. What an agent wrote is never taken for a page by a browser, nor kept by a proxy.
func asText(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight decides what the facts of a cluster mean for Tidewaiter: what is right, what is wrong, what to do about it, and which page helps.
package preflight

import (
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Status of a finding.
type Status string

// A cluster with a failed check cannot run Features as it should. One with a warning can, and you should know the limit.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
)

// Finding is what one check says of a cluster.
type Finding struct {
	// Check is its ID.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Seen is what there is, and Fix what to do about it; empty if there is nothing to do.
	Seen string `json:"seen"`
	Fix  string `json:"fix,omitempty"`
	// Page of the documentation that helps.
	Page string `json:"page"`
}

// maxText bounds what a finding quotes of a cluster, in bytes.
const maxText = 800

// Text is a finding in one line, without its check and status.
func (f Finding) Text() string {
	if f.Status == OK {
		return f.Seen + "."
	}
	text := f.Seen + "."
	if f.Fix != "" {
		text += " " + f.Fix + "."
	}
	return text + " See " + f.Page + "."
}

// verdict is what a check finds, before it has the check's name and page.
type verdict struct {
	status    Status
	seen, fix string
}

func ok(seen string) verdict        { return verdict{OK, seen, ""} }
func warn(seen, fix string) verdict { return verdict{Warning, seen, fix} }
func fail(seen, fix string) verdict { return verdict{Failed, seen, fix} }

// Run the checks that want, on what is known of a cluster. A check whose facts nobody could gather has failed.
func Run(f *Facts, want func(Check) bool) []Finding {
	var all []Finding
	for _, c := range Checks() {
		if !want(c) {
			continue
		}
		verdicts := []verdict{fail("Tidewaiter could not look: "+f.Unread[c.ID], "Remove the cause, and run the checks again")}
		if f.Unread[c.ID] == "" {
			verdicts = c.find(f)
		}
		for _, v := range verdicts {
			all = append(all, Finding{Check: c.ID, Status: v.status, Seen: Line(v.seen), Fix: v.fix, Page: c.Page})
		}
	}
	return all
}

// Worst is the most serious status of some findings.
func Worst(all []Finding) Status {
	worst := OK
	for _, f := range all {
		if f.Status == Failed || f.Status == Warning && worst == OK {
			worst = f.Status
		}
	}
	return worst
}

// Line makes one line of a text that a pod or the cluster wrote: bounded, and without what a terminal acts on.
func Line(text string) string {
	text = strings.Join(strings.Fields(plain.CutBytes(text, maxText)), " ")
	return strings.TrimRight(string(plain.Append(nil, []byte(text))), ".")
}

// Entries are the findings as entries of a ConfigMap, by the IDs of checks.
func Entries(all []Finding) map[string]string {
	byCheck := map[string][]Finding{}
	for _, f := range all {
		byCheck[f.Check] = append(byCheck[f.Check], f)
	}
	entries := map[string]string{}
	for id, own := range byCheck {
		var texts []string
		for _, f := range own {
			texts = append(texts, f.Text())
		}
		entries[id] = string(Worst(own)) + ": " + strings.Join(texts, " ")
	}
	return entries
}

// Changed gives the IDs of checks whose status is another one than before, sorted. A check that is new counts unless it passed.
func Changed(before, after map[string]string) []string {
	var ids []string
	for id, entry := range after {
		was, known := before[id]
		if StatusOf(entry) != StatusOf(was) && (known || StatusOf(entry) != OK) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// StatusOf is the status in an entry.
func StatusOf(entry string) Status {
	status, _, _ := strings.Cut(entry, ":")
	return Status(status)
}

// Off is how far a clock that told a time is ahead of the API server's at least, negative if it is behind. It told the time between created and seen,
// both by the API server's clock, of which created has whole seconds.
func Off(created, told, seen time.Time) time.Duration {
	switch {
	case told.Before(created):
		return told.Sub(created)
	case told.After(seen):
		return told.Sub(seen)
	}
	return 0
}

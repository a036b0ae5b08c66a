// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// textMark ends the newest line of the changelog of a document that a reviewer has written. It has the digest of the rest of the document (ADR 139).
var textMark = regexp.MustCompile(` \(text ([0-9a-f]{8})\)$`)

// logged is a document whose changelog has one more line at its end, without the oldest ones for which there is no room. The line ends with the mark of the text, and is
// the only one with a mark.
func (d Document) logged(by Author, what string) Document {
	log, _ := d.unmarked()
	log = append(log, "* "+plain.Line(cmp.Or(by.where(), by.Reviewer), MaxAuthor)+": "+what)
	d.Changelog = log[max(len(log)-MaxChangelog, 0):]
	log = slices.Clone(d.Changelog)
	log[len(log)-1] += " (text " + d.digest() + ")"
	d.Changelog = log
	return d
}

// unmarked is the changelog without the mark of the text, and the digest of the mark; empty if there is none.
func (d Document) unmarked() (log []string, digest string) {
	log = slices.Clone(d.Changelog)
	if last := len(log) - 1; last >= 0 {
		if m := textMark.FindStringSubmatch(log[last]); m != nil {
			log[last], digest = strings.TrimSuffix(log[last], m[0]), m[1]
		}
	}
	return log, digest
}

// digest of a document. It depends on no empty lines and on no order of sections.
func (d Document) digest() string {
	sum := sha256.Sum256([]byte(d.Text()))
	return hex.EncodeToString(sum[:4])
}

// edited says whether the head of a document names a reviewer, and its text is not the one that the reviewer wrote: a user has edited it.
func (d Document) edited() bool {
	reviewer, _, is := strings.Cut(d.Author, ", ")
	if !is || !slices.Contains(protocol.Reviewers(), reviewer) {
		return false
	}
	log, digest := d.unmarked()
	d.Changelog = log
	return digest != d.digest()
}

// Adopt returns documents of a repository with the status that they have for agents and reviewers: a provisional document of a reviewer that a user has edited is
// established, so that no reviewer rewrites it.
func Adopt(documents []Document) []Document {
	all := slices.Clone(documents)
	for i := range all {
		if d := &all[i]; d.Status == StatusProvisional && d.edited() {
			d.Status = StatusEstablished
		}
	}
	return all
}

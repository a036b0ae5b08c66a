// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"encoding/hex"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Bounds of what agents, models and providers call things by, in bytes. Names go into reports, records and status.
const (
	// MaxName of a tool and of a model. The API's own names are shorter.
	MaxName = 256
	// MaxID of a call. Some gateways put the model's thoughts into it.
	MaxID = 16 << 10
	// MaxError of a provider.
	MaxError = 4 << 10
)

// label is a text that something is known by, bounded. Of one that is too long the beginning is kept, and the digest of all of it, so that two of
// them are as different as they were.
func label(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	sum := Sum([]byte(text))
	return plain.CutBytes(text, limit-hex.EncodedLen(len(sum))) + hex.EncodeToString(sum[:])
}

// bounded is a message as the dialects read it, with names and IDs that are bounded. Texts are: they are Quotes.
func (m Message) bounded() Message {
	for i := range m.Calls {
		c := &m.Calls[i]
		c.ID, c.Name, c.Edit.Path = label(c.ID, MaxID), label(c.Name, MaxName), label(c.Edit.Path, MaxQuote)
	}
	for i := range m.Results {
		r := &m.Results[i]
		r.ID, r.Name = label(r.ID, MaxID), label(r.Name, MaxName)
	}
	return m
}

// By says which model has answered.
func (a *Answer) By(model string) { a.Model = label(model, MaxName) }

// Fail takes the error in the midst of a stream.
func (a *Answer) Fail(message string) { a.Failure = plain.CutBytes(message, MaxError) }

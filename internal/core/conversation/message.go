// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Bounds of the memory of one message.
const (
	// MaxQuote is how much is kept of each text, of each arguments and of each result, in bytes: enough to classify and to quote it.
	// What has more is kept in two halves, since tools say at the end how they fared.
	MaxQuote = 4 << 10
	// MaxParts are the most calls and the most results of one message that are read.
	MaxParts = 256
)

// Role of a message.
type Role string

// Roles. Results of tools are in messages of the user, as some dialects have them, or in messages of their own.
const (
	RoleSystem Role = "System"
	RoleUser   Role = "User"
	RoleModel  Role = "Model"
)

// Digest identifies a text. It is a part of a SHA-256, so that no agent can make two texts with the same digest.
type Digest [16]byte

// Compare two digests in some order.
func (d Digest) Compare(other Digest) int { return bytes.Compare(d[:], other[:]) }

// Sum is the digest of some parts.
func Sum(parts ...[]byte) Digest {
	if len(parts) == 1 {
		sum := sha256.Sum256(parts[0])
		return Digest(sum[:])
	}
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return Digest(h.Sum(nil))
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	_, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))])
	return err
}

// Message of a conversation, as requests repeat it. A dialect whose lists have calls and results as entries of their own has a message
// for each.
type Message struct {
	Role Role
	// Text for users and models, without the model's thoughts.
	Text Quote
	// Calls of a model, and Results of such calls.
	Calls   []Call
	Results []Result
	// Images, and files without text.
	Images int
	// Other is the digest of content that the readers do not read, such as images.
	Other Digest
}

// digest of what a message says. Clients write the same message in more than one way from request to request, and move their marks of what is
// to be cached.
func (m Message) digest() Digest {
	h := sha256.New()
	put := func(digests ...Digest) {
		for _, d := range digests {
			h.Write(d[:])
		}
	}
	put(Sum([]byte(m.Role)), m.Text.Digest, m.Other)
	for _, c := range m.Calls {
		put(Sum([]byte(c.ID)), Sum([]byte(c.Name)), c.Arguments.Digest)
	}
	for _, r := range m.Results {
		put(Sum([]byte(r.ID)), r.Text.Digest)
		if r.Text.Other != (Digest{}) {
			put(r.Text.Other)
		}
	}
	var d Digest
	copy(d[:], h.Sum(nil))
	return d
}

// resultsOf are the digests of the calls whose results a message has.
func (m Message) resultsOf() (calls []Digest) {
	for _, r := range m.Results {
		calls = append(calls, Sum([]byte(r.ID)))
	}
	return calls
}

// heads are the digests of how its results begin.
func (m Message) heads() (heads []Digest) {
	const enough = 64 // bytes
	for _, r := range m.Results {
		heads = append(heads, Sum([]byte(r.Text.Text[:min(len(r.Text.Text), enough)])))
	}
	return heads
}

// Quote is the stored part of a text.
type Quote struct {
	// Text, at most MaxQuote bytes of it.
	Text string
	// Size of all of it in bytes, and its digest.
	Size   int
	Digest Digest
	// Other is the digest of its other content, such as images; zero if there is none.
	Other Digest
	// Whole is all of it, of a result of the newest messages that has more than Text. It is not remembered.
	Whole string
}

// All of the text, as far as it is stored.
func (q Quote) All() string {
	if q.Whole != "" {
		return q.Whole
	}
	return q.Text
}

// WholeOf is QuoteOf a text that is read in full.
func WholeOf(text string) Quote {
	q := QuoteOf(text)
	if len(text) > MaxQuote {
		q.Whole = text
	}
	return q
}

// QuoteOf a text.
func QuoteOf(text string) Quote {
	q := Quote{Text: text, Size: len(text)}
	if text != "" {
		q.Digest = Sum([]byte(text))
	}
	if len(text) > MaxQuote {
		q.Text = text[:MaxQuote/2] + text[len(text)-MaxQuote/2:]
	}
	return q
}

// Call of a tool.
type Call struct {
	ID, Name  string
	Arguments Quote
	// Edit of a file, if the call says what it replaces.
	Edit Edit
}

// Result of a call.
type Result struct {
	// ID of the call.
	ID string
	// Name of the tool, in dialects in which a result may have an ID that its call lacks; "" in others.
	Name string
	Text Quote
	// Failed says that the client marks it as an error.
	Failed bool
}

// of is the index among calls of the one that the result is of: by its ID, and where none has that, the first one of its tool; -1 for none.
func (r Result) of(calls []Call) int {
	i := slices.IndexFunc(calls, func(c Call) bool { return c.ID == r.ID })
	if i < 0 && r.Name != "" {
		i = slices.IndexFunc(calls, func(c Call) bool { return c.Name == r.Name })
	}
	return i
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

// Given is the result of a tool for the model, as in a request, for the record. The watchdog has a Result instead, which it compares with
// others, without parts that differ each time.
type Given struct {
	// Call is the ID of the call; empty if the request gives none.
	Call string
	// Tool is the name of the tool; empty if the request does not tell.
	Tool string
	// Bytes is the size of the result, and SHA256 the digest of it in hexadecimal. They describe the text itself, or for anything else
	// its JSON as in the request. Parts of a result are joined by a line feed.
	Bytes  int64
	SHA256 string
	// Failed says that the client marks it as an error.
	Failed bool
	// Text of it, as far as the caller asked for it. The kind of a part, such as [image], stands for a part without text.
	Text string
}

// GivenBounds bound how much of the results of one request a reader reads.
type GivenBounds struct {
	// Results is how many are given.
	Results int
	// Text of each result and Texts of all of them, in bytes; 0 for no text. Beyond is how much more of a longer text the reader returns, so
	// that a search finds what the bound cuts in two.
	Text, Texts, Beyond int
}

const (
	// MaxGivenName bounds the ID of a call and the name of a tool, in bytes. Those of providers have less than 200. The ledger stores half of it, as of any
	// name, and searches all of it for secrets.
	MaxGivenName = 1 << 10
	// fixedSize is what a result takes in addition to its texts and names, in bytes: the digest, and the structure twice.
	fixedSize = 512
)

// Size is how much memory the result takes, in bytes.
func (g Given) Size() int { return fixedSize + len(g.Call) + len(g.Tool) + len(g.Text) }

// Most is the most memory, in bytes, that the results of a request of the given size take. What they say is no longer than the request.
func (b GivenBounds) Most(request int) int {
	texts := 0 // only what fills the room of one result, or what is left of the room of all, has more beyond that
	if b.Text > 0 && b.Texts > 0 {
		texts = b.Texts + (b.Texts/b.Text+1)*b.Beyond
	}
	return b.Results*fixedSize + min(b.Results*2*MaxGivenName+texts, request)
}

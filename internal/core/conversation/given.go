// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

// Given is what a tool gave back to the model, as a request has it. A Result is the same for the watchdog, which compares what tools say and leaves
// out what is another one each time; this one is a record.
type Given struct {
	// Call is the ID of the call; empty where the request gives none.
	Call string
	// Tool is the name of the tool; empty where the request does not tell.
	Tool string
	// Bytes is the size of what the tool gave, and SHA256 the digest of it in hexadecimal. Of a text they are those of the text itself, and of
	// anything else those of its JSON as it stands in the request. Parts of a result are joined by a line feed.
	Bytes  int64
	SHA256 string
	// Failed says that the client marks it as an error.
	Failed bool
	// Text of it, as far as it was asked for. The kind of a part that is no text, such as [image], stands for that part.
	Text string
}

// GivenBounds bound what is read of the results of one request.
type GivenBounds struct {
	// Results is how many are given.
	Results int
	// Text of each result and Texts of all of them, in bytes; 0 for no text. Beyond is how much more of each text is given where it is longer, so
	// that a search of the text finds what the bound cuts in two.
	Text, Texts, Beyond int
}

const (
	// MaxCall and MaxTool bound the ID of a call and the name of a tool, in bytes: providers give IDs of some 30 characters, and take names of 64 or 128
	// (https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use).
	MaxCall, MaxTool = 512, 512
	// givenSize is what a result takes beside its text, in bytes: the ID, the name, the digest and the structure.
	givenSize = MaxCall + MaxTool + 256
)

// Most is how many bytes the results of a request of so many bytes take.
func (b GivenBounds) Most(request int) int {
	// Each text has room for one byte at least, so that the last one may go beyond the room of all.
	texts := 0
	if b.Text > 0 && b.Texts > 0 {
		texts = b.Texts + (b.Texts/b.Text+1)*b.Beyond
	}
	return min(b.Results*givenSize+texts, request+b.Results*256)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// Asked is the question that a model gets for a reviewer, and which calls that takes.
type Asked struct {
	// Question is everything that the model gets: the instructions of the reviewer, the data, and the tool that it answers with. It has at most
	// MaxAsked bytes.
	Question string `json:"question"`
	// SHA256 of Question, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Calls are the IDs of the calls that a model has answered, as the ledger has them: the second one follows an answer that could not be used.
	Calls []string `json:"calls,omitempty"`
}

// MaxAsked bounds the text of a question, in bytes.
const MaxAsked = MaxQuestion + len(toolIs) + len("\n\n\n\n: \n\n")

// toolIs introduces the tool in the text of a question.
const toolIs = "The tool of the answer, "

// NewAsked writes down a question.
func NewAsked(q speech.Question) Asked {
	text := q.System + "\n\n" + q.Text + "\n\n" + toolIs + q.Tool.Name + ": " + q.Tool.Description + "\n" + string(q.Tool.Schema) + "\n"
	sum := sha256.Sum256([]byte(text))
	return Asked{Question: text, SHA256: hex.EncodeToString(sum[:])}
}

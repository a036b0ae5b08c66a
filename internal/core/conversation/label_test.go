// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// named is a request in which everything has a name of some size.
type named struct {
	request
	name string
}

func (n named) Message(entry []byte) conversation.Message {
	m := n.request.Message(entry)
	for i := range m.Calls {
		m.Calls[i].ID += n.name
		m.Calls[i].Name, m.Calls[i].Edit.Path = n.name, n.name
	}
	for i := range m.Results {
		m.Results[i].ID += n.name
		m.Results[i].Name = n.name
	}
	return m
}

// TestNamesAreBounded where they enter, and a call is known by its ID all the same.
func TestNamesAreBounded(t *testing.T) {
	huge := strings.Repeat("x", 2<<20)
	var book conversation.Book
	lines := "user go\n"
	book.Observe(named{request{lines: lines, tools: true}, huge})
	var answer conversation.Answer
	answer.By(huge)
	answer.Fail(huge)
	answer.Call("c1"+huge, huge)
	answer.Call("c2"+huge, huge)
	if len(answer.Model) != conversation.MaxName || len(answer.Failure) > conversation.MaxError || len(answer.Tools[0].Name) != conversation.MaxName ||
		len(answer.Tools[0].ID) != conversation.MaxID || answer.Tools[0].ID == answer.Tools[1].ID {
		t.Error("the answer is not bounded")
	}
	book.Answered(1, &answer)
	turn := book.Observe(named{request{lines: lines + "call c1\ncall c2\nresult c2 second\nresult c1 first\n", tools: true}, huge})
	if turn.Thread != 1 || len(turn.Steps) != 2 || turn.Steps[0].Result.Text != "second" {
		t.Fatalf("turn of %d steps in thread %d", len(turn.Steps), turn.Thread)
	}
	for _, s := range turn.Steps {
		if len(s.Call.Name) != conversation.MaxName || len(s.Call.ID) > conversation.MaxID || len(s.Call.Edit.Path) > conversation.MaxQuote {
			t.Errorf("a call of %d, %d and %d bytes", len(s.Call.Name), len(s.Call.ID), len(s.Call.Edit.Path))
		}
	}
}

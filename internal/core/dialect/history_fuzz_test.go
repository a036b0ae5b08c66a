// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// counted is a request whose reading is counted.
type counted struct {
	conversation.Request

	entries, bytes, said int
}

func (c *counted) Message(entry []byte) conversation.Message {
	m := c.Request.Message(entry)
	c.entries, c.bytes = c.entries+1, c.bytes+len(entry)
	if m.Role != conversation.RoleSystem {
		c.said++
	}
	return m
}

// FuzzConversation: no request makes the book panic, each entry is read at most once, and a request that is sent once more says nothing
// new and is not read again. So it is in a book that knows other conversations. Wherever a note stands, the request is JSON.
func FuzzConversation(f *testing.F) {
	for _, w := range wires() {
		entries := append(append([]string{}, w.lead...), w.user("Go."), w.call("a", "ls"), w.result("a", "x"), w.model("Well."), w.user("And?"))
		f.Add(w.body("", true, entries), w.body("Sum up.", false, entries[:2]))
		f.Add(w.body("", true, entries[:1]), w.body("", true, w.summarized("Go.", "It goes.")))
	}
	f.Add(`{"model":"m","input":"one text","messages":"one text"}`, `{"model":"m","input":[7,null,"x",[],{"type":7}],"messages":[7,null,"x",[],{"role":7,"content":7}],"tools":[1]}`)
	f.Add(`{"model":"m","messages":[{"role":"system","content":"a"}],"input":[{"role":"developer"}]}`, `{"model":"m","messages":[{"role":"system","content":"a"},{"role":"user"}],"input":[{"role":"developer"},{"role":"user"}]}`)
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}]}]}`, `{"model":"m","messages":{},"input":{}}`)
	f.Fuzz(func(t *testing.T, before, body string) {
		for _, d := range dialect.All() {
			var book conversation.Book
			if r, err := d.ReadRequest([]byte(before)); err == nil {
				book.Observe(r.Conversation())
			}
			r, err := d.ReadRequest([]byte(body))
			if err != nil {
				continue
			}
			first := &counted{Request: r.Conversation()}
			turn := book.Observe(first)
			if first.bytes > len(r.Conversation().List()) {
				t.Fatalf("%s: %d bytes were read of a list of %d", d.Name, first.bytes, len(r.Conversation().List()))
			}
			if turn.Aligned > turn.Messages || len(turn.Steps) > conversation.MaxParts || len(turn.Said)+len(turn.Told) > 2*conversation.MaxParts {
				t.Fatalf("%s: %d of %d messages are aligned, %d steps", d.Name, turn.Aligned, turn.Messages, len(turn.Steps))
			}
			for _, after := range []int{0, 1, 2, turn.Messages / 2, turn.Messages, turn.Messages + 1} {
				if sent := r.Steer(dialect.Edits{Notes: []dialect.Note{{After: after, Text: "note"}}}, turn.Ends); json.Valid([]byte(body)) && !json.Valid(sent) {
					t.Fatalf("%s: not JSON with a note behind %d: %s", d.Name, after, sent)
				} else if r.HasPlace(after, turn.Ends) == nil && len(sent) == len(body) {
					t.Fatalf("%s: nothing is said behind %d", d.Name, after)
				}
			}
			if first.said == 0 {
				continue // nobody has said anything, or not that this request has been the first to tell
			}
			second := &counted{Request: r.Conversation()}
			if again := book.Observe(second); !again.Again || again.Thread != turn.Thread || again.Aligned != again.Messages || second.entries > 0 || len(again.Steps)+len(again.Said)+len(again.Told) > 0 {
				t.Fatalf("%s: the same again is %+v after %+v; %d entries were read", d.Name, again, turn, second.entries)
			}
		}
	})
}

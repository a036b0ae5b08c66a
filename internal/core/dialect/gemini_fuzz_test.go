// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// FuzzGemini: no contents and no answer make the reader panic; what is remembered keeps to its bounds; an answer is the same wherever its bytes
// are cut; a text that is replaced is the one that is read; a request stays JSON with everything that is put into it.
func FuzzGemini(f *testing.F) {
	for _, w := range wires() {
		if w.dialect != "gemini" {
			continue
		}
		entries := append(append([]string{}, w.lead...), w.user("Go."), w.call("a", "ls"), w.result("a", "x"), w.model("Well."))
		for _, r := range readings() {
			if r.dialect == "gemini" {
				f.Add(w.body("", true, entries), r.body, r.streamed, uint16(7))
			}
		}
	}
	f.Add(`{"system_instruction":{"parts":{"text":"b"}},"contents":[{"role":"user","parts":[{"function_response":{"name":"t","response":{"error":7}}},{"functionResponse":{"response":[]}}]},7,null]}`, `{"candidates":[{"content":{"parts":null}}]}`, false, uint16(1))
	d := find("gemini")
	f.Fuzz(func(t *testing.T, body, answer string, streamed bool, chunk uint16) {
		reading := reading{dialect: "gemini", streamed: streamed, body: answer}
		whole, pieces := read(reading, 1<<20), read(reading, int(chunk)+1)
		a, _ := json.Marshal(whole)
		b, _ := json.Marshal(pieces)
		if string(a) != string(b) {
			t.Fatalf("cut after %d bytes it is %s, whole %s", chunk+1, b, a)
		}
		if len(whole.Tools) > conversation.MaxTools || len(whole.Text) > conversation.MaxText || whole.Usage.Input < 0 || whole.Usage.Output < 0 {
			t.Fatalf("%d tools, %d bytes of text, %+v", len(whole.Tools), len(whole.Text), whole.Usage)
		}
		if now, err := d.Retext([]byte(answer), streamed, "anew"); err == nil && json.Valid([]byte(answer)) && !streamed && !json.Valid(now) {
			t.Fatalf("not JSON: %s", now)
		}
		r, err := d.ReadRequest([]byte(body))
		if err != nil || !json.Valid([]byte(body)) {
			return
		}
		var book conversation.Book
		turn := book.Observe(r.Conversation())
		if sent := r.Steer(dialect.Edits{Notes: []dialect.Note{{After: turn.Messages, Text: "note"}}, NoTools: true}, turn.Ends); !json.Valid(sent) {
			t.Fatalf("not JSON: %s", sent)
		} else if again, err := d.ReadRequest(sent); err != nil || r.Tools && !again.Bare() {
			t.Fatalf("%v; no tool may be called: %v: %s", err, again.Bare(), sent)
		}
		if sent, err := r.Body(dialect.Edit{Model: "m", Before: dialect.Quote("before"), Objections: []dialect.Objection{{Answer: "a", Text: "o"}}}); err == nil && !json.Valid(sent) {
			t.Fatalf("not JSON: %s", sent)
		}
	})
}

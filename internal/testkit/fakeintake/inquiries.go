// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeintake

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Inquire sends an inquiry with the orders, until the next one.
func (i *Intake) Inquire(q protocol.Inquiry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, err := json.Marshal(q)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	i.inquiry = string(text)
	close(i.changed)
	i.changed = make(chan struct{})
}

// Elsewhere lets the given number of answers come to a replica that does not wait for them.
func (i *Intake) Elsewhere(times int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.elsewhere = times
}

// Answer to an inquiry: its body, and after a line "!" what its trailer says. False before it is complete.
func (i *Intake) Answer(id string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, ok := i.answers[id]
	return text, ok
}

// asks adds the inquiry to an answer unless the caller has been told of it.
func (i *Intake) asks(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	var q protocol.Inquiry
	if json.Unmarshal([]byte(i.inquiry), &q) != nil || q.ID == r.URL.Query().Get(protocol.AskedQuery) {
		return false
	}
	w.Header().Set(protocol.InquiryHeader, i.inquiry)
	return true
}

func (i *Intake) postAnswer(w http.ResponseWriter, r *http.Request) {
	if !i.admit(w, r) {
		return
	}
	i.mu.Lock()
	i.elsewhere--
	elsewhere := i.elsewhere >= 0
	i.mu.Unlock()
	if elsewhere {
		http.Error(w, "nobody waits for it here", http.StatusMisdirectedRequest)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	text := string(body)
	if reason := r.Trailer.Get(protocol.AnswerErrorTrailer); reason != "" {
		text += "\n!" + reason
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answers == nil {
		i.answers = map[string]string{}
	}
	i.answers[r.PathValue("id")] = text
	w.WriteHeader(http.StatusNoContent)
}

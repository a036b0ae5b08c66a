// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// Word is what an agent that asks no model is to be told.
type Word struct {
	// Step of steering that it belongs to; an agent that is told twice, because the watchdog began anew, knows it by that.
	Step    int64  `json:"step"`
	Channel string `json:"channel"`
	Anomaly string `json:"anomaly"`
	Text    string `json:"text"`
}

// Voice tells an agent that asks no model what it is to be told. A nil Voice says nothing.
type Voice struct {
	service *Service
	// word that the agent has not been told; nil for none.
	word     *Word
	unspoken chan struct{}
}

// Voice of the service.
func (s *Service) Voice() *Voice {
	if s == nil { // there is no agent
		return nil
	}
	return &s.voice
}

// asks says whether the agent has asked a model about its task.
func (r *record) asks() bool { return len(r.Book.Threads) > 0 }

// clock decides what is done without a request. An agent that has nothing to do is not told that it does nothing.
func (s *Service) clock(now time.Time) {
	if s.record.Act != nil { // one is wanted at a time: what is decided meanwhile would be taken for done
		s.write(nil, false)
		return
	}
	terms, reach := s.options.Terms(), steering.Reach{}
	if !s.idle && !s.record.asks() {
		reach = s.options.Reach
		reach.Alone = true
		if terms.Task != "" {
			begin(s, terms.Task) // no request says that there is another
		}
	}
	if step := s.decide(context.Background(), terms, steering.TurnContext{Now: now, Clock: true, Reach: reach}); step.Halts() {
		want(s, step)
		return
	}
	s.write(nil, false)
}

// take over from a step what the agent is to be told. What it has not been told of an anomaly that is over, it need not be told.
func (v *Voice) take(x protocol.Steering) {
	switch {
	case x.Over && v.word != nil && v.word.Anomaly == x.Anomaly:
		v.word = nil
	case !x.Over && (x.Channel == protocol.ChannelTools || x.Channel == protocol.ChannelInput):
		v.word = &Word{Step: x.Sequence, Channel: x.Channel, Anomaly: x.Anomaly, Text: x.Message}
		v.call()
	}
}

// call the one that writes lines.
func (v *Voice) call() {
	select {
	case v.unspoken <- struct{}{}:
	default:
	}
}

// Unspoken says that there may be a Line.
func (v *Voice) Unspoken() <-chan struct{} {
	if v == nil {
		return nil
	}
	return v.unspoken
}

// Line is what is to be written to the agent's standard input; false for nothing. Said tells that it was.
func (v *Voice) Line() (Word, bool) {
	if v == nil {
		return Word{}, false
	}
	v.service.mu.Lock()
	defer v.service.mu.Unlock()
	if v.word == nil || v.word.Channel != protocol.ChannelInput {
		return Word{}, false
	}
	return *v.word, true
}

// Said tells that the Line of a step was written, as far as it could be.
func (v *Voice) Said(step int64) {
	v.service.mu.Lock()
	defer v.service.mu.Unlock()
	if v.word != nil && v.word.Step == step {
		v.word = nil
		v.service.keep(true)
	}
}

// Words are what is to be told beside the result of a tool; "" for nothing. They are given once.
func (v *Voice) Words() string {
	v.service.mu.Lock()
	defer v.service.mu.Unlock()
	if v.word == nil || v.word.Channel != protocol.ChannelTools {
		return ""
	}
	text := v.word.Text
	v.word = nil
	v.service.keep(true)
	return text
}

// Told says that the agent was told, by this voice or in its requests, of something that is wrong with it and not over. What waits to be said was not.
func (v *Voice) Told() bool {
	v.service.mu.Lock()
	defer v.service.mu.Unlock()
	r := &v.service.record
	return slices.ContainsFunc(r.Steering.Episodes, func(e steering.Episode) bool {
		said := len(e.Tried)
		if slices.Contains(e.Tried, steering.Observe) {
			said--
		}
		if r.Unsaid[e.Finding.Thread] != "" || v.word != nil && v.word.Anomaly == string(e.Finding.Kind) {
			said--
		}
		return said > 0
	})
}

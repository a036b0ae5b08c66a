// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxReply bounds one line of an agent's replies in bytes. After a longer one nothing more is taken from that agent.
const maxReply = 64 << 10

// reply is a line that an agent may write to its reply descriptor.
type reply struct {
	Type string `json:"type"`
	// PauseResume says, in a line of type capabilities, whether the agent takes part in pauses.
	PauseResume bool `json:"pause_resume"`
	// CheckpointID, Status and PendingOperations are of type pause_ack.
	CheckpointID      string   `json:"checkpoint_id"`
	Status            string   `json:"status"`
	PendingOperations []string `json:"pending_operations"`
	// Understood, Constraint and CorrectiveAction are of type violation_ack, and CheckpointID may be.
	Understood       bool   `json:"understood"`
	Constraint       string `json:"constraint"`
	CorrectiveAction string `json:"corrective_action"`
}

// dialogue is what an agent says of itself. It decides nothing: who lies here is stopped like everybody else.
type dialogue struct {
	mu sync.Mutex
	// takesPart in pauses, as far as the agent said.
	takesPart bool
	// id of the requested pause, and where its answer goes; nil for none.
	id      string
	answers chan []string
	// resume is the line that is due once the agent continues; "" for none.
	resume string
	// understood gets the agent's acknowledgments, while the agent has acknowledgments left: one that says more is not passed on.
	understood      func(protocol.RunnerUnderstood)
	acknowledgments int
}

// listen reads what an agent says until it ends. understood gets its acknowledgments.
func listen(replies io.Reader, understood func(protocol.RunnerUnderstood)) *dialogue {
	d := &dialogue{understood: understood}
	go func() {
		lines := bufio.NewScanner(replies)
		lines.Buffer(nil, maxReply)
		for lines.Scan() {
			d.hear(lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, replies) // what is said after that holds nobody up
	}()
	return d
}

// hear takes one line; what is no reply is nobody's business.
func (d *dialogue) hear(line []byte) {
	var said reply
	if json.Unmarshal(line, &said) != nil {
		return
	}
	if said.Type == "violation_ack" {
		if said.Understood && d.acknowledges() {
			d.understood(protocol.RunnerUnderstood{Checkpoint: cut(said.CheckpointID), Rule: cut(said.Constraint), Instead: cut(said.CorrectiveAction)})
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case said.Type == "capabilities":
		d.takesPart = said.PauseResume
	case said.Type != "pause_ack" || said.Status != "paused" || d.answers == nil:
	case said.CheckpointID == "" || said.CheckpointID == d.id:
		d.answers <- pending(said.PendingOperations)
		d.answers = nil
	}
}

// sent says that the agent is sent a line, which it may answer.
func (d *dialogue) sent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acknowledgments = protocol.MaxAcknowledgments
}

// acknowledges uses one acknowledgment up, if there is one.
func (d *dialogue) acknowledges() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acknowledgments--
	return d.acknowledgments >= 0
}

// cut is a text of an agent as it can be passed on.
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), protocol.MaxAcknowledged)], "")
}

// pending is a list of what an agent says as it can be passed on.
func pending(said []string) []string {
	var list []string
	for _, p := range said[:min(len(said), protocol.MaxPendingOperations)] {
		list = append(list, strings.ToValidUTF8(p[:min(len(p), protocol.MaxPendingOperation)], ""))
	}
	return list
}

// open begins a pause; false where the agent takes no part in it.
func (d *dialogue) open(ask protocol.RunnerAsk) (<-chan []string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.takesPart {
		return nil, false
	}
	answers := make(chan []string, 1)
	d.id, d.answers, d.resume = ask.ID, answers, ask.Resume
	return answers, true
}

// close ends the wait for an answer.
func (d *dialogue) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = nil
}

// due is the line that tells the agent that it may continue, once.
func (d *dialogue) due() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := d.resume
	d.resume = ""
	return line
}

// ask asks the agent to pause and waits for its answer; nil where it is not asked: nobody wants to, it takes no part in
// it, or does not read. A nil agent has ended.
func (a *agent) ask(ctx context.Context, ask *protocol.RunnerAsk) *protocol.Pause {
	if a == nil || ask == nil {
		return nil
	}
	answers, ok := a.dialogue.open(*ask)
	if !ok {
		return nil
	}
	defer a.dialogue.close()
	if !a.process.Input.Write(ask.Line) {
		a.dialogue.due()
		return nil
	}
	began := time.Now()
	patience := time.NewTimer(ask.Timeout)
	defer patience.Stop()
	p := &protocol.Pause{}
	select {
	case p.Pending = <-answers:
		p.Acknowledged = true
	case <-patience.C:
	case <-a.process.Done():
	case <-ctx.Done():
	}
	p.Latency = time.Since(began)
	return p
}

// resume tells an agent with a requested pause that it continues. A nil agent has ended.
func (a *agent) resume() {
	if a == nil {
		return
	}
	if line := a.dialogue.due(); line != "" {
		a.process.Input.Write(line)
	}
}

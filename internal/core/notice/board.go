// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// maxWords of checkpoints and rollbacks wait to be told. The newest have room.
	maxWords = 3
	// maxAhead bounds the stored warnings: how many an agent has, and how many wait.
	maxAhead = 64
	// between two notices in one text.
	between = "\n\n"
)

// Board has the notices about its work for an agent that reads no lines. It gets them with its next model call, or next to the next result
// of a tool. The notice of a newer checkpoint replaces that of the previous one. The zero Board is empty; a Board is stored as JSON.
type Board struct {
	// Words are the notices that wait for the agent, the oldest first.
	Words []Word `json:"words,omitempty"`
	// Ahead are the broken rules that no checkpoint has seen and about which the agent has no warning; Warned are the ones with a warning.
	Ahead  []Point `json:"ahead,omitempty"`
	Warned []Point `json:"warned,omitempty"`
	// Heeded counts the broken rules that were fixed before a checkpoint saw them.
	Heeded int64 `json:"heeded,omitempty"`
	// Newest is the number of the newest checkpoint that the Board knows of.
	Newest int64 `json:"newest,omitempty"`
	// Stands is the notice of the newest checkpoint if the agent has received it and it still holds; nil otherwise.
	Stands *Standing `json:"stands,omitempty"`
	// Turn counts the agent's turns, and Asks are the open requests for acknowledgment.
	Turn int64 `json:"turn,omitempty"`
	Asks []Ask `json:"asks,omitempty"`
	// Question is the agent's question that a restart of the watchdog has cut off, and of which the agent has not read that; nil for none.
	Question *protocol.Question `json:"question,omitempty"`
}

// Standing is a notice that an agent has received, and the number of entries of its conversation before it.
type Standing struct {
	Word

	After int `json:"after"`
}

// Word is the notice of one checkpoint or rollback.
type Word struct {
	// Checkpoint is its name and Sequence its number, Severity that of the worst broken rule.
	Checkpoint string `json:"checkpoint"`
	Sequence   int64  `json:"sequence,omitempty"`
	Severity   string `json:"severity,omitempty"`
	// Points are the broken rules, and More how many are not listed.
	Points []Point `json:"points,omitempty"`
	More   int     `json:"more,omitempty"`
	// Back says what went back; empty for nothing. The agent learns about it even if the violations are fixed by then.
	Back string `json:"back,omitempty"`
	// Fixed is the checkpoint whose broken rules are fixed by this one; empty for none.
	Fixed string `json:"fixed,omitempty"`
	// Critical are the rules that the agent must acknowledge.
	Critical []string `json:"critical,omitempty"`
}

// Broken records the violations that a checkpoint, by its number, has found.
func (b *Board) Broken(sequence int64, n Violations) {
	w := n.word()
	w.Sequence, b.Newest = sequence, sequence
	b.checked(w.Points)
	if w.Back == "" && b.Stands != nil && b.Stands.same(w) {
		b.drop()
		return
	}
	b.drop()
	b.say(w)
}

// Valid records that a checkpoint, by its number and its name, has found no violation that concerns the agent.
func (b *Board) Valid(sequence int64, checkpoint string) {
	b.Newest = sequence
	b.checked(nil)
	b.drop()
	if b.Stands != nil {
		b.say(Word{Checkpoint: checkpoint, Fixed: b.Stands.Checkpoint})
	}
}

// Recall records what the newest checkpoint reverted if the Board does not know it, because the watchdog restarted in between.
func (b *Board) Recall(sequence int64, checkpoint, objection string) {
	if sequence <= b.Newest {
		return
	}
	b.Newest = sequence
	b.drop()
	b.Ahead, b.Warned, b.Stands = nil, nil, nil
	b.say(Word{Checkpoint: checkpoint, Back: fmt.Sprintf("Files of yours went back at checkpoint %s, which keeps them. What was wrong: %s. Look at a file before you edit it, and do the work again without breaking that rule.",
		checkpoint, trimmed(objection, 4*maxText))})
}

// Forget removes the notices, because the agent received them another way. The requests for acknowledgment stay.
func (b *Board) Forget(sequence int64) {
	*b = Board{Heeded: b.Heeded, Newest: max(b.Newest, sequence), Turn: b.Turn, Asks: b.Asks}
}

// Anew forgets everything but the counters: there is another agent, or it works on another task.
func (b *Board) Anew() { *b = Board{Heeded: b.Heeded, Newest: b.Newest} }

// RolledBack records that the workspace went back, and whether the agent learns about it. Earlier violations may be gone.
func (b *Board) RolledBack(n Rollback, told bool) {
	b.drop()
	b.Ahead, b.Warned, b.Stands = nil, nil, nil
	if told {
		b.say(Word{Checkpoint: n.CheckpointID, Back: n.text()})
	}
}

// Warn records violations that no checkpoint has seen: all of them, or the ones that a check of a part of the changes has found. It says
// whether there is a new one. An agent with maxAhead warnings gets more when it has fixed some, or from the checkpoint.
func (b *Board) Warn(list []protocol.Violation, whole bool) (news bool) {
	now := points(list)
	if whole {
		b.heed(now)
	}
	known := slices.Concat(b.Ahead, b.Warned)
	if b.Stands != nil {
		known = append(known, b.Stands.Points...)
	}
	more := slices.DeleteFunc(now, func(p Point) bool { return has(known, p) })
	more = more[:min(len(more), max(0, maxAhead-len(b.Ahead)-len(b.Warned)))]
	b.Ahead = append(slices.Clip(b.Ahead), more...)
	return len(more) > 0
}

// heed counts what is broken no more, and forgets it.
func (b *Board) heed(now []Point) {
	fixed := func(p Point) bool { return !has(now, p) }
	before := len(b.Ahead) + len(b.Warned)
	b.Ahead, b.Warned = slices.DeleteFunc(b.Ahead, fixed), slices.DeleteFunc(b.Warned, fixed)
	b.Heeded += int64(before - len(b.Ahead) - len(b.Warned))
}

// checked records a checkpoint with these points: a warning is in its notice, or was fixed in time.
func (b *Board) checked(found []Point) {
	b.heed(found)
	b.Ahead, b.Warned = nil, nil
}

// drop the words that nothing but an earlier checkpoint stands for.
func (b *Board) drop() {
	b.Words = slices.DeleteFunc(b.Words, func(w Word) bool { return w.Back == "" })
}

func (b *Board) say(w Word) {
	b.Words = append(b.Words, w)
	b.Words = b.Words[max(0, len(b.Words)-maxWords):]
}

// Keep keeps the notice whose note is still in the conversation. The agent gets a note again if the conversation no longer shows it
// and it still holds.
func (b *Board) Keep(there func(after int) bool) {
	if b.Stands == nil || there(b.Stands.After) {
		return
	}
	w := b.Stands.Word
	b.Stands = nil
	if !slices.ContainsFunc(b.Words, func(w Word) bool { return w.Back == "" }) {
		b.say(w)
	}
	b.Words = slices.DeleteFunc(b.Words, func(w Word) bool { return w.Fixed != "" }) // there is nothing to take back
}

// Within moves what stood behind more entries than the given number to stand behind that number.
func (b *Board) Within(entries int) {
	if b.Stands != nil {
		b.Stands.After = min(b.Stands.After, entries)
	}
}

// Note is the text for the agent now, behind the given number of entries; "" for nothing. Next is the Board after that.
func (b *Board) Note(entries int) (text string, next Board) {
	next = *b
	next.Words, next.Ahead, next.Warned, next.Asks, next.Question = nil, nil, slices.Clone(b.Warned), slices.Clone(b.Asks), nil
	for _, p := range b.Ahead {
		next.Warned = append(next.Warned, Point{Rule: p.Rule, Path: p.Path})
	}
	next.Warned = next.Warned[max(0, len(next.Warned)-maxAhead):]
	var texts []string
	if b.Question != nil {
		texts = append(texts, steering.Tag+" "+CutOff(*b.Question))
	}
	for _, w := range b.Words {
		var before *Word
		if next.Stands != nil {
			before = &next.Stands.Word
		}
		texts = append(texts, w.text(before))
		next.Asked(w.Sequence, w.Checkpoint, w.Critical)
		if next.Stands = nil; w.Back == "" && w.Fixed == "" {
			next.Stands = &Standing{w, entries}
		}
	}
	if len(b.Ahead) > 0 {
		texts = append(texts, ahead(b.Ahead))
	}
	if due := next.Remind(); len(due) > 0 {
		texts = append(texts, again(due))
	}
	return strings.Join(texts, between), next
}

// same says whether two checkpoints say the same.
func (w Word) same(o Word) bool {
	return w.Severity == o.Severity && w.More == o.More && slices.Equal(w.Points, o.Points)
}

// has says whether a rule is broken at a path.
func has(list []Point, p Point) bool {
	return slices.ContainsFunc(list, func(o Point) bool { return o.Rule == p.Rule && o.Path == p.Path })
}

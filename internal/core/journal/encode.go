// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// CorruptError names the line that cannot be understood. Do not decide anything from such a journal.
type CorruptError struct {
	// Line counts from 1.
	Line   int
	Reason string
	// Later: the line is whole, and a later version of Tidewaiter has written it.
	Later bool
}

// Error names line and reason.
func (e *CorruptError) Error() string { return fmt.Sprintf("journal line %d: %s", e.Line, e.Reason) }

// sumMark begins the end of a line: the sum of everything before it.
const sumMark = `,"sum":"`

// lineEnd is the length of a line's end without newline: sumMark, 64 hexadecimal digits, `"}`.
const lineEnd = len(sumMark) + 2*sha256.Size + len(`"}`)

// Encode is a record as one line, newline included, that follows the line with the sum previous; "" for the first. The
// second value is the sum of the new line. A line names the line before it and carries the sum of itself, so that a reader can distinguish
// an edited line from one that was cut, inserted or moved.
func Encode(r Record, previous string) (line []byte, sum string, err error) {
	r.Version, r.Previous = Version, previous
	body, err := json.Marshal(r)
	if err != nil {
		return nil, "", fmt.Errorf("encode journal record: %w", err)
	}
	sum = sumOf(body)
	body = append(body[:len(body)-1], sumMark...)
	body = append(body, sum...)
	return append(body, "\"}\n"...), sum, nil
}

// Decode reads a journal, or one that begins with a snapshot. A last line without its newline was torn by a crash before it was durable, so nothing has
// happened because of it: it is left out. whole is the length of the complete lines. With an error, Decode also returns the records before
// the line that it names.
func Decode(data []byte) (records []Record, whole int, err error) {
	previous := ""
	for line := 1; ; line++ {
		end := bytes.IndexByte(data[whole:], '\n')
		if end < 0 {
			return records, whole, nil
		}
		r, reason := decodeLine(data[whole:whole+end], previous, line == 1)
		if reason != "" {
			return records, whole, &CorruptError{Line: line, Reason: reason}
		}
		if later := r.later(); later != "" {
			return records, whole, &CorruptError{Line: line, Reason: later, Later: true}
		}
		records, previous = append(records, r), r.Sum
		whole += end + 1
	}
}

func decodeLine(line []byte, previous string, first bool) (Record, string) {
	var r Record
	if len(line) <= lineEnd || !bytes.HasPrefix(line[len(line)-lineEnd:], []byte(sumMark)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return r, "it does not end with its sum: it was cut short or overwritten"
	}
	at := len(line) - lineEnd
	sum := string(line[at+len(sumMark) : len(line)-len(`"}`)])
	if body := append(bytes.Clone(line[:at]), '}'); sumOf(body) != sum {
		return r, "it is not what was written: its sum does not match its content"
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err.Error()
	}
	if r.Version < 1 {
		return r, fmt.Sprintf("version %d, and versions begin with 1", r.Version)
	}
	if r.Previous != previous && (!first || r.Snapshot == nil) {
		return r, "it does not follow the line before it: a line was cut, inserted or moved"
	}
	if n := r.kinds(); n > 1 {
		return r, fmt.Sprintf("%d kinds of records in one line, and there must be exactly one", n)
	}
	r.Sum = sum
	return r, ""
}

// later says why a whole record is one of a later version; empty if it is not.
func (r Record) later() string {
	const advice = "a later version of Tidewaiter has written it: run that version again, or a later one"
	switch {
	case r.Version > Version:
		return fmt.Sprintf("the record has version %d, and this version knows versions 1 to %d; %s", r.Version, Version, advice)
	case r.kinds() == 0:
		return "this version does not know the kind of the record; " + advice
	}
	return ""
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r Record) kinds() int {
	n := 0
	for _, set := range []bool{
		r.Attempt != nil, r.Orders != nil, r.Base != nil, r.Planned != nil, r.PlanMissing != nil, r.PlanApproved != nil, r.TaskBegun != nil, r.TaskCorrected != nil, r.TaskRestarted != nil, r.TaskStarted != nil, r.TaskRejected != nil, r.TaskParked != nil, r.TaskEnded != nil, r.TaskProving != nil, r.GateRan != nil, r.DeliveryGateRan != nil, r.TaskAdded != nil, r.TaskDropped != nil, r.TaskAborted != nil, r.Reviewed != nil, r.Calls != nil,
		r.TaskCompleted != nil, r.Asked != nil, r.Operation != nil, r.Directed != nil,
		r.Intent != nil, r.Withheld != nil, r.Done != nil, r.Told != nil, r.Acknowledged != nil, r.Steered != nil, r.Request != nil, r.Breaker != nil, r.Squashed != nil, r.KnowledgeCommitted != nil, r.Dropped != nil, r.Delivered != nil, r.Final != nil,
		r.Snapshot != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

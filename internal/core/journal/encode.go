// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// CorruptError says which line cannot be understood. Nothing may be decided on such a journal.
type CorruptError struct {
	// Line counts from 1.
	Line   int
	Reason string
}

// Error names line and reason.
func (e *CorruptError) Error() string { return fmt.Sprintf("journal line %d: %s", e.Line, e.Reason) }

// Encode is a record as one line, newline included.
func Encode(r Record) ([]byte, error) {
	r.Version = Version
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode journal record: %w", err)
	}
	return append(line, '\n'), nil
}

// Decode reads a journal. A last line without its newline was torn by a crash before it was durable, so nothing has
// happened because of it: it is left out. whole is the length of the lines that count.
func Decode(data []byte) (records []Record, whole int, err error) {
	for line := 1; ; line++ {
		end := bytes.IndexByte(data[whole:], '\n')
		if end < 0 {
			return records, whole, nil
		}
		r, reason := decodeLine(data[whole : whole+end])
		if reason != "" {
			return nil, 0, &CorruptError{Line: line, Reason: reason}
		}
		records = append(records, r)
		whole += end + 1
	}
}

func decodeLine(line []byte) (Record, string) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err.Error()
	}
	if r.Version < 1 || r.Version > Version {
		return r, fmt.Sprintf("version %d, and only versions 1 to %d are known", r.Version, Version)
	}
	if n := r.kinds(); n != 1 {
		return r, fmt.Sprintf("%d kinds of records in one line, and there must be exactly one", n)
	}
	return r, ""
}

func (r Record) kinds() int {
	n := 0
	for _, set := range []bool{
		r.Attempt != nil, r.Orders != nil, r.Base != nil, r.TaskBegun != nil, r.TaskStarted != nil, r.TaskEnded != nil,
		r.Intent != nil, r.Done != nil, r.Request != nil, r.Breaker != nil, r.Delivered != nil, r.Final != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

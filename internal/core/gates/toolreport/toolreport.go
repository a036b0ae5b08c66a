// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolreport reads what tools write about tests and coverage. A hostile agent can have written any of it: a report is bounded in size, and its
// cost in time and memory is linear.
package toolreport

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// MaxBytes bounds the size of a report.
	MaxBytes = 8 << 20
	// maxFailures bounds how many names of failed tests a summary has.
	maxFailures = 20
	// maxName bounds such a name in bytes. It leaves room to find a secret at the end of what is shown.
	maxName = 1 << 10
)

var (
	errEmpty    = errors.New("it is empty")
	errTooLarge = fmt.Errorf("it has more than %d MiB", MaxBytes>>20)
)

// Summary is what a report says.
type Summary struct {
	// Tests that it names, and how many of them failed or were skipped. Zero in a report of coverage.
	Tests   int `json:"tests,omitempty"`
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
	// Failures are the names of failed tests, at most 20.
	Failures []string `json:"failures,omitempty"`
	// Lines that tests can cover, and how many they covered. Zero in a report of tests.
	Lines   int `json:"lines,omitempty"`
	Covered int `json:"covered,omitempty"`
}

// Ran is how many tests ran: skipped ones prove nothing.
func (s Summary) Ran() int { return s.Tests - s.Skipped }

// Covers says whether at least the given percentage of the lines is covered.
func (s Summary) Covers(percent int) bool {
	return int64(s.Covered)*100 >= int64(s.Lines)*int64(percent)
}

// Percent is the coverage with one digit after the point. It is never rounded up.
func (s Summary) Percent() string {
	if s.Lines == 0 {
		return "0%"
	}
	tenths := int64(s.Covered) * 1000 / int64(s.Lines)
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// Read a report. Errors are the end of a sentence that begins with the report.
func Read(format string, data []byte) (Summary, error) {
	if len(data) > MaxBytes {
		return Summary{}, errTooLarge
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return Summary{}, errEmpty
	}
	switch format {
	case protocol.ReportJUnit:
		return readJUnit(data)
	case protocol.ReportGoTest:
		return readGoTest(data)
	case protocol.ReportTAP:
		return readTAP(data)
	case protocol.ReportLCOV:
		return readLCOV(data)
	case protocol.ReportCobertura:
		return readCobertura(data)
	}
	return Summary{}, fmt.Errorf("this watchdog knows no format %q", format)
}

// outcome of a test.
type outcome int

const (
	passed outcome = iota
	failed
	skipped
)

// count a test.
func (s *Summary) count(name string, o outcome) {
	s.Tests++
	switch o {
	case failed:
		s.Failed++
		if len(s.Failures) < maxFailures {
			s.Failures = append(s.Failures, plain.CutBytes(name, maxName))
		}
	case skipped:
		s.Skipped++
	case passed:
	}
}

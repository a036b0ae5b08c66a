// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// repeats of a conversation whose messages are written one behind the other; "x" is a call that fails, "r" one that gives the same each time, and
// a digit one that gives something else. A letter in capitals has something said with its result.
func repeats(t *testing.T, exchanges string) conversation.Repeats {
	t.Helper()
	lines := "user go\n"
	for i, kind := range exchanges {
		result := map[rune]string{'x': "Error: no", 'X': "Error: no", 'r': "the same"}[kind]
		if result == "" {
			result = fmt.Sprintf("news %c", kind)
		}
		lines += fmt.Sprintf("model trying %d\ncall c%d\nresult c%d %s\n", i, i, i, result)
		if kind == 'X' {
			lines += "user A word.\n"
		}
	}
	var book conversation.Book
	r := request{lines: lines, tools: true}
	turn := book.Observe(r)
	return book.Repeats(r, turn.Ends, func(tool string) bool { return tool == "run" })
}

func TestRepeats(t *testing.T) {
	for exchanges, want := range map[string][]conversation.Span{
		"":            nil,
		"x":           nil, // the newest one stays
		"1xx":         {{4, 7}},
		"1xxx":        {{4, 10}},
		"1r2r":        {{4, 7}},
		"1rrrr":       {{4, 13}},
		"x1x":         {{1, 4}},
		"xxx1234":     nil, // something else was done since
		"xx12xx":      {{1, 7}, {13, 16}},
		"1xXxx":       {{4, 7}, {11, 14}},
		"XXX":         nil,
		"1234":        nil,
		"r12x":        nil,
		"x" + "12r3x": nil,
	} {
		if diff := cmp.Diff(want, repeats(t, exchanges).Spans); diff != "" {
			t.Errorf("%s (-want +got):\n%s", exchanges, diff)
		}
	}
	if tried := repeats(t, "1xxxx").Tried; len(tried) != 1 || tried[0].Times != 3 || tried[0].Failure != conversation.FailureTool || tried[0].Call.Name != "run" {
		t.Errorf("%+v", tried)
	}
}

// TestRepeatsOfMuch: of a very long conversation the end is searched, and no exchange is cut in two.
func TestRepeatsOfMuch(t *testing.T) {
	found := repeats(t, "1"+strings.Repeat("x", 1000))
	if len(found.Spans) != 1 || found.Spans[0].To != 1+3*1000 || (found.Spans[0].From-1)%3 != 0 {
		t.Errorf("%+v", found.Spans)
	}
	if n := found.Tried[0].Times; n < 160 || n > 172 {
		t.Errorf("%d calls", n)
	}
}

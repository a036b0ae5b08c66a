// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestThePageHasEveryLine: docs/reference/command-protocol.md lists each type of line with all of its fields.
func TestThePageHasEveryLine(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/command-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile("testdata/lines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	reminder, err := json.Marshal(Remind([]Ask{{Checkpoint: "login-3", Rule: "areas"}}))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := json.Marshal(Violations{Type: "checkpoint_violation", RequiresAcknowledgment: true})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines) + string(reminder) + "\n" + string(broken)) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		name := strings.Trim(string(fields["type"]), `"`)
		row := rowOf(string(page), name)
		if row == "" {
			t.Errorf("no row is about lines of type %s", name)
			continue
		}
		for field := range fields {
			if field != "type" && !strings.Contains(row, "`"+field+"`") {
				t.Errorf("the row of %s lacks the field %s", name, field)
			}
		}
	}
}

// rowOf is the row of the page whose first cell names a type of lines; "" for none.
func rowOf(page, name string) string {
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" && strings.Contains(cells[1], "`"+name+"`") {
			return line
		}
	}
	return ""
}

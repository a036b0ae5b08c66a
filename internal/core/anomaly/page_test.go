// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestThePageSaysWhen: docs/concepts/supervision.md has how often something must be repeated for each tier.
func TestThePageSaysWhen(t *testing.T) {
	page, err := os.ReadFile("../../../docs/concepts/supervision.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what string
		// turns that follow each other again and again; # counts them.
		turns []string
	}{
		{"the same call fails in the same way", []string{"Deploy(web)!ToolError=cannot"}},
		{"the same command ends with an exit code other than 0, and prints the same", []string{"Bash(make)!ExitCode=cannot make it"}},
		{"a tool is called with arguments that it does not take", []string{"Deploy(web#)!Format=no such parameter #"}},
		{"an edit is taken back and made again", []string{"Edit(a.go: one -> two)=done #", "Edit(a.go: two -> one)=undone #"}},
		{"a tool fails in the same way, whatever it is called with", []string{"Deploy(web#)!ToolError=no web#"}},
		{"commands end with an exit code other than 0, whatever they are, and print the same", []string{"Bash(make part#)!ExitCode=cannot make it"}},
		{"the same call succeeds with the same result", []string{"Read(a)=letter a"}},
		{"two turns follow each other, and one of them fails", []string{"Read(a)=letter a", "Deploy(web)!ToolError=cannot"}},
		{"two turns follow each other, and both succeed", []string{"Read(a)=letter a", "Read(b)=letter b"}},
		{"the model says the same words", []string{"say I look at it."}},
		{"the same command ends with an exit code other than 0, and prints something else each time", []string{"Bash(make)!ExitCode=cannot make it, ~"}},
	} {
		row := fmt.Sprintf("| %s | %s |", tc.what, strings.Join(tiers(t, tc.turns), " | "))
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/concepts/supervision.md has no line\n%s", row)
		}
	}
}

// tiers are how many times in a row something was there when each tier was reached; "never" where it was not.
func tiers(t *testing.T, turns []string) []string {
	t.Helper()
	p := &player{t: t, rules: Defaults(), now: epoch, turns: map[int]int{}, last: map[int]time.Time{}}
	p.rules.Stall = 1000 // is no repetition
	p.turn("told Go")
	reached := []string{"never", "never", "never"}
	for n := range 40 {
		p.now = p.now.Add(10 * time.Second)
		p.turn(strings.NewReplacer("#", strconv.Itoa(n), "~", strings.Repeat("x", n)).Replace(turns[n%len(turns)]))
		for _, f := range findings(&p.state, p.rules, p.now) {
			if at := &reached[f.Tier-1]; f.Kind == AgentLooping && *at == "never" {
				*at = strconv.Itoa(f.Count)
			}
		}
	}
	return reached
}

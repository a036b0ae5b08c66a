// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDetectorsAreWhole: each says what it finds and what an agent is told to do about it, and is in the list.
func TestDetectorsAreWhole(t *testing.T) {
	var names []string
	for _, d := range detectors() {
		if d.name == "" || slices.Contains(names, d.name) {
			t.Errorf("detector %q, %q: give it a name of its own", d.name, d.doc)
			continue
		}
		names = append(names, d.name)
		if !slices.Contains(kinds(), d.kind) || d.kind == PaceEscalated {
			t.Errorf("detector %s finds %q: that is no kind of finding", d.name, d.kind)
		}
		if !strings.HasSuffix(d.doc, ".") {
			t.Errorf("detector %s: doc says for people what it finds, in one sentence; it is %q", d.name, d.doc)
		}
		if d.look == nil || d.advice == nil {
			t.Errorf("detector %s has no look or no advice: say what the agent is to do about what it finds", d.name)
			continue
		}
		for tier := Warn; tier <= Breaker; tier++ {
			if f := (Finding{Kind: d.kind, Detector: d.name, Tier: tier, Tool: "Deploy"}); !strings.HasSuffix(f.Advice(), ".") || f.Advice() != d.advice(f) {
				t.Errorf("detector %s, tier %d: the agent is told %q", d.name, tier, f.Advice())
			}
		}
	}
	declared := regexp.MustCompile(`(?m)^var (\w+) = detector\{`)
	list, err := os.ReadFile("detectors.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < len(names) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			if !strings.Contains(string(list), "\n\t\t"+string(m[1])+",\n") {
				t.Errorf("detector %s of %s is not in the list of detectors.go", m[1], file)
			}
		}
	}
}

// TestAdviceOfAnUnknownDetector: what a watchdog of another version has found is answered by its kind.
func TestAdviceOfAnUnknownDetector(t *testing.T) {
	for kind, want := range map[Kind]string{
		CascadeFailure: "Stop and verify", ContextPressure: "Finish the current step", AgentStalled: "Reassess the approach", AgentLooping: "Do not call Deploy again like this",
	} {
		if got := (Finding{Kind: kind, Detector: "telepathy", Tier: Warn, Tool: "Deploy"}).Advice(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/gates/toolreport"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// reporting has the first gates write reports of tests.
func (w *world) reporting(edit func(i int, g *protocol.Gate)) {
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Supervision.MaxCorrections = 0
		for i := range o.Gates {
			o.Gates[i].Report = &protocol.GateReport{Format: protocol.ReportJUnit, Path: "web/report.log"}
			edit(i, &o.Gates[i])
		}
	})
}

// gateResults are results of gates, as the journal has them.
func (w *world) gateResults() (all []gates.Result) {
	records, _ := w.recorded()
	for _, r := range records {
		if g := r.GateRan; g != nil {
			all = append(all, g.Result)
		}
	}
	return all
}

// TestAGateHasItsEnvironment: what the orders say, and not in place of what Tidewaiter sets.
func TestAGateHasItsEnvironment(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, `[ "$NODE_ENV" = "a b" ] && [ "$CI" = false ] && [ "$HTTPS_PROXY" != http://evil.example.com ]`)
	w.intake.Order(func(o *protocol.Orders) {
		o.Gates[0].Env = []string{"NODE_ENV=a b", "CI=false", "HTTPS_PROXY=http://evil.example.com"}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// TestReportsOfGates: each gate has what its own run wrote, whatever was there before, and a report that proves nothing fails it.
func TestReportsOfGates(t *testing.T) {
	t.Parallel()
	const two = `<testsuite><testcase name="adds"/><testcase name="removes"/></testsuite>`
	outside := ""
	scripts := []struct{ name, script, message string }{
		{"a report", "echo '" + two + "' > web/report.log", ""},
		{"the report of the gate before", "true", "its report web/report.log cannot be used: it is not there"},
		{"a pipe", "mkfifo web/report.log", "it is not a regular file"},
		{"after a pipe", "echo '" + two + "' > web/report.log", ""},
		{"a link out", "ln -s OUTSIDE/report.xml web/report.log", "a symbolic link is in its path"},
		{"too large", "head -c 9000000 /dev/zero > web/report.log", "it has more than 8388608 bytes"},
		{"empty", "> web/report.log", "it is empty"},
		{"an entity", `echo '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite>&x;</testsuite>' > web/report.log`, "declares entities"},
		{"a failed test", `echo '<testsuite><testcase name="adds"/><testcase name="key AKIAQ3EGRIDKUWZN5X7C"><failure/></testcase></testsuite>' > web/report.log`, "names 1 failed test"},
		{"too few tests", "echo '" + two + "' > web/report.log", "2 tests ran by its report web/report.log, where at least 3 must"},
		{"a captured path", "echo '" + two + "' > web/report.xml", ""},
		{"too little coverage", "printf 'SF:a\\nDA:1,1\\nDA:2,0\\nend_of_record\\n' > web/report.log", "50.0% of the lines are covered"},
		{"a directory", "mkdir web/report.log", "it is not a regular file"},
	}
	var commands []string
	for _, s := range scripts {
		commands = append(commands, s.script)
	}
	w := newGated(t, pages+`; echo '`+two+`' > web/report.log`, commands...)
	outside = w.mkdir("outside")
	w.write("outside/report.xml", two)
	w.reporting(func(i int, g *protocol.Gate) {
		g.Command[2] = strings.ReplaceAll(g.Command[2], "OUTSIDE", outside)
		switch scripts[i].name {
		case "too few tests":
			g.MinTests = 3
		case "a captured path":
			g.Report.Path = "web/report.xml"
		case "too little coverage":
			g.Report.Format, g.MinCoverage = protocol.ReportLCOV, 51
		}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	results := w.gateResults()
	if len(results) != len(scripts) {
		t.Fatalf("%d gates ran", len(results))
	}
	for i, r := range results {
		s := scripts[i]
		if (r.State == gates.Passed) != (s.message == "") || !strings.Contains(r.Message, s.message) {
			t.Errorf("%s: %s: %q, want %q", s.name, r.State, r.Message, s.message)
		}
		if s.message == "" && !cmp.Equal(r.Report, &toolreport.Summary{Tests: 2}) {
			t.Errorf("%s: %+v", s.name, r.Report)
		}
		if len(r.Changed) > 0 {
			t.Errorf("%s: the report is named as a change: %q", s.name, r.Changed)
		}
	}
	i := slices.IndexFunc(results, func(r gates.Result) bool { return r.Report != nil && r.Report.Failed > 0 })
	if i < 0 || strings.Contains(results[i].Report.Failures[0], "AKIA") {
		t.Errorf("a secret in the name of a test is kept: %+v", results)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "report.xml")); string(data) != two {
		t.Errorf("outside of the workspace: %q, %v", data, err)
	}
}

// TestACrashAfterAReport: what a run wrote of which the result is lost is not taken for the report of the next run.
func TestACrashAfterAReport(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	w.marking("[ $(wc -l < " + filepath.Join(w.dir, "gate-runs") + `) -gt 1 ] || echo "<testsuite/>" > web/report.log`)
	w.reporting(func(int, *protocol.Gate) {})
	p := w.start(1, pullAt("gate ended", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/report.log")); err != nil {
		t.Fatalf("the first run has left no report: %v", err)
	}
	p.resume(false)
	wantFinal(t, p.finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if got := w.gateResults(); len(got) != 1 || !strings.Contains(got[0].Message, "it is not there") {
		t.Errorf("results %+v", got)
	}
}

// TestAnAgentHearsOfItsTests: the correction names failed tests, and the agent mends them.
func TestAnAgentHearsOfItsTests(t *testing.T) {
	t.Parallel()
	w := newGated(t, `case "$TIDEWAITER_INSTRUCTIONS" in *"1 failed, 0 skipped"*"| cart: adds"*) echo good > web/page.html;; *) echo bad > web/page.html;; esac`,
		`if grep -q good web/page.html; then f=""; else f="<failure/>"; fi; echo "<testsuite><testcase classname='cart' name='adds'>$f</testcase></testsuite>" > web/report.log`)
	w.reporting(func(_ int, g *protocol.Gate) { g.MinTests = 1 })
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 1 })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Failed 0", "gate-0 Passed 0")
}

// TestOutputsOfGates: people read the beginning and the end of what a gate has printed, after the end of the Feature too, without secrets and without
// what a terminal acts on. A secret that a cut has shortened is in neither.
func TestOutputsOfGates(t *testing.T) {
	const key = "AKIAQ3EGRIDKUWZN5X7C"
	const filler = `f() { head -c $1 /dev/zero | tr '\0' '.'; echo; }; `
	w := newGated(t, pages,
		// The head ends 10 bytes into the first key, and the tail begins 10 bytes into the second.
		filler+`printf 'first\033[2J\n'; f 81899; echo `+key+`; f 300000; echo `+key+`; f 212970; echo last`,
		`echo `+key+` is short`)
	w.reporting(func(i int, g *protocol.Gate) { g.Report = nil })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	results := w.gateResults()
	if len(results) != 2 || len(results[0].Output) > gates.MaxOutput || !strings.HasSuffix(results[0].Output, "last\n") || results[0].Kept == "" {
		t.Fatalf("results %.500s", fmt.Sprint(results))
	}
	whole := w.answers(t, protocol.Inquiry{ID: "one", Kind: protocol.InquiryGates, Task: "login", Gate: "gate-0"})
	for _, want := range []string{"{\"code\":200}\ntask login, gate gate-0, ", ": passed\nits output:\nfirst\\u001b[2J\n.....", "bytes are not kept …]\n", "..\nlast\n"} {
		if !strings.Contains(whole, want) {
			t.Errorf("the answer of %d bytes lacks %q: %.300q", len(whole), want, whole)
		}
	}
	if n := len(whole); n < (64+190)<<10 || n > (64+192+36)<<10 {
		t.Errorf("%d bytes are kept", n)
	}
	short := w.answers(t, protocol.Inquiry{ID: "two", Kind: protocol.InquiryGates, Task: "login", Gate: "gate-1"})
	if !strings.Contains(short, " is short\n") {
		t.Errorf("the short output: %q", short)
	}
	for _, part := range []string{key[:8], key[12:]} {
		if strings.Contains(whole, part) || strings.Contains(short, part) || strings.Contains(results[1].Output, part) {
			t.Errorf("a part of the key, %s, is kept", part)
		}
	}
	list := w.answers(t, protocol.Inquiry{ID: "three", Kind: protocol.InquiryGates})
	if lines := strings.Split(strings.TrimSpace(list), "\n"); len(lines) != 4 || !strings.Contains(lines[2], "login  gate-0  Passed  0 ") {
		t.Errorf("the list is\n%s", list)
	}
	if none := w.answers(t, protocol.Inquiry{ID: "four", Kind: protocol.InquiryGates, Task: "login", Gate: "lint"}); !strings.Contains(none, `{"code":404,"message":"no such gate has run: gate \"lint\" after task \"login\""}`) {
		t.Errorf("a gate that is not: %q", none)
	}
}

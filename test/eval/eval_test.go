// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables into docs/evaluation.md")

// printEnv asks for the tables and for every mistake on standard output, as make eval does.
const printEnv = "TIDEWAITER_EVAL"

// Goals, which hold for what was tuned to and for what was held back.
const (
	leastSeen  = .95  // of the sick runs
	mostLate   = 4.0  // turns after a person, the median
	mostSilent = 15.0 // minutes after a person, the median of the runs in which no turn passes
)

// page has the tables between marks.
const page = "../../docs/evaluation.md"

// between which marks of the page something stands.
type between struct{ begin, finish string }

// tables of the corpus, those of what is held back, those of what was written blind, and how the figures move with other thresholds.
var (
	tables = between{"<!-- begin of the tables -->\n", "<!-- end of the tables -->\n"}
	others = between{"<!-- begin of the scenarios held back -->\n", "<!-- end of the scenarios held back -->\n"}
	blinds = between{"<!-- begin of the scenarios written blind -->\n", "<!-- end of the scenarios written blind -->\n"}
	moved  = between{"<!-- begin of the thresholds -->\n", "<!-- end of the thresholds -->\n"}
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // what runs allocate is soon over: a third less time
	os.Exit(m.Run())
}

// TestCorpus plays all runs under each configuration, and holds what was found against what a person would say.
func TestCorpus(t *testing.T) {
	drawn := len(written()) / 4
	tuned, held := append(written(), draw(tunedSeed, drawn)...), draw(heldSeed, 2*drawn+drawn/2)
	var list []string
	for _, c := range configurations() {
		for _, p := range []part{
			{name: c.name + ": written, and drawn with a seed that may be tuned to", verdicts: plays(c, tuned, c.directly)},
			{name: c.name + ": held back", verdicts: plays(c, held, c.directly)},
		} {
			list = append(list, p.table())
			p.print()
			p.judge(t)
		}
	}
	tables.compare(t, strings.Join(list, "\n"))
}

// print the table and every mistake, where somebody asks for them.
func (p part) print() {
	if os.Getenv(printEnv) != "" {
		fmt.Printf("%s\n%s\n", p.table(), p.mistakes())
	}
}

// judge a part by the goals.
func (p part) judge(t *testing.T) {
	t.Helper()
	for _, v := range p.verdicts {
		if len(v.strays) > 0 {
			t.Errorf("%s: %v", v.run.Name, v.strays)
		}
		if problem := v.nags(); problem != "" {
			t.Errorf("%s: %s", v.run.Name, problem)
		}
	}
	well, alarmed, ill, seen := p.counts()
	turns, minutes := p.late("")
	if least := 80; well < least || ill < least {
		t.Errorf("%s: %d healthy and %d sick runs, want at least %d of each", p.name, well, ill, least)
	}
	if alarmed > 0 || float64(seen) < leastSeen*float64(ill) {
		t.Errorf("%s: %d of %d healthy runs have a false alarm, and %d of %d sick ones are seen:\n%s", p.name, alarmed, well, seen, ill, p.mistakes())
	}
	if late := quantile(turns, .5); atof(late) > mostLate {
		t.Errorf("%s: the median is seen %s turns after a person, want %v", p.name, late, mostLate)
	}
	if late := quantile(minutes, .5); atof(late) > mostSilent {
		t.Errorf("%s: what hangs is seen %s minutes after a person, want %v", p.name, late, mostSilent)
	}
}

func atof(text string) float64 {
	var f float64
	if _, err := fmt.Sscan(text, &f); err != nil {
		return 1e9 // nothing was seen
	}
	return f
}

// plays runs under a configuration, each by a pipeline of its own, and more of them at once than there are CPUs, since some wait for their own answers. What
// comes out depends on none of the others.
func plays(c configuration, runs []Run, by func(Run) Pipeline) []verdict {
	list := make([]verdict, len(runs))
	next := make(chan int)
	var all sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				r := runs[i]
				r.kinds = c.kinds(r.kinds)
				p := by(r)
				list[i] = play(r, p)
				p.Close()
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	all.Wait()
	return list
}

// compare a text with what stands there on the page, or write it.
func (b between) compare(t *testing.T, now string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, []byte(b.begin))
	_, after, also := bytes.Cut(rest, []byte(b.finish))
	if !ok || !also {
		t.Fatalf("%s has no marks %s%s", page, b.begin, b.finish)
	}
	want := string(before) + b.begin + "\n" + now + "\n" + b.finish + string(after)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a page that everybody reads
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is stale: run go test ./test/eval -update", page)
	}
}

// TestLabels: every sick run says when it becomes so and when a person sees it, and goes on long enough for being seen.
func TestLabels(t *testing.T) {
	names := map[string]bool{}
	for _, r := range slices.Concat(written(), heldBack(), blind(), draw(tunedSeed, 100)) {
		v := play(r, &deaf{})
		name := v.run.Name
		if names[name] {
			t.Errorf("%s: two runs have the name", name)
		}
		names[name] = true
		switch {
		case !v.sick() && (v.turn > 0 || v.onset > 0):
			t.Errorf("%s: a healthy run in which a person sees something", name)
		case v.sick() && (v.turn == 0 || v.onset == 0 || v.onset >= v.turn && !v.hung):
			t.Errorf("%s: sick after turn %d, seen at turn %d", name, v.onset, v.turn)
		case v.sick() && !v.hung && v.turns < v.turn+4:
			t.Errorf("%s: ends at turn %d, seen at turn %d: too short", name, v.turns, v.turn)
		}
	}
}

// deaf hears nothing.
type deaf struct{}

func (*deaf) Request([]byte, time.Time) (int, []string) { return 1, nil }
func (*deaf) Answer(reply, time.Time)                   {}
func (*deaf) Signals(Signals, time.Time)                {}
func (*deaf) Findings(time.Time) []Finding              { return nil }
func (*deaf) Close()                                    {}

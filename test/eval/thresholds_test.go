// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	blame "github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// direct hears a run without a proxy: it reads the same bytes and asks the same detectors. It tells nothing.
type direct struct {
	dialect dialect.Dialect
	rules   anomaly.Rules
	window  int64
	book    conversation.Book
	state   anomaly.State
	thread  int
}

// Request implements Pipeline.
func (p *direct) Request(body []byte, now time.Time) (thread int, told []string) {
	r, err := p.dialect.ReadRequest(body)
	if err != nil {
		panic(err)
	}
	turn := p.book.Observe(r.Conversation())
	p.thread = turn.Thread
	p.state.Turn(turn, now)
	return turn.Thread, nil
}

// Answer implements Pipeline.
func (p *direct) Answer(r reply, now time.Time) {
	if r.status >= 400 {
		p.state.Failed(p.thread, blame.Answer{Status: r.status}, now)
		return
	}
	in := conversation.NewReader(p.dialect.Answer(), r.kind == "text/event-stream")
	in.Write(r.body)
	a := in.Close()
	p.book.Answered(p.thread, a)
	p.state.Answer(p.thread, *a, p.window, now)
}

// Signals implements Pipeline.
func (p *direct) Signals(s Signals, now time.Time) {
	if s.Changed {
		p.state.Work(anomaly.Work{Changed: true}, now)
	}
	if s.Pulse {
		p.state.Work(anomaly.Work{Tree: s.Tree, Verdict: s.Verdict}, now)
		p.state.Pulse(anomaly.Pulse{CPU: s.CPU, Processes: s.Processes, Output: s.Output, Idle: s.Idle}, now)
	}
}

// Findings implements Pipeline.
func (p *direct) Findings(now time.Time) []Finding {
	var list []Finding
	for _, f := range p.state.Findings(p.rules, now) {
		list = append(list, Finding{Kind: string(f.Kind), Evidence: f.Evidence})
	}
	return list
}

// Close implements Pipeline.
func (*direct) Close() {}

// hears plays runs without a proxy.
func hears(rules anomaly.Rules, runs []Run) []verdict {
	list := make([]verdict, len(runs))
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				r := runs[i]
				r.kinds = configuration{plan: rules.Role}.kinds(r.kinds)
				rules := rules
				known, _ := runtimes.Find(r.client.name)
				rules.Compaction = known.Compaction()
				list[i] = play(r, &direct{dialect: r.client.wire(), rules: rules, window: cmp.Or(r.window, defaultWindow)})
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

// TestThresholds plays written runs without a proxy, with the thresholds that are the defaults. Where the table is asked for, as make eval and -update do, it plays all
// of them, and holds how the figures move when the thresholds are halved and doubled against the page.
func TestThresholds(t *testing.T) {
	runs, all := written(), [][2]float64{{1, 1}, {1, .5}, {1, 2}, {.5, 1}, {2, 1}}
	asked := os.Getenv(printEnv) != "" || *update
	if !asked {
		var few []Run
		for i := 0; i < len(runs); i += 10 {
			few = append(few, runs[i])
		}
		runs, all = few, all[:1]
	}
	var out strings.Builder
	out.WriteString("| stall | loop | healthy runs with a false alarm | sick runs that are seen | turns later: median | p90 |\n|--|--|--|--|--|--|\n")
	built := anomaly.Defaults()
	for i, by := range all {
		rules := built
		rules.Stall, rules.Loop = int(by[0]*float64(built.Stall)), max(1, int(by[1]*float64(built.Loop)+.5))
		p := part{verdicts: hears(rules, runs)}
		well, alarmed, ill, seen := p.counts()
		turns, _ := p.late("")
		if i == 0 && (alarmed > 0 || seen < ill) {
			t.Errorf("with the default thresholds: %d of %d healthy runs have a false alarm, %d of %d sick ones are seen\n%s", alarmed, well, seen, ill, p.mistakes())
		}
		fmt.Fprintf(&out, "| %d | %d | %d of %d (%.1f %%) | %d of %d (%.1f %%) | %s | %s |\n", rules.Stall, rules.Loop,
			alarmed, well, 100*float64(alarmed)/float64(well), seen, ill, 100*float64(seen)/float64(ill), quantile(turns, .5), quantile(turns, .9))
	}
	if !asked {
		return
	}
	if os.Getenv(printEnv) != "" {
		fmt.Printf("Other thresholds\n%s\n", out.String())
	}
	moved.compare(t, out.String())
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// under plays runs with other rules for what is wrong. Nobody tells the agents anything.
func under(rules anomaly.Thresholds, runs []Run) []verdict {
	c := configuration{plan: rules.Role}
	return plays(c, runs, func(r Run) Pipeline {
		p, rules := newPlain(c, r.client, r.window), rules // each run has a client of its own
		rules.Compaction = p.terms.Rules.Compaction
		p.terms.Rules.Thresholds, p.terms.Rules.Ladder = rules, steering.Observe
		return p
	})
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
		p := part{verdicts: under(rules, runs)}
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

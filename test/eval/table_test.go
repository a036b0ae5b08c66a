// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// part of the corpus, and what was seen of it.
type part struct {
	name     string
	verdicts []verdict
}

// all kinds, in the order of the table.
var all = []kind{looping, stalled, pressured, cascading, escalated}

// alarms are reports that are wrong: any of a healthy run, and of a sick one those of another kind and those that come before it is sick.
func (v verdict) alarms() []report {
	return slices.DeleteFunc(slices.Clone(v.reports), v.right)
}

// right says whether a report is. A run that hangs may be seen without another turn.
func (v verdict) right(r report) bool {
	return slices.Contains(v.run.kinds, r.kind) && (r.turn > v.onset || v.hung && r.turn == v.onset)
}

// seen gives the first report that is right; of several at once, the one that says best what is wrong.
func (v verdict) seen() (report, bool) {
	i := slices.IndexFunc(v.reports, v.right)
	if i < 0 {
		return report{}, false
	}
	for _, r := range v.reports[i:] {
		if r.at.Equal(v.reports[i].at) && r.kind == v.run.kinds[0] && v.right(r) {
			return r, true
		}
	}
	return v.reports[i], true
}

func (v verdict) sick() bool { return len(v.run.kinds) > 0 }

// figures in a message: turns, counts and times.
var figures = regexp.MustCompile(`[0-9]+[hms]?`)

// nags says what is wrong with what the agent was told: more than one thing at once, the same thing again before the cooldown is over, or
// anything where nothing is wrong.
func (v verdict) nags() string {
	last := map[string]int{}
	for _, m := range v.told {
		key := fmt.Sprint(m.thread, figures.ReplaceAllString(m.texts[0], "#"))
		before, again := last[key]
		switch {
		case len(m.texts) > 1:
			return fmt.Sprintf("turn %d: told %d things at once: %q", m.turn, len(m.texts), m.texts)
		case !strings.HasPrefix(m.texts[0], "[SUPERVISOR]"):
			return fmt.Sprintf("turn %d: told %q, which does not say by whom", m.turn, m.texts[0])
		case again && m.turn-before < steering.Defaults().Cooldown:
			return fmt.Sprintf("turns %d and %d: told %q", before, m.turn, m.texts[0])
		case len(v.reports) == 0:
			return fmt.Sprintf("turn %d: told %q, and nothing is found", m.turn, m.texts[0])
		}
		last[key] = m.turn
	}
	return ""
}

// quantile of a list, or – for none.
func quantile(list []float64, q float64) string {
	if len(list) == 0 {
		return "–"
	}
	slices.Sort(list)
	return fmt.Sprintf("%.0f", list[min(int(q*float64(len(list))), len(list)-1)])
}

// late is how much later than a person something was seen: in turns, or in minutes where no turns pass.
func (p part) late(k kind) (turns, minutes []float64) {
	for _, v := range p.verdicts {
		if r, ok := v.seen(); ok && (k == "" || v.run.kinds[0] == k) {
			if v.hung {
				minutes = append(minutes, r.at.Sub(v.at).Minutes())
			} else {
				turns = append(turns, float64(r.turn-v.turn))
			}
		}
	}
	return turns, minutes
}

// counts of runs that are healthy, of those with an alarm, of those that are sick, and of those that were seen.
func (p part) counts() (well, alarmed, ill, seen int) {
	for _, v := range p.verdicts {
		switch _, ok := v.seen(); {
		case !v.sick():
			well++
			if len(v.reports) > 0 {
				alarmed++
			}
		case ok:
			ill, seen = ill+1, seen+1
		default:
			ill++
		}
	}
	return well, alarmed, ill, seen
}

// table of a part: what is wrong by label, and what was reported first.
func (p part) table() string {
	var b strings.Builder
	well, alarmed, ill, seen := p.counts()
	fmt.Fprintf(&b, "### %s\n\nHealthy: %d runs, %d with a false alarm. Sick: %d runs, %d seen (%.1f %%).\n\n", p.name, well, alarmed, ill, seen, 100*float64(seen)/float64(max(ill, 1)))
	b.WriteString("| what is wrong | runs |")
	for _, k := range all {
		b.WriteString(" " + k + " |")
	}
	b.WriteString(" missed | told | turns later: median | p90 | minutes later: median | p90 |\n|" + strings.Repeat("--|", len(all)+8) + "\n")
	for _, label := range append([]kind{""}, all...) {
		first, runs, missed, told := map[kind]int{}, 0, 0, 0
		for _, v := range p.verdicts {
			if label == "" && v.sick() || label != "" && (!v.sick() || v.run.kinds[0] != label) {
				continue
			}
			if runs++; len(v.told) > 0 {
				told++
			}
			r, ok := v.seen()
			if !v.sick() && len(v.reports) > 0 {
				r, ok = v.reports[0], true
			}
			if ok {
				first[r.kind]++
			} else {
				missed++
			}
		}
		if runs == 0 { // without a plan, none is off it
			continue
		}
		name := label
		turns, minutes := p.late(label)
		if label == "" {
			name, turns, minutes = "nothing", nil, nil
		}
		fmt.Fprintf(&b, "| %s | %d |", name, runs)
		for _, k := range all {
			fmt.Fprintf(&b, " %d |", first[k])
		}
		fmt.Fprintf(&b, " %d | %d | %s | %s | %s | %s |\n", missed, told, quantile(turns, .5), quantile(turns, .9), quantile(minutes, .5), quantile(minutes, .9))
	}
	return b.String()
}

// mistakes of a part by name, with their evidence.
func (p part) mistakes() string {
	var b strings.Builder
	for _, v := range p.verdicts {
		for _, r := range v.alarms() {
			what := "also reported"
			if !v.sick() {
				what = "FALSE ALARM"
			} else if slices.Contains(v.run.kinds, r.kind) {
				what = "too early"
			}
			fmt.Fprintf(&b, "%s: %s: %s at turn %d of %d, after %s: %s\n", what, v.run.Name, r.kind, r.turn, v.turns, r.at.Sub(began).Round(time.Second), r.evidence)
		}
		if _, ok := v.seen(); v.sick() && !ok {
			fmt.Fprintf(&b, "MISSED: %s: %s, to be seen at turn %d of %d\n", v.run.Name, v.run.kinds[0], v.turn, v.turns)
		}
	}
	return b.String()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

func clients() []client { return []client{claude(), codex(), opencode()} }

func healthy() []scenario {
	return slices.Concat(healthyWaits(), healthyWork(), healthyReads(), healthyBulk(), seedHealthy())
}

func sick() []scenario {
	return slices.Concat(sickLoops(), sickStalls(), sickContexts(), sickCascades(), sickPaces(), sickHidden(), seedSick())
}

// written are the runs that were written by hand, each with every client.
func written() []Run { return each(slices.Concat(healthy(), sick())) }

// heldBack are runs of scenarios from which nothing is drawn. docs/evaluation.md says since when they are known.
func heldBack() []Run { return each(slices.Concat(heldBackHealthy(), heldBackSick())) }

// each scenario with every client.
func each(scenarios []scenario) []Run {
	var list []Run
	for _, s := range scenarios {
		for _, c := range clients() {
			list = append(list, Run{Name: s.name + ", " + c.name, client: c, kinds: s.kinds, window: s.window, seed: 1, streams: s.streams, play: s.play})
		}
	}
	return list
}

// Seeds of what is drawn. What the second draws is held back: nothing is tuned to it. Who has tuned to it takes another.
const (
	tunedSeed = 20261101
	heldSeed  = 14142135
)

// draw runs with noise: half of them healthy, with one to three tasks in one conversation, the others with something healthy before what
// is wrong.
func draw(seed uint64, count int) []Run {
	random := rand.New(rand.NewPCG(seed, seed))
	list := make([]Run, count)
	well, ill := healthy(), sick()
	for i := range list {
		r := Run{client: clients()[random.IntN(3)], seed: random.Uint64(), noise: random.Float64() * .35}
		var parts []scenario
		for _, n := range random.Perm(len(well))[:random.IntN(2)+1-i%2] {
			parts = append(parts, well[n])
		}
		if i%2 == 0 {
			parts = append(parts, well[random.IntN(len(well))])
		} else {
			last := ill[(i/2+int(seed%1000))%len(ill)]
			parts, r.kinds, r.window = append(parts, last), last.kinds, last.window
		}
		last := parts[len(parts)-1] // nobody asks for the same twice
		parts = append(slices.DeleteFunc(parts, func(x scenario) bool { return x.name == last.name }), last)
		r.Name = fmt.Sprintf("%d of %d: %s, %s", i, seed, parts[len(parts)-1].name, r.client.name)
		r.play = func(a *agent) {
			for n, p := range parts {
				if n > 0 && a.padding > 0 {
					a.compact("Another task is done.")
				}
				a.latency = 0
				p.play(a)
			}
		}
		list[i] = r
	}
	return list
}

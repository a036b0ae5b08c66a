// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import "fmt"

// The eight tests that a supervisor's loop was asked for at first: two of them are healthy, five sick, and the last one, that nothing is
// said twice within a while, is a property of what is said.

func seedHealthy() []scenario {
	return []scenario{
		{name: "seed: work as usual", play: func(a *agent) {
			a.task("Add the flag.")
			for i := range 9 {
				a.do(read(file(i)))
				a.do(edit(file(i), "a", "b"))
				a.do(run("make test").gives("%s", passes(a)))
			}
			a.say("Added.")
		}},
		{name: "seed: eleven turns that change nothing, then a change", play: func(a *agent) {
			a.task("Add the flag.")
			for i := range 11 {
				a.do(read(file(i)))
			}
			a.do(edit(file(3), "a", "b"))
			a.say("Added.")
		}},
	}
}

func seedSick() []scenario {
	return []scenario{
		{name: "seed: stalled", kinds: stalls, play: func(a *agent) {
			a.some("Add the flag.")
			// What it looks at it has seen before; a role allows 12 turns without progress.
			for i := range 4 {
				a.do(read(file(700 + i)))
			}
			a.again(26, 12, func(i int) { a.do(read(file(700 + (i*i+i/4)%4))) })
		}},
		{name: "seed: the same tool and the same error three times", kinds: loops, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(9, 3, func(int) { a.do(read("cmd/flags.go").ends(missing)) })
		}},
		{name: "seed: A, B, A, B", kinds: loops, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(7, 3, func(int) {
				a.do(read("cmd/flags.go").ends(missing))
				a.do(search("flags").ends(exited))
			})
		}},
		{name: "seed: a context of 82 percent, then of 91", kinds: []kind{pressured, escalated}, play: func(a *agent) {
			a.some("Add the flag.")
			a.sick()
			for i := range 14 {
				a.fill([]float64{.82, .91}[i/7])
				a.do(edit(file(710+i), "a", "b"))
				if i == 1 {
					a.person()
				}
			}
		}},
		{name: "seed: three different tools fail within five calls", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(5, 1, func(i int) {
				a.do(read(fmt.Sprintf("lost/%d.go", i)).ends(missing))
				a.do(edit(fmt.Sprintf("lost/%d.go", i), "a", "b").ends(missing))
				a.do(run(fmt.Sprintf("make part%d", i)).fails(2, "make: *** No rule to make target 'part%d'.  Stop.", i))
			})
		}},
		{name: "seed: five failures in a row", kinds: paces, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(10, 5, func(i int) {
				a.do(run(fmt.Sprintf("make part%d", i)).fails(2, "make: *** No rule to make target 'part%d'.  Stop.", i))
			})
		}},
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// again does something so many times, of which a person has seen enough after some.
func (a *agent) again(times, person int, each func(i int)) {
	a.sick()
	for i := range times {
		if each(i); i+1 == person {
			a.person()
		}
	}
}

// some work that gets on, before something goes wrong.
func (a *agent) some(task string) {
	a.begin(task)
	for i := range a.n(2, 6) {
		a.do(edit(file(200+i), fmt.Sprint("a", i), fmt.Sprint("b", i)))
	}
}

// loops may be reported as what they bring with them, too: no progress, and a plan that does not hold.
var loops = []kind{looping, stalled, escalated}

// sickLoops are runs that repeat themselves.
func sickLoops() []scenario {
	return []scenario{
		{name: "a command that fails in the same way", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.again(18, 4, func(int) {
				a.do(run("make build").fails(2, "main.go:3:8: package shop/internal/gone is not in std\nmake: *** [Makefile:4: build] Error 1"))
			})
		}},
		{name: "a command that fails in the same way, with other times and numbers", kinds: loops, play: func(a *agent) {
			a.some("Make the tests pass.")
			a.again(18, 4, func(int) { a.do(run("make test").fails(2, "%s", failures(a, "Order"))) })
		}},
		{name: "248 dead retries of a command", kinds: loops, play: func(a *agent) {
			a.some("Push the image.")
			a.again(248, 5, func(int) {
				a.latency = 4 * time.Second
				a.do(run("docker push registry.example.com/shop:1").fails(1, "%s error: dial tcp 10.0.0.%d:443: connect: no route to host", a.w.now.Format(time.RFC3339), a.n(2, 9)).takes(4 * time.Second))
			})
		}},
		{name: "the same edit that does not apply", kinds: loops, play: func(a *agent) {
			a.some("Raise the limit.")
			a.again(15, 4, func(int) {
				a.do(edit("internal/limit/limit.go", "const limit = 10", "const limit = 20").ends(unmatched))
			})
		}},
		{name: "an edit that does not apply, in other words each time", kinds: loops, play: func(a *agent) {
			a.some("Raise the limit.")
			a.again(18, 5, func(i int) {
				a.do(edit("internal/limit/limit.go", fmt.Sprintf("const limit%*s= 10", i%5+1, ""), fmt.Sprintf("const limit = 2%d", i)).ends(unmatched))
			})
		}},
		{name: "an edit that does not apply, with a read between", kinds: loops, play: func(a *agent) {
			a.some("Raise the limit.")
			a.again(12, 4, func(int) {
				a.do(read("internal/limit/limit.go"))
				a.do(edit("internal/limit/limit.go", "const limit = 10", "const limit = 20").ends(unmatched))
			})
		}},
		{name: "one file read for ever", kinds: loops, play: func(a *agent) {
			a.some("Explain the queue.")
			a.again(20, 5, func(int) { a.do(read("internal/queue/queue.go")) })
		}},
		{name: "two files read in turns for ever", kinds: loops, play: func(a *agent) {
			a.some("Explain the queue.")
			a.again(14, 3, func(int) {
				a.do(read("internal/queue/queue.go"))
				a.do(read("internal/queue/worker.go"))
			})
		}},
		{name: "four calls in a circle", kinds: loops, play: func(a *agent) {
			a.some("Why is the page slow?")
			a.again(9, 3, func(int) {
				a.do(read("web/page.go"))
				a.do(search("Render").gives("web/page.go:9: Render\nweb/list.go:2: Render"))
				a.do(run("go build ./web").quiet())
				a.do(read("web/list.go"))
			})
		}},
		{name: "an edit put in and taken back for ever", kinds: loops, play: func(a *agent) {
			a.some("Make TestPrice pass.")
			a.again(10, 2, func(int) {
				a.do(edit("internal/price/price.go", "round(x)", "floor(x)"))
				a.do(run("go test ./internal/price").fails(1, "%s", failures(a, "PriceDown")))
				a.do(edit("internal/price/price.go", "floor(x)", "round(x)"))
				a.do(run("go test ./internal/price").fails(1, "%s", failures(a, "PriceUp")))
			})
		}},
		{name: "an edit put in and taken back, without a test", kinds: loops, play: func(a *agent) {
			a.some("Name it well.")
			a.again(10, 3, func(int) {
				a.do(edit("internal/price/price.go", "amount", "total"))
				a.do(edit("internal/price/price.go", "total", "amount"))
			})
		}},
		{name: "a search without a hit, again and again", kinds: loops, play: func(a *agent) {
			a.some("Where is the mail sent?")
			a.again(15, 5, func(int) { a.do(search("SendMail").ends(exited)) })
		}},
		{name: "calls in a wrong form", kinds: loops, play: func(a *agent) {
			a.some("Add the header.")
			a.again(12, 4, func(int) { a.do(edit("internal/http/header.go", "", "").ends(malformed)) })
		}},
		{name: "a call that is refused, again and again", kinds: loops, play: func(a *agent) {
			a.some("Clean up.")
			a.again(14, 4, func(int) { a.do(run("git push --force origin main").ends(denied)) })
		}},
		{name: "polling a job that has died, every few seconds", kinds: loops, play: func(a *agent) {
			a.some("Run the end-to-end tests in the background. They take a minute.")
			a.again(80, 25, func(int) {
				a.latency = 3 * time.Second
				a.do(poll("9001").gives("=== RUN TestLogin"))
			})
		}},
		{name: "the same final words again and again", kinds: loops, play: func(a *agent) {
			a.some("Fix the login.")
			a.again(12, 4, func(int) {
				a.say("I have fixed the login. All tests should pass now.")
				a.task("The checks still fail. Go on.")
			})
		}},
		{name: "an agent that is called loops", kinds: loops, play: func(a *agent) {
			a.some("Let another agent fix the build.")
			var work []func(*agent)
			for i := range 18 {
				work = append(work, func(s *agent) {
					if i == 0 {
						s.sick()
					}
					s.do(run("make build").fails(2, "main.go:3:8: undefined: gone"))
					if i == 3 {
						s.person()
					}
				})
			}
			a.do(delegate("Fix the build.", work...))
		}},
		{name: "the same work after every compaction", kinds: append([]kind{pressured}, loops...), play: func(a *agent) {
			a.some("Port the package chart.")
			a.again(4, 2, func(int) {
				for i := range 6 {
					a.do(read(fmt.Sprintf("internal/chart/huge%d.go", i)))
				}
				a.fill(.79)
				a.do(run("go test ./internal/chart").fails(1, "%s", failures(a, "Chart")))
				a.compact("The package chart is to be ported. Nothing is done yet.")
			})
			for i := range 6 {
				a.do(read(fmt.Sprintf("internal/chart/huge%d.go", i)))
			}
		}},
		{name: "a plan that is written again and again", kinds: loops, play: func(a *agent) {
			a.some("Add the export.")
			a.again(18, 6, func(i int) {
				a.do(plan([]string{"1 look, 2 write, 3 test", "1 look at it, 2 write it, 3 test it"}[i%2]))
			})
		}},
		{name: "an installation that fails, with another log each time", kinds: loops, play: func(a *agent) {
			a.some("Add a package.")
			a.again(16, 5, func(int) {
				a.do(run("npm install").fails(1, "npm ERR! code ERESOLVE\nnpm ERR! could not resolve peer react@17\nnpm ERR! A complete log of this run can be found in: /root/.npm/_logs/2026-11-02T%02d_%02d-debug.log", a.n(0, 23), a.n(0, 59)).takes(5 * time.Second))
			})
		}},
		{name: "tests that pass, run again and again", kinds: loops, play: func(a *agent) {
			a.some("Add a flag, and be sure that all passes.")
			a.again(18, 6, func(int) { a.do(run("make test").gives("%s", passes(a))) })
		}},
		{name: "one file written again and again with the same content", kinds: loops, play: func(a *agent) {
			a.some("Write the notes.")
			a.again(15, 4, func(int) { a.do(write("NOTES.md", "# Notes\n\nAll is well.")) })
		}},
		{name: "a sleep for a build that has died", kinds: loops, play: func(a *agent) {
			a.some("Wait for the build. It takes five minutes.")
			a.again(100, 40, func(int) {
				a.do(run("sleep 30; cat build.status").gives("building").takes(30 * time.Second).uses(0.01))
			})
		}},
		{name: "the same page of the web", kinds: loops, play: func(a *agent) {
			a.some("Which option turns it off?")
			a.again(14, 5, func(int) { a.do(fetch("https://docs.example.com/options").gives("There are options.")) })
		}},
		{name: "a loop of a client that tells the time at the beginning of each request", kinds: loops, play: func(a *agent) {
			a.clock = true
			a.some("Make the build pass.")
			a.again(18, 4, func(int) { a.do(run("make build").fails(2, "main.go:3:8: package shop/internal/gone is not in std")) })
		}},
		{name: "a loop of a client that repeats a reminder at the end of each request", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.reminder = "Keep to the plan, and answer briefly."
			a.again(18, 4, func(int) { a.do(run("make build").fails(2, "main.go:3:8: package shop/internal/gone is not in std")) })
		}},
		{name: "a missing command, tried again and again", kinds: loops, play: func(a *agent) {
			a.some("Format the code.")
			a.again(14, 4, func(int) { a.do(run("prettier --write .").ends(missing)) })
		}},
		{name: "a test that runs out of time, again and again", kinds: loops, play: func(a *agent) {
			a.some("Make the slow test pass.")
			a.again(9, 3, func(int) {
				a.do(run("go test -run TestSlow ./internal/slow").ends(timedOut).takes(2 * time.Minute).uses(0.3))
			})
		}},
	}
}

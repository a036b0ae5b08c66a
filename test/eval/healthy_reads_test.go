// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// healthyReads are runs that look at things, and those whose conversation is not one straight line.
func healthyReads() []scenario {
	list := []scenario{
		{name: "reading a large repository for 40 turns", play: func(a *agent) {
			a.task("Read the whole repository and write docs/architecture.md.")
			for i := range a.n(40, 45) {
				switch i % 6 {
				case 4:
					a.do(search(nouns[i%len(nouns)]+"\\(").gives("%s:%d: call\n%s:%d: call", file(i), i, file(i+9), i*2))
				case 5:
					a.do(find(fmt.Sprintf("internal/%s/**", nouns[i%len(nouns)])).gives("%s\n%s", file(i), file(i+22)))
				default:
					a.do(read(file(i)))
				}
			}
			a.do(write("docs/architecture.md", "It has layers."))
			a.say("The page is written.")
		}},
		{name: "a large file that is read piece by piece", play: func(a *agent) {
			a.task("Review generated.sql for missing indexes. Report only.")
			for i := range a.n(15, 20) {
				a.do(read("db/generated.sql").at(i * 30))
			}
			a.say("Three tables have no index.")
		}},
		{name: "a review that changes nothing", play: func(a *agent) {
			a.task("Review the last commit. Do not change anything.")
			a.do(run("git show --stat HEAD").gives(" 12 files changed, 340 insertions(+)"))
			for i := range a.n(24, 30) {
				a.do(run(fmt.Sprintf("git show HEAD -- %s", file(i))).gives("diff --git a/%s\n+%s", file(i), nouns[i%len(nouns)]))
				if i%5 == 0 {
					a.do(read(file(i)), search(nouns[i%len(nouns)]).gives("%s:3: x", file(i)))
				}
			}
			a.say("Two remarks.")
		}},
		{name: "four searches without a hit, then one", play: func(a *agent) {
			a.begin("Where do we send mails?")
			for i := range 4 {
				a.do(search([]string{"SendMail", "smtp\\.", "mailer", "sendgrid"}[i]).ends(exited))
			}
			a.do(search("postmark").gives("internal/notify/post.go:14: postmark.New"))
			a.do(read("internal/notify/post.go"))
			a.say("In internal/notify/post.go.")
		}},
		{name: "two guesses of paths that are wrong", play: func(a *agent) {
			a.begin("Raise the log level of the worker.")
			a.do(read("cmd/worker/config.go").ends(missing))
			a.do(read("config/worker.yaml").ends(missing))
			a.do(find("**/*worker*").gives("deploy/worker.yaml"))
			a.do(read("deploy/worker.yaml"))
			a.do(edit("deploy/worker.yaml", "level: info", "level: debug"))
			a.say("Raised.")
		}},
		{name: "a bisection", play: func(a *agent) {
			a.begin("Find the commit that broke TestRoute with git bisect.")
			a.do(run("git bisect start HEAD v1.2").gives("Bisecting: 500 revisions left to test after this"))
			for i := range 9 {
				if a.n(0, 1) == 0 {
					a.do(run("go test -run TestRoute ./internal/route").fails(1, "%s", failures(a, "Route")))
					a.do(run("git bisect bad").gives("Bisecting: %d revisions left to test after this\n[%07x] Change %d", 500>>i, i*99991, i))
				} else {
					a.do(run("go test -run TestRoute ./internal/route").gives("ok  \tshop/internal/route\t0.%03ds", a.n(1, 999)))
					a.do(run("git bisect good").gives("Bisecting: %d revisions left to test after this\n[%07x] Change %d", 500>>i, i*99991, i))
				}
				a.touches("HEAD", fmt.Sprint(i))
			}
			a.say("It was change 8.")
		}},
		{name: "three agents that read the same files at once", play: func(a *agent) {
			a.begin("Look at the code from three sides: security, speed, style.")
			var work []func(*agent)
			for i := range 8 {
				work = append(work, func(s *agent) { s.do(read(file(i)), search(nouns[i]).gives("%s:1: x", file(i))) })
			}
			work = append(work, func(s *agent) { s.say("Nothing found.") })
			a.do(delegate("Look for security holes.", work...), delegate("Look for slow code.", work...), delegate("Look for bad style.", work...))
			a.do(write("docs/review.md", "All is well."))
			a.say("The review is written.")
		}},
		{name: "waiting for an agent that works for 30 minutes", play: func(a *agent) {
			a.begin("Let another agent write the tests of queue.")
			var work []func(*agent)
			for i := range 14 {
				work = append(work, func(s *agent) {
					s.do(write(fmt.Sprintf("internal/queue/q%d_test.go", i), fmt.Sprint("package queue // ", i)))
					s.do(run("go test ./internal/queue").gives("ok  \tshop/internal/queue\t0.%03ds", s.n(1, 999)).takes(2 * time.Minute).uses(1.5))
				})
			}
			a.do(delegate("Write tests of the package queue.", append(work, func(s *agent) { s.say("14 tests.") })...))
			a.say("There are 14 tests.")
		}},
		{name: "an agent that is asked which tests fail, and all do", play: func(a *agent) {
			a.begin("Find out which packages the new compiler breaks.")
			var work []func(*agent)
			for i := range 9 {
				work = append(work, func(s *agent) {
					s.do(run(fmt.Sprintf("go test ./internal/%s", nouns[i])).fails(1, "internal/%s/%s.go:%d: undefined: old%s\nFAIL", nouns[i], nouns[i], 10+i, nouns[i+1]))
				})
			}
			a.do(delegate("Which packages fail?", append(work, func(s *agent) { s.say("These nine.") })...))
			a.do(write("docs/broken.md", "Nine packages."))
			a.say("There is a list.")
		}},
		{name: "one agent after another", play: func(a *agent) {
			a.begin("Fix the four packages, one agent for each.")
			for i := range 4 {
				path := file(i + 50)
				a.do(delegate("Fix "+path, func(s *agent) { s.do(read(path)) }, func(s *agent) { s.do(edit(path, "broken", "fixed")) },
					func(s *agent) { s.do(run("make test").gives("%s", passes(s))) }, func(s *agent) { s.say("Fixed.") }))
			}
			a.say("All are fixed.")
		}},
		{name: "compaction in the middle", play: func(a *agent) {
			a.begin("Port the package chart to the new library.")
			for i := range 14 {
				a.do(read(file(i)))
				a.do(edit(file(i), "chart.Old", "chart.New"))
			}
			a.fill(.78)
			a.do(run("make test").fails(2, "%s", failures(a, "Chart", "Draft")))
			a.compact("14 files are ported; TestChart and TestDraft fail.")
			for i := range 5 {
				a.do(read(file(i))) // what it has read before
			}
			a.do(edit(file(3), "chart.New()", "chart.New(ctx)"))
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Ported.")
		}},
		{name: "compaction twice", play: func(a *agent) {
			a.begin("Port all packages.")
			for round := range 3 {
				for i := range 8 {
					a.do(read(file(i + 10*round)))
					a.do(edit(file(i+10*round), "Old", "New"))
				}
				if round < 2 {
					a.fill(.79)
					a.do(run("go build ./...").quiet())
					a.compact(fmt.Sprintf("Round %d is done.", round))
				}
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Ported.")
		}},
		{name: "old results taken out of the conversation", play: func(a *agent) {
			a.begin("Give all errors a code.")
			for i := range 24 {
				a.do(read(file(i)))
				a.do(edit(file(i), "errors.New(", "coded.New("))
				if i%8 == 7 {
					a.prune(4)
				}
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("They have codes.")
		}},
		{name: "many questions aside", play: func(a *agent) {
			a.begin("Add a flag for the port.")
			for i := range 10 {
				a.side(fmt.Sprint("topic ", i))
				a.do(edit(file(i), "8080", "*port"))
				a.side(fmt.Sprint("title ", i))
			}
			a.say("Added.")
		}},
		{name: "a context that stays at 70 percent", play: func(a *agent) {
			a.begin("Sort the imports.")
			a.fill(.68)
			for i := range 15 {
				a.do(edit(file(i), "import b", "import a"))
			}
			a.say("Sorted.")
		}},
		{name: "a context that comes to 78 percent and is compacted", play: func(a *agent) {
			a.begin("Sort the imports.")
			for i := range 12 {
				a.fill(.2 + .05*float64(min(i, 11)))
				a.do(read(file(i)))
				a.do(edit(file(i), "import b", "import a"))
			}
			a.compact("12 are sorted.")
			for i := range 6 {
				a.do(edit(file(i+12), "import b", "import a"))
			}
			a.say("Sorted.")
		}},
		{name: "a short answer", play: func(a *agent) {
			a.task("Which Go version do we use?")
			a.do(read("go.mod"))
			a.say("1.26.")
		}},
		{name: "images and pages of the web", play: func(a *agent) {
			a.begin("Make the page look like the design.")
			for i := range a.n(5, 8) {
				a.do(fetch(fmt.Sprintf("https://design.example.com/part/%d", i)).gives("Part %d is blue.", i))
				a.do(edit("web/style.css", fmt.Sprint("part", i, ": red"), fmt.Sprint("part", i, ": blue")))
			}
			a.say("It does.")
		}},
	}
	return append(list, healthyTroubles()...)
}

// healthyTroubles are those of the provider, and failures that mean nothing.
func healthyTroubles() []scenario {
	return []scenario{
		{name: "an overloaded provider that comes back", play: func(a *agent) {
			a.begin("Rename the flag.")
			a.refused(529, a.n(3, 5), 8*time.Second, nil)
			a.do(edit(file(1), "-old", "-new"))
			a.refused(503, 2, 4*time.Second, nil)
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Renamed.")
		}},
		{name: "a limit of the rate for some minutes", play: func(a *agent) {
			a.begin("Rename the flag.")
			a.refused(429, 6, 45*time.Second, nil)
			for i := range 5 {
				a.do(edit(file(i), "-old", "-new"))
			}
			a.say("Renamed.")
		}},
		{name: "answers that break off", play: func(a *agent) {
			a.begin("Rename the flag.")
			for i := range 3 {
				a.do(edit(file(i), "-old", "-new"))
				a.cut()
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Renamed.")
		}},
		{name: "three different failures while it gets on", play: func(a *agent) {
			a.begin("Move the mails to the queue.")
			a.do(edit(file(1), "mail.Send(", "queue.Put("))
			a.do(search("mail\\.Send").ends(exited))
			a.do(run("make test").fails(2, "%s", failures(a, "Mail")))
			a.do(read("internal/mail/send_test.go").ends(missing))
			a.do(read("internal/mail/mail_test.go"))
			a.do(edit("internal/mail/mail_test.go", "Send", "Put"))
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Moved.")
		}},
		{name: "commands that end with 1 and mean no failure", play: func(a *agent) {
			a.begin("Is anything of the old API still used?")
			for i := range a.n(4, 5) {
				a.do(run(fmt.Sprintf("grep -rn 'api.Old%s' internal", nouns[i])).fails(1, ""))
			}
			a.do(run("diff a.txt b.txt").fails(1, "1c1\n< a\n---\n> b"))
			a.do(edit("docs/api.md", "old", "removed"))
			a.say("No.")
		}},
		{name: "tools that are called wrongly once", play: func(a *agent) {
			a.begin("Add the header.")
			a.do(edit(file(1), "", "").ends(malformed))
			a.do(edit(file(1), "package", "// Header.\npackage"))
			a.do(edit(file(2), "package", "// Header.\npackage"))
			a.say("Added.")
		}},
		{name: "a tool that is not installed, and its replacement", play: func(a *agent) {
			a.begin("Count the lines.")
			a.do(run("tokei").ends(missing))
			a.do(run("cloc .").ends(missing))
			a.do(run("find . -name '*.go' | xargs wc -l | tail -n 1").gives("  48120 total"))
			a.do(write("docs/size.md", "48,120 lines"))
			a.say("48,120 lines.")
		}},
		{name: "a person who says more while it works", play: func(a *agent) {
			a.begin("Make the button blue.")
			for i := range 5 {
				a.do(edit("web/style.css", fmt.Sprint("colour", i), fmt.Sprint("colour", i+1)))
				a.say("Done. Anything else?")
				a.w.pass(time.Duration(a.n(1, 9))*time.Minute, a.idle, 0)
				a.task(fmt.Sprintf("A bit more, number %d.", i))
			}
			a.say("Done.")
		}},
		{name: "a command that runs out of time, then in the background", play: func(a *agent) {
			a.begin("Run all tests.")
			a.do(run("make test-all").gives("=== RUN TestA").ends(timedOut).takes(2 * time.Minute).uses(1.5))
			a.do(run("make test-all > all.log 2>&1 &").quiet())
			a.w.children++
			for range 4 {
				a.do(run("sleep 60; tail -n 2 all.log").gives("ok  \tshop/internal/%s\t%d.2s", nouns[a.n(0, 19)], a.n(1, 40)).takes(61 * time.Second).uses(1.5))
			}
			a.w.children--
			a.do(edit("docs/test.md", "?", "8 minutes"))
			a.say("All pass.")
		}},
	}
}

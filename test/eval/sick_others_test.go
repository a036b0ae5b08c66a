// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// What is labelled.
const (
	stalled   = "AgentStalled"
	looping   = "AgentLooping"
	pressured = "ContextPressure"
	cascading = "CascadeFailure"
	escalated = "PaceEscalated"
)

var (
	stalls   = []kind{stalled, looping, escalated}
	cascades = []kind{cascading, escalated, looping, stalled}
	paces    = []kind{escalated, stalled, looping, cascading}
)

// sickStalls are runs in which nothing gets on.
func sickStalls() []scenario {
	return []scenario{
		{name: "a heart that beats while nothing else does", kinds: stalls, play: func(a *agent) {
			a.some("Add the flag.")
			a.w.verdict.hung = true
			a.sick()
			a.w.pass(30*time.Minute, 0.006, 4)
			a.person()
			a.w.pass(3*time.Hour, 0.006, 4)
		}},
		{name: "a command that waits for somebody to type", kinds: stalls, play: func(a *agent) {
			a.some("Set the project up.")
			a.hangs(run("npm init"), 3*time.Hour, 15*time.Minute, 0)
		}},
		{name: "tests that watch files and never end", kinds: stalls, play: func(a *agent) {
			a.some("Run the tests.")
			a.hangs(run("npx vitest"), 3*time.Hour, 20*time.Minute, 0.002)
		}},
		{name: "a deadlock in a test", kinds: stalls, play: func(a *agent) {
			a.some("Run the tests.")
			a.hangs(run("go test -timeout 0 ./..."), 4*time.Hour, 25*time.Minute, 0)
		}},
		{name: "a program that spins for hours", kinds: stalls, play: func(a *agent) {
			a.some("Run the tests.")
			a.hangs(run("./loop"), 8*time.Hour, 2*time.Hour, 1)
		}},
		{name: "a provider that is silent for 15 hours", kinds: stalls, play: func(a *agent) {
			a.some("Add the flag.")
			a.ask(false)
			a.hang(15*time.Hour, 30*time.Minute, 0.004, 0)
		}},
		{name: "an agent that asks nothing more", kinds: stalls, play: func(a *agent) {
			a.some("Add the flag.")
			a.hang(2*time.Hour, 15*time.Minute, 0.004, 0)
		}},
		{name: "an agent that is called hangs", kinds: stalls, play: func(a *agent) {
			a.some("Let another agent look.")
			a.do(delegate("Look for leaks.", func(s *agent) { s.do(read(file(1))) }, func(s *agent) { s.hangs(run("gdb -p 1"), 3*time.Hour, 20*time.Minute, 0) }))
		}},
		{name: "wandering through the same files and searches", kinds: stalls, play: func(a *agent) {
			a.some("Fix the rounding of prices.")
			a.again(45, 16, func(int) {
				i := a.n(0, 4)
				if i%2 == 0 {
					a.do(read(file(200 + i)))
				} else {
					a.do(search(nouns[i]).gives("%s:12: %s\n%s:40: %s", file(i), nouns[i], file(i+1), nouns[i]))
				}
			})
		}},
		{name: "words without a deed", kinds: stalls, play: func(a *agent) {
			a.some("Fix the rounding of prices.")
			a.again(16, 5, func(i int) {
				a.say([]string{"I will now look at the prices.", "Next I will fix the rounding.", "Let me begin with the prices.", "I am about to change the rounding."}[i%4])
				a.task("Go on.")
			})
		}},
		{name: "reading the plan and the notes in turns", kinds: stalls, play: func(a *agent) {
			a.some("Do the steps of the plan.")
			a.again(14, 5, func(i int) {
				a.do(read("docs/plan.md"))
				a.do(plan(fmt.Sprintf("step %d: think about the plan", i)))
				a.do(read("docs/notes.md"))
			})
		}},
		{name: "looking at the state of Git for ever", kinds: stalls, play: func(a *agent) {
			a.some("Commit what is done.")
			a.again(12, 4, func(i int) {
				a.do(run("git status").gives("On branch main\nChanges not staged for commit:\n\tmodified: %s", file(200)))
				a.do(run("git diff").gives("diff --git a/%s\n-a0\n+b0", file(200)))
				a.do(run(fmt.Sprintf("git log --oneline -%d", 3+i%3)).gives("12ab34c Change\n"))
			})
		}},
		{name: "a question to nobody", kinds: stalls, play: func(a *agent) {
			a.some("Choose a database.")
			a.again(12, 4, func(int) {
				a.say("Which database would you like? Please tell me before I go on.")
				a.task("Decide yourself and go on.")
			})
		}},
		{name: "the provider refuses every call", kinds: []kind{stalled, cascading, escalated, looping}, play: func(a *agent) {
			a.some("Add the flag.")
			a.sick()
			a.w.verdict.hung = true
			a.refused(401, 248, 8*time.Second, func(n int) {
				if n == 10 {
					a.person()
				}
			})
		}},
		{name: "the provider is overloaded for hours", kinds: []kind{stalled, cascading, escalated, looping}, play: func(a *agent) {
			a.some("Add the flag.")
			a.sick()
			a.w.verdict.hung = true
			a.refused(529, 180, time.Minute, func(n int) {
				if n == 20 {
					a.person()
				}
			})
		}},
	}
}

// sickContexts are runs whose context is nearly full.
func sickContexts() []scenario {
	fills := func(from, to, by float64) func(a *agent) {
		return func(a *agent) {
			a.some("Port everything.")
			i := 0
			for part := from; i < 60 && (part < to || i < 15); part += by {
				if a.fill(min(part, to)); part < .78 {
					a.sick()
				}
				a.do(read(file(300 + i)))
				a.do(edit(file(300+i), "Old", "New"))
				if i++; part >= .85 {
					a.person()
				}
			}
		}
	}
	return []scenario{
		{name: "a context that fills slowly", kinds: []kind{pressured, escalated}, play: fills(.5, .99, .01)},
		{name: "a context that fills fast", kinds: []kind{pressured, escalated}, play: fills(.4, .98, .05)},
		{name: "a small window that fills", window: 32_000, kinds: []kind{pressured, escalated}, play: fills(.6, .99, .02)},
		{name: "a large window that fills", window: 1_000_000, kinds: []kind{pressured, escalated}, play: fills(.7, .99, .01)},
		{name: "one result that takes nearly all of the window", kinds: []kind{pressured, escalated}, play: func(a *agent) {
			a.some("What does the log say?")
			a.sick()
			a.do(run("cat all.log").gives("%s", fmt.Sprint(contentOf("all.log", "", 0, 12_000))))
			a.fill(.93)
			a.do(read(file(1)))
			a.person()
			for i := range 8 {
				a.do(edit(file(i+310), "a", "b"))
			}
		}},
		{name: "compaction that frees next to nothing", kinds: []kind{pressured, escalated, looping, stalled}, play: func(a *agent) {
			a.some("Port everything.")
			a.sick()
			for round := range 6 {
				a.fill(.93)
				a.do(read(file(round)))
				if round == 1 {
					a.person()
				}
				a.compact("A very long summary.")
				a.fill(.88)
				a.do(edit(file(round+320), "a", "b"))
			}
		}},
		{name: "requests that are too long", kinds: []kind{pressured, stalled, escalated, cascading, looping}, play: func(a *agent) {
			a.some("Port everything.")
			a.fill(.9)
			a.sick()
			a.do(read(file(1)))
			a.fill(.99)
			a.do(read(file(2)))
			a.person()
			for i := range 10 {
				a.refused(400, 1, 10*time.Second, nil)
				a.do(read(file(3 + i)))
			}
		}},
	}
}

// sickCascades are runs in which everything fails.
func sickCascades() []scenario {
	return []scenario{
		{name: "the wrong folder", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(6, 1, func(i int) {
				a.do(read(fmt.Sprintf("shop/cmd/main%d.go", i)).ends(missing))
				a.do(run("cd /workspace/shop && make").fails(1, "bash: line 1: cd: /workspace/shop: No such file or directory"))
				a.do(edit(fmt.Sprintf("shop/cmd/flag%d.go", i), "a", "b").ends(missing))
				a.do(search("flag").ends(broken).gives("rg: /workspace/shop: No such file or directory (os error 2)"))
			})
		}},
		{name: "a full disk", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(6, 1, func(i int) {
				a.do(write(fmt.Sprintf("cmd/flag%d.go", i), "package cmd").ends(broken).gives("ENOSPC: no space left on device, write"))
				a.do(run("go build ./...").fails(1, "write /tmp/go-build%d/b001/x.a: no space left on device", a.n(1, 99999)))
				a.do(edit(file(i), "a", "b").ends(broken).gives("ENOSPC: no space left on device, write"))
				a.do(run("git stash").fails(1, "fatal: unable to write new index file"))
			})
		}},
		{name: "a file system that has become read-only", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(6, 1, func(i int) {
				a.do(edit(file(i), "a", "b").ends(broken).gives("EROFS: read-only file system, open '/workspace/%s'", file(i)))
				a.do(run("touch x").fails(1, "touch: cannot touch 'x': Read-only file system"))
				a.do(write(fmt.Sprintf("x%d", i), "x").ends(broken).gives("EROFS: read-only file system, open '/workspace/x%d'", i))
				a.do(run("make build").fails(2, "open dist/shop: read-only file system\nmake: *** [build] Error 1"))
			})
		}},
		{name: "a network that is gone", kinds: cascades, play: func(a *agent) {
			a.some("Update the packages.")
			a.again(5, 1, func(i int) {
				a.do(run("npm update").fails(1, "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://registry.example.com failed"))
				a.do(fetch(fmt.Sprintf("https://registry.example.com/%d", i)).ends(exited))
				a.do(run("git fetch").fails(128, "fatal: unable to access 'https://git.example.com/': Could not resolve host: git.example.com"))
				a.do(ticket(fmt.Sprint(100 + i)).ends(broken).gives("Error: getaddrinfo ENOTFOUND tracker.example.com"))
			})
		}},
		{name: "no tool is allowed any more", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(6, 1, func(i int) {
				a.do(edit(file(i), "a", "b").ends(denied))
				a.do(run("make test").ends(denied))
				a.do(write(fmt.Sprintf("y%d", i), "y").ends(denied))
			})
		}},
		{name: "a workspace that is gone", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(6, 1, func(i int) {
				a.do(read(file(i)).ends(missing))
				a.do(run("git status").fails(128, "fatal: not a git repository (or any of the parent directories): .git"))
				a.do(edit(file(i), "a", "b").ends(missing))
				a.do(run("ls /workspace").fails(2, "ls: cannot access '/workspace': No such file or directory"))
			})
		}},
		{name: "everything in several calls at once fails", kinds: cascades, play: func(a *agent) {
			a.some("Add the flag.")
			a.again(8, 2, func(i int) {
				a.do(read(file(i+400)).ends(missing), run("make").fails(2, "make: *** No rule to make target 'all'.  Stop."), edit(file(i+400), "a", "b").ends(missing))
			})
		}},
	}
}

// sickPaces are runs whose plan does not hold.
func sickPaces() []scenario {
	return []scenario{
		{name: "edit and test, and the same test fails each time", kinds: paces, play: func(a *agent) {
			a.some("Make TestOrder pass.")
			a.again(14, 6, func(i int) {
				a.do(edit("internal/order/order.go", fmt.Sprint("try", i), fmt.Sprint("try", i+1)))
				a.do(run("go test ./internal/order").fails(1, "%s", failures(a, "Order")))
			})
		}},
		{name: "edit and test, and more fails each time", kinds: paces, play: func(a *agent) {
			a.some("Make TestOrder pass.")
			names := []string{"Order", "Invoice", "Basket", "Price", "Stock", "Route", "Lease", "Draft", "Token", "Chart", "Cache", "Page"}
			a.again(12, 6, func(i int) {
				a.do(edit("internal/order/order.go", fmt.Sprint("try", i), fmt.Sprint("try", i+1)))
				a.do(run("make test").fails(2, "%s", failures(a, names[:i+1]...)))
			})
		}},
		{name: "eight ways to install, of which none works", kinds: paces, play: func(a *agent) {
			a.some("Install the checker.")
			ways := []string{"pip install checker", "pip3 install --user checker", "apt-get install -y checker", "npm install -g checker", "cargo install checker", "go install example.com/checker@latest", "brew install checker", "conda install checker"}
			a.again(16, 7, func(i int) {
				a.do(run(ways[i%len(ways)]).fails(1, "error: no such package: checker (%s)", ways[i%len(ways)]).takes(6 * time.Second))
			})
		}},
		{name: "every checkpoint is refused", kinds: paces, play: func(a *agent) {
			a.some("Change the pipeline.")
			a.w.invalid = true
			a.again(20, 8, func(i int) {
				a.do(edit(".github/workflows/ci.yaml", fmt.Sprint("run", i), fmt.Sprint("run", i+1)))
				a.w.pass(40*time.Second, a.idle, 0)
			})
		}},
		{name: "commands of all kinds that fail, one after the other", kinds: paces, play: func(a *agent) {
			a.some("Make the staging environment work.")
			commands := []string{"terraform apply", "kubectl get nodes", "helm upgrade shop ./chart", "docker login", "ansible-playbook site.yaml", "aws s3 ls", "ssh staging uptime", "psql -h staging -c 'select 1'", "make deploy", "curl -sf https://staging.example.com", "vault status", "kustomize build ."}
			a.again(16, 7, func(i int) {
				a.do(run(commands[i%len(commands)]).fails(1+i%3, "Error: %s: it did not work (%d)", commands[i%len(commands)], i).takes(8 * time.Second))
			})
		}},
		{name: "failures in a context that is nearly full", kinds: append([]kind{pressured}, paces...), play: func(a *agent) {
			a.some("Make TestOrder pass.")
			a.fill(.86)
			a.again(12, 5, func(i int) {
				a.do(run(fmt.Sprintf("go test -run TestOrder%d ./...", i)).fails(1, "%s", failures(a, "Order")))
			})
		}},
		{name: "patches that do not apply, to one file after the other", kinds: paces, play: func(a *agent) {
			a.some("Bring the changes of the branch over.")
			a.again(14, 6, func(i int) { a.do(edit(file(500+i), "theirs", "ours").ends(unmatched)) })
		}},
	}
}

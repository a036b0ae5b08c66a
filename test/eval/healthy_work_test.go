// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// healthyWork are runs that change files.
func healthyWork() []scenario {
	return []scenario{
		{name: "a retry that succeeds", play: func(a *agent) {
			a.begin("Add the package left-pad and use it.")
			for range a.n(1, 2) {
				a.do(run("npm install left-pad").fails(1, "npm ERR! code ECONNRESET\nnpm ERR! network aborted\nnpm ERR! A complete log of this run can be found in: /root/.npm/_logs/%d-debug.log", a.n(1, 99999)).takes(9 * time.Second))
			}
			a.do(run("npm install left-pad").gives("added 1 package in 2s"))
			a.do(edit("src/pad.js", "own()", "leftPad()"))
			a.do(run("npm test").gives("12 passing"))
			a.say("Done.")
		}},
		{name: "edit and test until fewer and fewer fail", play: func(a *agent) {
			a.begin("Make the tests of order pass.")
			names := []string{"Order", "Invoice", "Basket", "Price", "Stock", "Route", "Lease", "Draft", "Token"}[:a.n(5, 9)]
			a.do(run("make test").fails(2, "%s", failures(a, names...)))
			for i := range names {
				path := file(i + 20)
				a.do(read(path))
				a.do(edit(path, "was"+names[i], "is"+names[i]))
				if rest := names[i+1:]; len(rest) > 0 {
					a.do(run("make test").fails(2, "%s", failures(a, rest...)))
				}
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("All pass.")
		}},
		{name: "one test that fails in four ways before it passes", play: func(a *agent) {
			a.begin("Make TestLedger pass.")
			for i, message := range []string{"undefined: ledger", "cannot use x (variable of type int) as string", "panic: nil map", "got 11, want 12"}[:a.n(3, 4)] {
				a.do(run("go test ./internal/ledger").fails(1, "internal/ledger/ledger_test.go:%d: %s\nFAIL", 10+i*7, message))
				a.do(edit("internal/ledger/ledger.go", fmt.Sprint("line", i), fmt.Sprint("fixed", i)))
			}
			a.do(run("go test ./internal/ledger").gives("ok  \tshop/internal/ledger\t0.1s"))
			a.say("It passes.")
		}},
		{name: "tests first", play: func(a *agent) {
			a.begin("Write the parser test first, see it fail, then write the parser.")
			for i := range a.n(4, 6) {
				a.do(write(fmt.Sprintf("internal/parse/part%d_test.go", i), fmt.Sprint("package parse // ", i)))
				a.do(run("go test ./internal/parse").fails(1, "internal/parse/part%d_test.go:9: undefined: part%d\nFAIL\tshop/internal/parse [build failed]", i, i))
				a.do(write(fmt.Sprintf("internal/parse/part%d.go", i), fmt.Sprint("package parse // part", i)))
				a.do(run("go test ./internal/parse").gives("ok  \tshop/internal/parse\t0.0%02ds", a.n(10, 99)))
			}
			a.say("The parser is there.")
		}},
		{name: "a rename in hundreds of files, one edit each", play: func(a *agent) {
			a.begin("Rename Basket to Cart everywhere.")
			a.do(search("Basket").gives("internal/a.go:1: Basket\n(240 more)"))
			for i := range a.n(120, 200) {
				a.do(edit(file(i), "Basket", "Cart"))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Renamed.")
		}},
		{name: "a rename with several edits in each answer", play: func(a *agent) {
			a.begin("Rename Basket to Cart everywhere.")
			for i := range a.n(20, 40) {
				a.do(edit(file(5*i), "Basket", "Cart"), edit(file(5*i+1), "Basket", "Cart"), edit(file(5*i+2), "Basket", "Cart"), edit(file(5*i+3), "Basket", "Cart"), edit(file(5*i+4), "Basket", "Cart"))
			}
			a.say("Renamed.")
		}},
		{name: "many like edits of one file", play: func(a *agent) {
			a.begin("Every case of the table in order_test.go needs a name.")
			a.do(read("internal/order/order_test.go"))
			for i := range a.n(25, 40) {
				a.do(edit("internal/order/order_test.go", fmt.Sprintf("{%d,", i), fmt.Sprintf("{name: \"case %d\", in: %d,", i, i)))
			}
			a.do(run("go test ./internal/order").gives("ok  \tshop/internal/order\t0.1s"))
			a.say("Named.")
		}},
		{name: "findings of a linter that become fewer", play: func(a *agent) {
			a.begin("Make the linter happy.")
			for i := a.n(7, 10); i > 0; i-- {
				a.do(run("golangci-lint run").fails(1, "internal/order/order.go:%d:2: exported func %s%d should have comment (revive)\n%d issues:\n* revive: %d", i*11, nouns[i], i, i, i).takes(14 * time.Second).uses(2))
				a.do(edit("internal/order/order.go", fmt.Sprintf("func %s%d", nouns[i], i), fmt.Sprintf("// %s%d does it.\nfunc %s%d", nouns[i], i, nouns[i], i)))
			}
			a.do(run("golangci-lint run").gives("0 issues."))
			a.say("Clean.")
		}},
		{name: "the same passing test after each of many edits", play: func(a *agent) {
			a.begin("Refactor the package queue in small steps; run the tests after each.")
			for i := range a.n(10, 16) {
				a.do(edit(fmt.Sprintf("internal/queue/part%d.go", i%4), fmt.Sprintf("old%d()", i), fmt.Sprintf("new%d()", i)))
				a.do(run("go test ./internal/queue").gives("ok  \tshop/internal/queue\t0.012s"))
			}
			a.say("Refactored.")
		}},
		{name: "a look at the status between edits", play: func(a *agent) {
			a.begin("Split handlers.go by resource.")
			for i := range a.n(6, 9) {
				a.do(write(fmt.Sprintf("internal/http/%s.go", nouns[i]), fmt.Sprint("package http // ", i)))
				a.do(edit("internal/http/handlers.go", fmt.Sprintf("func %s() {}", nouns[i]), ""))
				a.do(run("git status --short").gives(" M internal/http/handlers.go\n?? internal/http/ (%d files)", i+1))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Split.")
		}},
		{name: "a way that is tried, taken back, and another that works", play: func(a *agent) {
			a.begin("Make the cache faster.")
			a.do(read("internal/cache/cache.go"))
			a.do(edit("internal/cache/cache.go", "map[string]entry", "sync.Map"))
			a.do(run("go test -bench . ./internal/cache").gives("BenchmarkGet-8  2000  910 ns/op"))
			a.do(edit("internal/cache/cache.go", "sync.Map", "map[string]entry"))
			a.do(edit("internal/cache/cache.go", "map[string]entry", "[16]shard"))
			a.do(run("go test -bench . ./internal/cache").gives("BenchmarkGet-8  9000  110 ns/op"))
			a.say("It is eight times as fast.")
		}},
		{name: "prints that are put in and taken out to debug", play: func(a *agent) {
			a.begin("Why is the price wrong?")
			for i := range 2 {
				path := file(60 + i)
				a.do(read(path))
				a.do(edit(path, "total := sum", "total := sum\n\tprintln(total)"))
				a.do(run("go test ./internal/price").fails(1, "%d\n--- FAIL: TestPrice (0.00s)", 40+i))
				a.do(edit(path, "total := sum\n\tprintln(total)", "total := sum"))
			}
			a.do(edit(file(61), "sum", "sum - rebate"))
			a.do(run("go test ./internal/price").gives("ok  \tshop/internal/price\t0.0s"))
			a.say("The rebate was missing.")
		}},
		{name: "edits that need a read first, now and then", play: func(a *agent) {
			a.begin("Give every handler a timeout.")
			for i := range a.n(6, 9) {
				path := file(80 + i)
				if i%2 == 0 {
					a.do(edit(path, "handle(", "handle(timeout, ").ends(unread))
					a.do(read(path))
				}
				a.do(edit(path, "handle(", "handle(timeout, "))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Done.")
		}},
		{name: "a text to replace that is found the second time", play: func(a *agent) {
			a.begin("Change the limits.")
			for i := range a.n(3, 5) {
				path := file(90 + i)
				a.do(edit(path, "limit = 10", "limit = 20").ends(unmatched))
				a.do(read(path))
				a.do(edit(path, "limit  = 10", "limit = 20"))
				a.do(run("go vet ./...").gives(""))
			}
			a.say("Changed.")
		}},
		{name: "a book of documentation", play: func(a *agent) {
			a.begin("Write a page for each package.")
			for i := range a.n(15, 25) {
				a.do(read(file(i)))
				a.do(write(fmt.Sprintf("docs/%s-%d.md", nouns[i%len(nouns)], i), fmt.Sprintf("# %s\n\nIt does number %d.", nouns[i%len(nouns)], i)))
			}
			a.say("The pages are written.")
		}},
		{name: "a plan that is kept up to date", play: func(a *agent) {
			a.begin("Do the seven steps of docs/steps.md.")
			for i := range 7 {
				a.do(plan(fmt.Sprintf("step %d of 7", i+1)))
				a.do(edit(file(i+30), fmt.Sprint("a", i), fmt.Sprint("b", i)))
				a.do(run("make check").gives("ok"))
			}
			a.say("All steps are done.")
		}},
		{name: "all files formatted by one command", play: func(a *agent) {
			a.begin("Format the whole repository, then fix what breaks.")
			a.do(run("gofumpt -w .").quiet().takes(50 * time.Second))
			for i := range 60 {
				a.touches(file(i), "formatted")
			}
			a.do(run("make test").fails(2, "%s", failures(a, "Golden")))
			a.do(run("go test ./internal/golden -update").gives("ok"))
			a.touches("internal/golden/testdata/x", "updated")
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Formatted.")
		}},
		{name: "one refusal, and another way", play: func(a *agent) {
			a.begin("Clean the old branches up.")
			a.do(run("git push origin --delete old").ends(denied))
			a.do(run("git branch -d old").gives("Deleted branch old (was 12ab34c)."))
			a.do(edit("docs/branches.md", "old", ""))
			a.say("The branch here is deleted; I may not delete the one of the server.")
		}},
		{name: "a build that shows the next error after each edit", play: func(a *agent) {
			a.begin("Port to the new compiler.")
			for i := range a.n(10, 14) {
				a.do(run("make build").fails(2, "internal/%s/x.go:%d:1: undefined: %s\nmake: *** [build] Error 1", nouns[i], i*13+1, nouns[(i*5)%22]))
				a.do(edit(fmt.Sprintf("internal/%s/x.go", nouns[i]), fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.do(run("make build").quiet())
			a.say("Ported.")
		}},
		{name: "files that a tool writes for 54 minutes", play: func(a *agent) {
			a.begin("Generate the clients of all 200 services with hack/generate.sh. It waits for a server that is slow.")
			a.ask(false)
			x := run("hack/generate.sh")
			name, arguments, _, _ := a.w.run.client.tool(a.w, x)
			id := a.w.id("call")
			a.answer(said{text: "It will take a while.", calls: []call{{id, name, arguments}}})
			a.w.children++
			for i := range 130 {
				a.w.pass(25*time.Second, 0.01, 0)
				a.touches(fmt.Sprintf("clients/c%d.go", i), "generated")
			}
			a.w.children--
			_, _, text, _ := a.w.run.client.tool(a.w, x.gives("200 clients"))
			a.entries = append(a.entries, &entry{role: "user", results: []result{{id: id, text: text}}})
			a.do(run("go build ./clients/...").quiet())
			a.say("Generated.")
		}},
		{name: "an agent that takes minutes until it begins", play: func(a *agent) {
			a.w.children++
			a.w.pass(6*time.Minute, 0.3, 100)
			a.w.children--
			a.begin("Add the flag.")
			a.do(edit(file(1), "a", "b"))
			a.say("Added.")
		}},
		{name: "checkpoints that are refused twice, then fixed", play: func(a *agent) {
			a.begin("Add the client of the payment service.")
			a.w.invalid = true
			a.do(write("internal/pay/client.go", "package pay // with a key"))
			a.w.pass(40*time.Second, a.idle, 0)
			a.do(edit("internal/pay/client.go", "key", "key of the environment"))
			a.w.pass(40*time.Second, a.idle, 0)
			a.w.invalid = false
			a.do(edit("internal/pay/client.go", "secret", "none"))
			a.w.pass(40*time.Second, a.idle, 0)
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Added.")
		}},
		{name: "a client that tells the time at the beginning of each request", play: func(a *agent) {
			a.clock = true
			a.begin("Port the package draft.")
			for i := range a.n(12, 25) {
				a.do(read(file(60 + i)))
				a.do(edit(file(60+i), fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Ported.")
			a.clock = false
		}},
		{name: "a client that repeats a reminder at the end of each request", play: func(a *agent) {
			a.begin("Port the package draft.")
			a.reminder = "Keep to the plan, and answer briefly."
			for i := range a.n(12, 25) {
				a.do(read(file(40 + i)))
				a.do(edit(file(40+i), fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.reminder = ""
			a.say("Ported.")
		}},
	}
}

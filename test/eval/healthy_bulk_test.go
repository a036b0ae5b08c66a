// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// healthyBulk are runs that do much of the same, that wait in ways of their own, or whose tools say much.
func healthyBulk() []scenario {
	return []scenario{
		{name: "a label for each of 40 issues", play: func(a *agent) {
			a.begin("Give the issues 400 to 439 the label triage.")
			for i := range 40 {
				a.do(mcp("tracker", "add_label", "issue", 400+i, "label", "triage").gives("Label added."))
			}
			a.say("All have the label.")
		}},
		{name: "30 rows that are inserted one by one", play: func(a *agent) {
			a.begin("Insert the 30 shops of docs/shops.md into the table of the staging database.")
			for i := range 30 {
				a.do(run(fmt.Sprintf("psql -c \"insert into shops values (%d, '%s')\"", i, nouns[i%len(nouns)])).gives("INSERT 0 1"))
			}
			a.say("They are in.")
		}},
		{name: "25 searches without a hit", play: func(a *agent) {
			a.begin("Is any of the 25 settings of docs/settings.md still used? Look for each.")
			for i := range 25 {
				a.do(search(fmt.Sprintf("setting_%s_%d", nouns[i%len(nouns)], i)).ends(exited))
			}
			a.say("None is used.")
		}},
		{name: "25 files that are valid", play: func(a *agent) {
			a.begin("Check each file of data with hack/valid.sh.")
			for i := range 25 {
				a.do(run(fmt.Sprintf("hack/valid.sh data/%d.json", i)).gives("valid"))
			}
			a.say("All are valid.")
		}},
		{name: "a mail for each of 30 customers, some of which do not arrive", play: func(a *agent) {
			a.begin("Send the notice to each customer of the list.")
			for i := range 30 {
				x := mcp("mail", "send", "to", fmt.Sprintf("c%d@example.com", i), "text", "notice").gives("Queued.")
				if i%9 == 8 {
					x = x.gives("Error: mailbox is full").ends(broken)
				}
				a.do(x)
			}
			a.say("Three mailboxes are full.")
		}},
		{name: "polling a run with a tool of one's own", play: func(a *agent) {
			a.begin("Start run 4711 and look with get_run until it has ended, then say how.")
			a.latency = 20 * time.Second
			a.do(mcp("ci", "start_run", "id", 4711).gives(`{"id":4711,"status":"queued"}`))
			for range a.n(12, 18) {
				a.do(mcp("ci", "get_run", "id", 4711).gives(`{"id":4711,"status":"in_progress","conclusion":null}`))
			}
			a.do(mcp("ci", "get_run", "id", 4711).gives(`{"id":4711,"status":"completed","conclusion":"success"}`))
			a.say("It has succeeded.")
		}},
		{name: "kubectl that waits for two hours as told", play: func(a *agent) {
			a.begin("Wait until the job load has ended; it takes up to two hours.")
			a.do(run("kubectl wait --for=condition=complete job/load --timeout=2h").gives("job.batch/load condition met").takes(95 * time.Minute).uses(0.001))
			a.say("It has ended.")
		}},
		{name: "a tool that waits for an hour", play: func(a *agent) {
			a.begin("Wait for the run 4712.")
			a.do(mcp("ci", "await_run", "id", 4712, "timeout", "3h").gives(`{"id":4712,"status":"completed"}`).takes(70 * time.Minute).uses(0.001))
			a.say("It has ended.")
		}},
		{name: "a server that takes three minutes until it listens", play: func(a *agent) {
			a.begin("Start the server and try the health page.")
			a.do(run("docker compose up -d").gives("Container shop  Started"))
			for range 9 {
				a.do(run("sleep 20; curl -s localhost:8080/healthz").fails(7, "curl: (7) Failed to connect to localhost port 8080: Connection refused").takes(20 * time.Second))
			}
			a.do(run("sleep 20; curl -s localhost:8080/healthz").gives("ok").takes(20 * time.Second))
			a.say("The page works.")
		}},
		{name: "tests that end with the first failure and get further", play: func(a *agent) {
			a.begin("Port the tests; go from failure to failure with pytest -x.")
			for i := range 12 {
				a.do(run("pytest -x").fails(1, "%s", collected(40+300*i, fmt.Sprintf("test_%s.py::test_%d", nouns[i], i), "TypeError: a bytes-like object is required")).takes(8 * time.Second))
				a.do(edit(fmt.Sprintf("shop/%s.py", nouns[i]), fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.do(run("pytest -x").gives("4810 passed in 48.10s"))
			a.say("All pass.")
		}},
		{name: "a compiler that gets further and says more", play: func(a *agent) {
			a.begin("Port to the new API.")
			for i := range 11 {
				text := ""
				for k := range i + 1 {
					text += fmt.Sprintf("internal/%s/part%d.go:%d:2: undefined: %s.Old%d\n", nouns[i], i*20+k, 10+k, nouns[i], i*20+k)
				}
				a.do(run("make build").fails(2, "%smake: *** [Makefile:4: build] Error 1", text))
				a.do(edit(fmt.Sprintf("internal/%s/x.go", nouns[i]), fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.do(run("make build").quiet())
			a.say("Ported.")
		}},
		{name: "tests with logs of 6 to 200 KB of which fewer and fewer fail", play: func(a *agent) {
			a.begin("Make the tests of order pass.")
			names := []string{"Order", "Invoice", "Basket", "Price", "Stock", "Route", "Lease"}
			for i := range names {
				a.do(run("make test").fails(2, "%s", tested(a, []int{6, 20, 100, 6, 30, 6, 12}[i]<<10, names[i:]...)).takes(20 * time.Second))
				a.do(edit(file(i+20), "was"+names[i], "is"+names[i]))
			}
			a.do(run("make test").gives("%s", tested(a, 20<<10)))
			a.say("All pass.")
		}},
		{name: "three ways that are tried and taken back", play: func(a *agent) {
			a.begin("Make the cache faster, and measure each way that you try.")
			for i, way := range []string{"sync.Map", "[16]shard", "lru.Cache"} {
				a.do(edit("internal/cache/cache.go", "map[string]entry", way))
				a.do(run("go test -bench . ./internal/cache").gives("BenchmarkGet-8  2000  %d ns/op", 900-i*37))
				a.do(edit("internal/cache/cache.go", way, "map[string]entry"))
			}
			a.do(edit("internal/cache/cache.go", "map[string]entry", "[64]shard"))
			a.do(run("go test -bench . ./internal/cache").gives("BenchmarkGet-8  9000  110 ns/op"))
			a.say("64 shards are best.")
		}},
		{name: "prints put in and taken out of one file four times", play: func(a *agent) {
			a.begin("Why is the price wrong?")
			for i := range 4 {
				at := fmt.Sprintf("step%d := sum", i)
				a.do(edit("internal/price/price.go", at, at+"\n\tprintln(sum)"))
				a.do(run("go test ./internal/price").fails(1, "%d\n--- FAIL: TestPrice (0.00s)", 40+i))
				a.do(edit("internal/price/price.go", at+"\n\tprintln(sum)", at))
			}
			a.do(edit("internal/price/price.go", "sum", "sum - rebate"))
			a.do(run("go test ./internal/price").gives("ok  \tshop/internal/price\t0.0s"))
			a.say("The rebate was missing.")
		}},
		{name: "an agent that tests what others change", play: func(a *agent) {
			a.begin("Let one agent port the package order and another one watch the tests.")
			var ports, watches []func(*agent)
			for i := range 8 {
				ports = append(ports, func(s *agent) { s.do(edit(file(300+i), fmt.Sprint("old", i), fmt.Sprint("new", i))) })
				watches = append(watches, func(s *agent) {
					s.do(run("make test").fails(2, "%s", failures(a, []string{"Order", "Invoice", "Basket", "Price", "Stock", "Route", "Lease", "Draft"}[i:]...)))
				})
			}
			a.do(delegate("Port the package order.", ports...), delegate("Watch the tests.", watches...))
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Ported.")
		}},
		{name: "a deployment that is looked at every two minutes with a large answer", play: func(a *agent) {
			a.begin("Deploy to production and watch until all 40 pods are new; it takes half an hour.")
			a.do(run("kubectl apply -f production.yaml").gives("deployment.apps/shop configured"))
			for range 12 {
				text := ""
				for i := range 90 {
					text += fmt.Sprintf("shop-%s-%05d  0/1  ContainerCreating  0  %ds\n", nouns[i%len(nouns)], i, a.n(1, 59))
				}
				a.do(run("sleep 120; kubectl get pods -l app=shop").gives("%s", text).takes(2 * time.Minute).uses(0.01))
			}
			a.do(run("kubectl get pods -l app=shop").gives("40 pods are ready"))
			a.say("It is deployed.")
		}},
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"time"
)

// scenario is a kind of run, with what is drawn for each.
type scenario struct {
	name   string
	window int64
	kinds  []kind
	// streams says that the answers are streams in each run, where every fourth run has documents else.
	streams bool
	play    func(a *agent)
}

// n draws a number from lo to hi.
func (a *agent) n(lo, hi int) int { return lo + a.w.random.IntN(hi-lo+1) }

// file is the name of one of many files.
func file(i int) string {
	return fmt.Sprintf("internal/%s/%s_%d.go", nouns[i%len(nouns)], nouns[(i*7+3)%len(nouns)], i)
}

// begin a task in the way of most: some reading.
func (a *agent) begin(task string) {
	a.task(task)
	a.side(task)
	for i := range a.n(2, 5) {
		a.do(read(file(1000 + i*3 + a.n(0, 2))))
	}
}

// passes and fails are what tests print.
func passes(a *agent) string {
	return fmt.Sprintf("ok  \tshop/internal/order\t%d.%03ds\nok  \tshop/internal/invoice\t0.%03ds", a.n(0, 3), a.n(0, 999), a.n(0, 999))
}

func failures(a *agent, names ...string) string {
	text := ""
	for _, n := range names {
		text += fmt.Sprintf("--- FAIL: Test%s (0.%02ds)\n    %s_test.go:%d: got 3, want 4\n", n, a.n(0, 99), n, 20+len(n))
	}
	return text + fmt.Sprintf("FAIL\tshop/internal/order\t0.%03ds\nmake: *** [Makefile:12: test] Error 1", a.n(0, 999))
}

// healthyWaits are runs in which time passes.
func healthyWaits() []scenario {
	return []scenario{
		{name: "a silent build of 25 minutes", play: func(a *agent) {
			a.begin("Build the release and say how large it is. The build takes half an hour and prints nothing.")
			a.do(run("make release > build.log 2>&1").quiet().takes(25 * time.Minute).uses(1.8))
			a.do(run("du -h dist/release.tar").gives("48M\tdist/release.tar"))
			a.say("The release has 48 MB.")
		}},
		{name: "a soak test that sleeps for 15 minutes as told", play: func(a *agent) {
			a.begin("Run the soak test with `make soak`; it takes 15 minutes, mostly asleep.")
			a.do(run("make soak").gives("soak: 900 s, 0 errors").takes(15 * time.Minute).uses(0.02))
			a.say("No errors in 900 s.")
		}},
		{name: "a large download over a slow line", play: func(a *agent) {
			a.begin("Fetch the test data with hack/data.sh and check its sum. It is large.")
			a.do(run("hack/data.sh").gives("data/sample.tar: OK").takes(12 * time.Minute).uses(0.05))
			a.do(run("sha256sum -c data/SUMS").gives("data/sample.tar: OK"))
			a.say("Data is there.")
		}},
		{name: "polling every five minutes as told", play: func(a *agent) {
			a.begin("Poll the pipeline 4711 every 5 minutes with hack/pipeline.sh until it ends, then say how it ended.")
			for range a.n(8, 11) {
				a.do(run("sleep 300 && hack/pipeline.sh 4711").gives("{\"id\":4711,\"status\":\"running\"}").takes(301 * time.Second).uses(0.01))
			}
			a.do(run("sleep 300 && hack/pipeline.sh 4711").gives("{\"id\":4711,\"status\":\"passed\"}").takes(301 * time.Second).uses(0.01))
			a.say("The pipeline has passed.")
		}},
		{name: "polling a job in the background that goes on", play: func(a *agent) {
			a.begin("Run the integration tests.")
			a.w.children += 3
			for i := range a.n(10, 14) {
				a.do(poll("8123").gives("=== RUN TestIntegration%d\n--- PASS: TestIntegration%d", i, i).takes(time.Duration(a.n(20, 50)) * time.Second).uses(1.2))
			}
			a.w.children -= 3
			a.do(run("tail -n 3 integration.log").gives("PASS\nok  shop/test 402.1s"))
			a.say("All integration tests pass.")
		}},
		{name: "polling a job in the background that prints nothing for a while", play: func(a *agent) {
			a.begin("Run the type checker over everything. It prints only at its end.")
			a.w.children += 2
			for range a.n(6, 8) {
				a.do(poll("8124").quiet().takes(time.Duration(a.n(60, 100)) * time.Second).uses(1.6))
			}
			a.w.children -= 2
			a.do(run("cat typecheck.out").gives("0 errors in 2,311 files"))
			a.say("No errors.")
		}},
		{name: "waiting for a rollout", play: func(a *agent) {
			a.begin("Deploy to staging and wait until all pods are ready.")
			a.do(run("kubectl apply -f staging.yaml").gives("deployment.apps/shop configured"))
			for i := range 7 {
				a.do(run("sleep 20; kubectl get pods -l app=shop").gives("NAME      READY  STATUS   RESTARTS  AGE\nshop-7d9  %d/7    Running  0         %ds", i, 20*i+a.n(1, 9)).takes(21 * time.Second).uses(0.02))
			}
			a.do(run("kubectl get pods -l app=shop").gives("NAME      READY  STATUS   RESTARTS  AGE\nshop-7d9  7/7    Running  0         160s"))
			a.say("Staging is ready.")
		}},
		{name: "a server that takes some seconds until it listens", play: func(a *agent) {
			a.begin("Start the server and try the health page.")
			a.do(run("go run ./cmd/shop > server.log 2>&1 &").quiet())
			for range a.n(2, 3) {
				a.do(run("sleep 3; curl -s localhost:8080/healthz").fails(7, "curl: (7) Failed to connect to localhost port 8080: Connection refused").takes(3 * time.Second))
			}
			a.do(run("sleep 3; curl -s localhost:8080/healthz").gives("ok").takes(3 * time.Second))
			a.do(edit("cmd/shop/main.go", "healthz", "livez"), edit("README.md", "healthz", "livez"))
			a.do(run("make test").gives("%s", passes(a)))
			a.say("The page works.")
		}},
		{name: "a slow model", play: func(a *agent) {
			a.begin("Find the leak.")
			for i := range 6 {
				a.latency = time.Duration(a.n(240, 540)) * time.Second
				a.do(read(file(i)), search(nouns[i]).gives("%s:12: %s", file(i+40), nouns[i]))
			}
			a.do(edit(file(3), "open(", "defer close("))
			a.do(run("make test").gives("%s", passes(a)).takes(40 * time.Second))
			a.say("It was the file in the loop.")
		}},
		{name: "one answer that takes 12 minutes", play: func(a *agent) {
			a.begin("Design the schema of the new service, think hard.")
			a.latency = 12 * time.Minute
			a.do(write("docs/schema.md", "A long design."))
			a.latency = 0
			a.do(run("wc docs/schema.md").gives("  310  4100 30120 docs/schema.md"))
			a.say("The design is in docs/schema.md.")
		}},
		{name: "a finished agent that nobody has asked anything yet", play: func(a *agent) {
			a.begin("What does the package order do?")
			a.say("It takes orders and hands them to the invoices. Shall I go on?")
			a.w.pass(50*time.Minute, a.idle, 0)
			a.task("Yes, add a test.")
			a.do(write("internal/order/more_test.go", "package order"))
			a.do(run("make test").gives("%s", passes(a)))
			a.say("Added.")
		}},
		{name: "a benchmark that is run eight times", play: func(a *agent) {
			a.begin("Run the benchmark eight times and give the median.")
			for range 8 {
				a.do(run("go test -bench . ./internal/order").gives("BenchmarkOrder-8  %d  %d ns/op\nPASS", a.n(1000, 2000), a.n(90000, 99999)).takes(35 * time.Second).uses(2))
			}
			a.say("The median is 94 µs.")
		}},
		{name: "a flaky test that is rerun", play: func(a *agent) {
			a.begin("TestSession is flaky. Find out how often it fails, then fix it.")
			for i := range a.n(6, 9) {
				if i%3 == 1 {
					a.do(run("go test -count 1 -run TestSession ./internal/session").fails(1, "%s", failures(a, "Session")))
				} else {
					a.do(run("go test -count 1 -run TestSession ./internal/session").gives("ok  \tshop/internal/session\t0.%03ds", a.n(1, 999)))
				}
			}
			a.do(read("internal/session/session.go"))
			a.do(edit("internal/session/session.go", "go s.expire()", "s.expire()"))
			a.do(run("go test -count 30 -run TestSession ./internal/session").gives("ok  \tshop/internal/session\t3.2s"))
			a.say("It was a race.")
		}},
		{name: "migrations that take a while, checked now and then", play: func(a *agent) {
			a.begin("Run the migration on the copy of the database and check that it ends. It takes some 20 minutes.")
			a.w.children++
			for range 5 {
				a.do(run("sleep 240; psql -c 'select state from migration'").gives(" state\n---------\n running\n(1 row)").takes(4 * time.Minute).uses(0.01))
				a.w.pass(time.Second, 0.7, 0)
			}
			a.w.children--
			a.do(run("psql -c 'select state from migration'").gives(" state\n------\n done\n(1 row)"))
			a.say("The migration has ended.")
		}},
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"slices"
	"time"
)

// heldBackSick are runs in which a careful person who looks on would step in at some turn, which each says with the reason. They were
// written from reports of agents that went wrong, without knowledge of how supervision decides.
func heldBackSick() []scenario {
	return slices.Concat(heldBackForms(), heldBackReversals(), heldBackIdle(), heldBackHangs(), heldBackFruitless())
}

// heldBackForms are runs in which the same comes out again and again, whatever it is called.
func heldBackForms() []scenario {
	return []scenario{
		// The tests fail in the same way, and each turn looks at it through another pipe. By the sixth it is clear that nothing else is done.
		// https://github.com/anthropics/claude-code/issues/39945 https://github.com/anthropics/claude-code/issues/72417
		{name: "one failure, looked at through another pipe each turn", kinds: loops, play: func(a *agent) {
			a.some("Make the tests of ledger pass.")
			forms := []string{"%s", "%s | tail -50", "%s 2>&1 | grep -A3 FAIL", "%s -count=1", "%s | head -200", "%s -run TestLedger", "%s 2>&1 | tee /tmp/out.log | tail -80", "%s -v -p 1", "timeout 300 %s", "%s 2>&1 | sed -n '1,400p'"}
			a.again(20, 6, func(i int) {
				log := a.goTest([]int{40, 12, 1, 40, 30, 1, 20, 40, 40, 40}[i%10], false, "TestLedger: Balance() = 1204, want 1200")
				a.do(run(fmt.Sprintf(forms[i%10], "go test ./internal/ledger")).fails(1, "%s", log).takes(9 * time.Second))
			})
		}},
		// A number that means nothing makes each command another. The fifth time the same test fails, a person has seen enough.
		{name: "a command with another number in it each turn, and tests in another order", window: 400_000, kinds: loops, play: func(a *agent) {
			a.some("Make the end-to-end tests pass.")
			a.again(16, 5, func(int) {
				a.do(run(fmt.Sprintf("RUN_ID=%d make e2e; echo $RANDOM", a.n(1000, 99999))).fails(2, "%s\n%d", a.goTest(70, true, "TestCheckout: timeout waiting for #pay"), a.n(0, 32767)).takes(40 * time.Second).uses(1.2))
			})
		}},
		// A new little program each turn, and the same error of the same import. A person sees it at the fifth.
		{name: "a scratch file each turn, with the same error", kinds: loops, play: func(a *agent) {
			a.some("Find out why the import of the prices is slow.")
			a.again(13, 5, func(i int) {
				path := fmt.Sprintf("scratch/try_%d.py", i)
				a.do(write(path, fmt.Sprintf("from shop.prices import load\nprint(load(%q))\n# %s", noun(i), essay("try", i, 4))))
				a.do(run("python "+path).fails(1, "Traceback (most recent call last):\n  File \"/workspace/%s\", line 1, in <module>\n    from shop.prices import load\n  File \"/workspace/shop/prices/__init__.py\", line 4, in <module>\n    from ._native import parse\nImportError: /workspace/shop/prices/_native.so: undefined symbol: PyFloat_Pack8", path))
			})
		}},
		// Seven commands in turns, and the database is down for each of them. Into the second circle, a person knows.
		{name: "seven commands in turns that all miss the same database", kinds: loops, play: func(a *agent) {
			a.some("Bring the schema up to date.")
			commands := []string{"make migrate", "go run ./cmd/migrate up", "psql -h db -c 'select 1'", "make db-status", "python manage.py migrate", "npx prisma migrate status", "goose status"}
			a.again(28, 9, func(i int) {
				a.do(run(commands[i%7]).fails(1, "%s\nerror: connection to server at \"db\" (10.2.0.14), port 5432 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?", a.transcript().stamp()).takes(3 * time.Second))
			})
		}},
		// The same two tests fail in logs of 25 KB that differ in seeds, times and addresses alone. Nothing is edited. Four are enough.
		// https://github.com/anthropics/claude-code/issues/19699
		{name: "pytest with the same two failures, and other seeds and addresses", window: 400_000, kinds: loops, play: func(a *agent) {
			a.some("Make pytest pass.")
			a.again(15, 4, func(int) {
				a.do(run("pytest -v tests").fails(1, "%s", a.pytest(180, 20, "test_balance_closed: assert 1204 == 1200", "test_carry_over: assert 3 == 0")).takes(40 * time.Second).uses(1))
			})
		}},
		// 160 KB of log each time, with the same failure in the middle of what is downloaded and started anew. Four are enough.
		{name: "mvn verify with logs of 160 KB and the same failure each time", window: 1_000_000, kinds: loops, play: func(a *agent) {
			a.some("Make `mvn verify` pass. (The client shows up to 200,000 characters of an output.)")
			a.again(11, 4, func(int) {
				a.do(run("mvn -B -U clean verify").fails(1, "%s", a.maven(250, 310, "carries: expected: <0> but was: <3>")).takes(time.Duration(a.n(80, 110)) * time.Second).uses(1.6))
			})
		}},
		// The build begins from nothing each time, in another order, and misses the same crate. At the fourth a person says so.
		{name: "cargo clean and cargo build, with the same missing crate", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.again(10, 4, func(int) {
				a.do(run("cargo clean").gives("     Removed %d files, %d.%dGiB total", a.n(3000, 3100), 2, a.n(1, 9)))
				a.do(run("cargo build").fails(101, "%s", a.cargo(150, 20, "E0463]: can't find crate for `ledger_sys`")).takes(70 * time.Second).uses(1.9))
			})
		}},
		// A quota does not grow by asking again. Each attempt takes four minutes and has another request number. Three are enough.
		{name: "terraform apply against a quota, four minutes each", window: 400_000, kinds: loops, play: func(a *agent) {
			a.some("Create the cluster of infra/queue.")
			a.again(13, 3, func(int) {
				a.do(run("terraform apply -auto-approve -no-color").fails(1, "%s", a.terraform(110, fmt.Sprintf("\nError: creating MSK Cluster (queue): operation error Kafka: CreateCluster, https response error StatusCode: 429, RequestID: %s, TooManyRequestsException: You have reached the limit of 15 brokers", a.request()))).takes(time.Duration(a.n(225, 260)) * time.Second).uses(0.1))
			})
		}},
		// To sleep for a minute first makes a hard failure no better. At the fifth, after some six minutes, a person steps in.
		{name: "sleep 60 and the same hard failure", kinds: loops, play: func(a *agent) {
			a.some("Deploy to staging.")
			a.again(30, 5, func(int) {
				a.do(run("sleep 60 && make deploy").fails(2, "helm upgrade --install shop ./chart\nError: UPGRADE FAILED: cannot patch \"shop\" with kind StatefulSet: StatefulSet.apps \"shop\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden\nmake: *** [deploy] Error 1").takes(63 * time.Second).uses(0.02))
			})
		}},
		// The pod crashes and will not become ready, and the wait ends by its timeout each time. After four waits of five minutes a person looks into the log.
		{name: "kubectl wait, again and again, for a pod that crashes", kinds: loops, play: func(a *agent) {
			a.some("Deploy to staging and wait until the pods are ready.")
			a.again(14, 4, func(i int) {
				a.do(run("kubectl wait --for=condition=Ready pod -l app=shop --timeout=300s").fails(1, "error: timed out waiting for the condition on pods/shop-7d9f8b6c5-x2x4l").takes(5 * time.Minute).uses(0.001))
				a.do(run("kubectl get pods").gives("%s", a.pods(14, 13, "CrashLoopBackOff", 4+i)))
			})
		}},
		// The pipeline is over and has failed; its state is asked for all the same. The fourth time of what is final is one too many.
		// https://github.com/gopherguides/gopher-ai/issues/356
		{name: "the state of a pipeline that has failed, asked for again and again", kinds: loops, play: func(a *agent) {
			a.some("Start the pipeline, wait for its end and fix what it finds.")
			a.connect(mcp("ci", "get_run"))
			final := object("id", 99812, "status", "completed", "conclusion", "failure", "updated_at", "2026-11-02T09:14:07Z", "jobs", map[string]int{"total": 9, "completed": 9})
			a.again(40, 4, func(int) {
				a.do(mcp("ci", "get_run", "id", 99812).gives("%s", final))
				a.do(run("sleep 60").quiet().takes(time.Minute).uses(0))
			})
		}},
		// A screenshot of the same page, with the same picture each time, and nothing is changed between. Five are enough.
		{name: "the same screenshot again and again", kinds: loops, play: func(a *agent) {
			a.some("The button of the checkout is cut off. Fix it.")
			a.connect(mcp("browser", "screenshot"))
			a.again(16, 5, func(int) { a.do(mcp("browser", "screenshot").shows(picture("cut off"))) })
		}},
	}
}

// heldBackReversals are runs in which files come back to where they were.
func heldBackReversals() []scenario {
	return []scenario{
		// Three ways to round, each with another test that fails, in a circle. In the middle of the second circle a person sees it.
		// https://github.com/anthropics/claude-code/issues/25995
		{name: "one line that goes round in three states", kinds: loops, play: func(a *agent) {
			a.some("Make the tests of price pass.")
			states, tests := []string{"round(x)", "floor(x)", "ceil(x)"}, []string{"TestPriceDown", "TestPriceUp", "TestPriceHalf"}
			a.again(15, 5, func(i int) {
				a.w.change("internal/price/price.go", "was "+states[i%3])
				a.do(edit("internal/price/price.go", states[i%3], states[(i+1)%3]))
				a.w.change("internal/price/price.go", "was "+states[(i+1)%3])
				a.do(run("go test -v ./internal/price").fails(1, "%s", a.goTest(30, false, tests[i%3]+": got 11, want 12")).takes(6 * time.Second))
			})
		}},
		// A hook removes the import that is not used yet, and the agent puts it in again. At the third round a person sees who is at it.
		// https://github.com/anthropics/claude-code/issues/14524 https://github.com/anthropics/claude-code/issues/42317
		{name: "an import that a linter takes out each time", kinds: loops, play: func(a *agent) {
			a.some("Log the errors of the checkout.")
			path := "src/checkout/pay.ts"
			a.w.change(path, "without the import")
			a.again(10, 3, func(int) {
				a.do(edit(path, "import { pay } from './api'", "import { pay } from './api'\nimport { log } from '../log'"))
				a.w.signal(false)
				a.touches(path, "without the import") // the hook of the client runs eslint --fix
				a.do(run("npx tsc --noEmit").fails(2, "%s(31,7): error TS2304: Cannot find name 'log'.", path).takes(8 * time.Second))
			})
		}},
		// Each attempt is thrown away with git checkout, and is one of the two that were tried before. After the fourth a person says stop.
		{name: "two attempts in turns, each thrown away with git checkout", kinds: loops, play: func(a *agent) {
			a.some("Make TestLease pass.")
			path := "internal/lease/lease.go"
			a.w.change(path, "as committed")
			a.again(11, 4, func(i int) {
				a.do(edit(path, "l.mu.Lock()", []string{"l.mu.RLock()", "l.mu.TryLock()"}[i%2]))
				a.do(run("go test -v -race ./internal/lease").fails(1, "%s\n%s", a.crash(12), a.goTest(20, false, "TestLease: lease held by another")).takes(20 * time.Second))
				a.do(run("git checkout -- " + path).gives("Updated 1 path from the index"))
				a.touches(path, "as committed")
			})
		}},
		// The whole file is written in one of two versions, in turns, and each breaks what the other mends. Into the second pair a person sees it.
		// https://github.com/cline/cline/issues/3039
		{name: "a file written whole in two versions, in turns", kinds: loops, play: func(a *agent) {
			a.some("Write the configuration of the bundler so that both builds pass.")
			a.again(14, 5, func(i int) {
				a.do(write("vite.config.ts", essay("bundler", i%2, 40)))
				a.do(run("npm run build:" + []string{"web", "worker"}[i%2]).quiet().takes(9 * time.Second))
				a.do(run("npm run build:"+[]string{"worker", "web"}[i%2]).fails(1, "error during build:\nCould not resolve entry module \"src/%s.ts\".", []string{"worker", "web"}[i%2]).takes(4 * time.Second))
			})
		}},
		// Two agents that were called at once undo each other's change of the same line. After three rounds a person takes one of them away.
		// https://github.com/NousResearch/hermes-agent/issues/44965 https://github.com/gsd-build/get-shit-done/pull/364
		{name: "two agents that undo each other's change", kinds: loops, play: func(a *agent) {
			a.some("Have one agent make the tests of web pass, and another those of worker.")
			var first, second []func(*agent)
			path := "config/shared.yaml"
			for i := range 10 {
				first = append(first, func(s *agent) {
					if i == 0 {
						s.sick()
					}
					s.w.change(path, "30 s")
					s.do(edit(path, "timeout: 30s", "timeout: 5s"))
					s.w.change(path, "5 s")
				}, func(s *agent) {
					s.do(run("make test-web").fails(2, "%s", s.goTest(12, false, "TestWeb: timed out after 30s, want 5s")))
				})
				second = append(second, func(s *agent) {
					s.do(edit(path, "timeout: 5s", "timeout: 30s"))
					s.w.change(path, "30 s")
				}, func(s *agent) {
					s.do(run("make test-worker").fails(2, "%s", s.goTest(12, false, "TestWorker: timed out after 5s, want 30s")))
					if i == 2 {
						s.person()
					}
				})
			}
			a.do(delegate("Make the tests of web pass.", first...), delegate("Make the tests of worker pass.", second...))
		}},
		// The agent repeats a command that fails, while a generator beside it writes files. The files are none of its work. Five are enough.
		{name: "the same failure, while something else writes files", kinds: loops, play: func(a *agent) {
			a.some("Start the generator of the clients in the background and make the build pass.")
			a.again(18, 5, func(i int) {
				a.touches(fmt.Sprintf("clients/c%d.go", i), "generated")
				a.do(run("go build ./cmd/...").fails(1, "# shop/cmd/shop\ncmd/shop/main.go:31:14: undefined: router.NewMux").takes(7 * time.Second))
				a.w.pass(25*time.Second, 0.8, 0)
			})
		}},
		// The text to put in is the text that is there. The tool says so each time, also after the session was resumed on another day. Four are enough.
		// https://github.com/openclaw/openclaw/issues/86454 https://github.com/google-gemini/gemini-cli/issues/2188
		{name: "an edit that changes nothing, over a resumed session", kinds: loops, play: func(a *agent) {
			a.some("Ask the database for 100 rows at once.")
			path := "src/notion.ts"
			none := edit(path, "const response = await notion.databases.query({", "const response = await notion.databases.query({").ends(broken).gives("No changes to make: old_string and new_string are exactly the same.")
			a.again(10, 4, func(i int) {
				if i == 2 {
					a.say("I have to apply the edit once more.")
					a.resume(9 * time.Hour)
					a.task("Go on.")
				}
				a.do(read(path))
				a.do(none)
			})
		}},
	}
}

// heldBackIdle are runs that do a lot and get nowhere.
func heldBackIdle() []scenario {
	return []scenario{
		// Eight large files are read until the client compacts, and then read again: never an edit. In the third round a person sees it.
		// https://github.com/openai/codex/issues/29354 https://github.com/openai/codex/issues/13279 https://github.com/openai/codex/issues/36664
		{name: "reading the same files after each compaction, and never an edit", kinds: append([]kind{stalled, looping}, pressured, escalated), play: func(a *agent) {
			a.some("Add the builder for the snapshot and connect it to the validator.")
			a.sick()
			for round := range 7 {
				for i := range 8 {
					a.fill(a.limit() - .05*float64(7-i))
					a.do(read(fmt.Sprintf("validators/part%d.py", i)).gives("%s", essay(noun(i), i, 60)))
					if round == 2 && i == 3 {
						a.person()
					}
				}
				a.compact("The task is to add the builder. All parts of the validator were read and the missing builder is understood. Step 1 of 6: implement it.")
			}
			for i := range 4 {
				a.do(read(fmt.Sprintf("validators/part%d.py", i)).gives("%s", essay(noun(i), i, 60)))
			}
		}},
		// Page after page of analysis, in other words each time, of files that were read long ago; no code. After ten turns of it a person asks for the code.
		// https://github.com/openai/codex/issues/38931
		{name: "an analysis that is written anew each time, and no code", kinds: stalls, play: func(a *agent) {
			a.some("Make the import of prices resumable.")
			for i := range 4 {
				a.do(read(file(720 + i)))
			}
			a.again(26, 10, func(i int) {
				if i%2 == 0 {
					a.do(write("docs/analysis.md", essay("analysis", i, 50)))
				} else {
					a.do(read(file(720 + (i/2)%4)))
				}
			})
		}},
		// It says that it waits for agents that nobody has called. The fourth time, a person tells it that there are none.
		// https://github.com/anthropics/claude-code/issues/74317
		{name: "waiting for agents that were never called", kinds: stalls, play: func(a *agent) {
			a.some("Find out which of our dependencies are unmaintained.")
			a.again(13, 4, func(i int) {
				a.say([]string{"The agents work in the background. I wait for them to complete.", "Waiting for the research agents to report.", "Still waiting for the background agents; I will summarise when they are done."}[i%3])
				a.task("<system-reminder>No task runs in the background.</system-reminder>")
			})
		}},
		// Nothing runs behind the session any more, and it is asked for output every half minute. After twelve times a person knows that it is dead.
		// https://github.com/openai/codex/issues/14314
		{name: "waiting for the terminal of a command that is over", kinds: loops, play: func(a *agent) {
			a.some("Run clippy over everything in the background and fix what it finds.")
			a.again(60, 12, func(int) {
				a.latency = 4 * time.Second
				a.do(poll("5102").quiet().takes(30 * time.Second).uses(0))
			})
		}},
	}
}

// heldBackHangs are runs in which nothing comes any more. A person sees it by the time that passes.
func heldBackHangs() []scenario {
	return []scenario{
		// Two of three agents have answered within minutes; the third asks for nothing more. After half an hour a person looks into it.
		// https://github.com/anthropics/claude-code/issues/89124 https://github.com/anthropics/claude-code/issues/44783
		{name: "the last of three agents never answers", kinds: stalls, play: func(a *agent) {
			a.some("Have three agents look for the leak.")
			work := func(s *agent) { s.do(read(file(s.n(300, 330)))) }
			a.do(delegate("Look at the cache.", work, work, func(s *agent) { s.say("Nothing here.") }),
				delegate("Look at the queue.", work, work, func(s *agent) { s.say("Nothing here.") }),
				delegate("Look at the pool.", work, work, work, func(s *agent) {
					s.hangs(run("curl -sS https://pool.example.com/debug/heap"), 5*time.Hour, 30*time.Minute, 0)
				}))
		}},
		// The stream of an answer stops in the middle, and neither ends nor fails. After 20 minutes without a word a person says that it is dead.
		// https://github.com/anomalyco/opencode/pull/40010 https://github.com/earendil-works/pi/pull/8330
		{name: "an answer whose stream stops in the middle", streams: true, kinds: stalls, play: func(a *agent) {
			a.some("Add the export.")
			a.stops(20*time.Second, 9, "I will write the export now. ", "First the rows, ", "then the header, ", "and at the end ")
			a.hang(6*time.Hour, 20*time.Minute, 0.004, 0)
		}},
		// Nothing comes but the signs by which the connection is kept open. After three quarters of an hour a person believes no longer that it thinks.
		// https://github.com/anomalyco/opencode/pull/40010
		{name: "an answer of which nothing comes but signs of life, for five hours", streams: true, kinds: stalls, play: func(a *agent) {
			a.some("Add the export.")
			ping := map[string]string{"anthropic": "event: ping\ndata: {\"type\": \"ping\"}\n\n"}[a.w.run.client.dialect]
			if ping == "" {
				ping = ": keep-alive\n\n"
			}
			a.ask(false)
			a.w.verdict.hung = true
			a.sick()
			a.pieces(slices.Repeat([][]byte{[]byte(ping)}, 90), 30*time.Second)
			a.person()
			a.pieces(slices.Repeat([][]byte{[]byte(ping)}, 510), 30*time.Second)
		}},
	}
}

// heldBackFruitless are runs in which the attempts differ, and none of them gets anywhere.
func heldBackFruitless() []scenario {
	return []scenario{
		// A file that may not be written is tried with every tool there is. After six refusals a person says that no means no.
		// https://github.com/anthropics/claude-code/issues/37935
		{name: "a file that may not be written, tried with every tool", kinds: []kind{cascading, looping, stalled, escalated}, play: func(a *agent) {
			a.some("Write the page .claude/docs/rules.md.")
			a.connect(mcp("files", "write_file"))
			path := ".claude/docs/rules.md"
			a.again(5, 1, func(i int) {
				text := essay("rules", i, 8)
				a.do(write(path, text).ends(denied))
				a.do(run(fmt.Sprintf("cat > %s <<'EOF'\n%s\nEOF", path, text)).ends(denied))
				a.do(edit(path, "", text).ends(denied))
				a.do(mcp("files", "write_file", "path", path, "content", text).ends(denied))
				a.do(run(fmt.Sprintf("python3 -c 'open(%q, \"w\").write(\"%d\")'", path, i)).ends(denied))
				a.do(run(fmt.Sprintf("tee %s.%d", path, i)).ends(denied))
			})
		}},
		// Another edit each time, and the same three tests fail; the log grows since more and more is printed. After seven rounds a person takes over.
		// https://github.com/stackblitz/bolt.new/issues/1144
		{name: "other edits, the same three failures, and a log that grows", window: 400_000, kinds: paces, play: func(a *agent) {
			a.some("Make the tests of ledger pass.")
			a.again(14, 7, func(i int) {
				a.do(edit("shop/ledger.py", fmt.Sprintf("carry(%d)", i), fmt.Sprintf("carry(%d)\n    print(state, %d)", i+1, i)))
				a.do(run("pytest -v tests/test_ledger.py").fails(1, "%s", a.pytest(30, 10+i*12, "test_balance_closed: assert 1204 == 1200", "test_carry_over: assert 3 == 0", "test_sum_of_sums: assert 77 == 76")).takes(15 * time.Second).uses(1))
			})
		}},
		// The servers of the tools are gone; each tool of each server fails, whatever it is asked. After five calls a person looks at the servers.
		{name: "all servers of tools are gone", kinds: cascades, play: func(a *agent) {
			a.some("Sync the tickets with the database and check the page.")
			a.connect(mcp("db", "query"), mcp("browser", "navigate"), mcp("tracker", "search"), mcp("files", "read_file"))
			a.again(6, 1, func(i int) {
				a.do(mcp("db", "query", "sql", fmt.Sprintf("select id, state from tickets limit 50 offset %d", i*50)).ends(broken).gives("MCP error -32000: Connection closed"))
				a.do(mcp("tracker", "search", "query", fmt.Sprint("label:sync page:", i)).ends(broken).gives("MCP error -32001: Request timed out"))
				a.do(ticket(fmt.Sprint(400 + i)).ends(broken).gives("MCP error -32000: Connection closed"))
				a.do(mcp("browser", "navigate", "url", fmt.Sprintf("http://localhost:3000/tickets/%d", i)).ends(broken).gives("MCP error -32000: Connection closed"))
				a.do(mcp("files", "read_file", "path", fmt.Sprintf("export/%d.csv", i)).ends(broken).gives("spawn npx ENOENT"))
			})
		}},
		// Large results of a tool fill the window and the client does not compact. When 85 percent are used, a person has the agent sum up.
		// https://github.com/cline/cline/issues/3039
		{name: "results of a tool that fill the window to 95 percent, without compaction", kinds: []kind{pressured, escalated}, play: func(a *agent) {
			a.some("Go through the log of the incident page by page and write down what happened.")
			a.connect(mcp("logs", "page"))
			a.fill(.5)
			a.sick()
			for i := range 16 {
				text := essay("incident", i, 60)
				if i < 9 {
					text = essay("incident", i, 420)
				}
				a.do(mcp("logs", "page", "number", i).gives("%s", text))
				a.do(edit("docs/incident.md", fmt.Sprint("part ", i), fmt.Sprint("what happened in part ", i)))
				if float64(a.tokens()) > .85*defaultWindow {
					a.person()
				}
			}
		}},
	}
}

// stops begins an answer of some words, a pause after each, of which no more comes than so many events.
func (a *agent) stops(pause time.Duration, most int, words ...string) {
	a.ask(false)
	s := said{deltas: words, usage: a.tokens()}
	for _, w := range words {
		s.text += w
	}
	list := events(a.w.reply(s).body)
	a.pieces(list[:min(most, len(list)-3)], pause)
}

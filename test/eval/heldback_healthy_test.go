// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// heldBackHealthy are runs in which a careful person who looks on would not step in. They were written from reports of agents that were
// stopped wrongly, without knowledge of how supervision decides. Each says why it is healthy, and where the like was reported.
func heldBackHealthy() []scenario {
	return slices.Concat(heldBackWaits(), heldBackBulk(), heldBackTrials(), heldBackContexts(), heldBackOthers())
}

// heldBackWaits are runs that wait, as they were told or for something that goes on.
func heldBackWaits() []scenario {
	return []scenario{
		// The task asks for it, and every few polls another job of the pipeline is done.
		// https://github.com/OpenHands/software-agent-sdk/issues/762 https://github.com/QwenLM/qwen-code/pull/9492
		{name: "a tool that is asked for the state of a pipeline every minute, as told", play: func(a *agent) {
			a.begin("Start the release pipeline, ask ci get_run for its state once a minute until it ends (it takes some 40 minutes), then write docs/release.md.")
			state := func(done int, status, conclusion string) string {
				return object("id", 99812, "status", status, "conclusion", conclusion, "updated_at", a.w.now.Format(time.RFC3339), "jobs", map[string]int{"total": 9, "completed": done})
			}
			a.connect(mcp("ci", "start_run"), mcp("ci", "get_run"))
			a.do(mcp("ci", "start_run", "workflow", "release").gives("%s", `{"id":99812,"status":"queued"}`))
			for i := range a.n(34, 38) {
				a.latency = time.Duration(a.n(50, 70)) * time.Second
				a.do(mcp("ci", "get_run", "id", 99812).gives("%s", state(i/4, "in_progress", "")))
			}
			a.latency = 0
			a.do(mcp("ci", "get_run", "id", 99812).gives("%s", state(9, "completed", "success")))
			a.do(write("docs/release.md", "The release is out."))
			a.say("Released.")
		}},
		// The command says for how long it may wait, and comes back before that.
		// https://github.com/OpenHands/OpenHands/issues/5355
		{name: "kubectl wait for a job of 95 minutes, with a timeout of two hours", play: func(a *agent) {
			a.begin("Apply reindex.yaml, wait until the job is complete (up to two hours), then remove the old index.")
			a.do(run("kubectl apply -f reindex.yaml").gives("job.batch/reindex created"))
			a.do(run("kubectl wait --for=condition=complete job/reindex --timeout=2h").gives("job.batch/reindex condition met").takes(95 * time.Minute).uses(0.001))
			a.do(run("kubectl logs job/reindex --tail=3").gives("%s indexed 4,112,908 rows", a.w.now.Format(time.RFC3339)))
			a.do(edit("deploy/search.yaml", "index: v1", "index: v2"))
			a.say("The new index is in use.")
		}},
		// Each wait ends by its own timeout with an error, and each time more of the replicas are there.
		{name: "a rollout of 60 replicas that outlasts its timeout three times", play: func(a *agent) {
			a.begin("Roll out deploy/shop and wait until it is done. It has 60 replicas and each takes a while.")
			a.do(run("kubectl set image deploy/shop shop=registry.example.com/shop:42").gives("deployment.apps/shop image updated"))
			for i := range 3 {
				text := ""
				for n := range 14 {
					text += fmt.Sprintf("Waiting for deployment \"shop\" rollout to finish: %d out of 60 new replicas have been updated...\n", 2+i*15+n)
				}
				a.do(run("kubectl rollout status deploy/shop --timeout=600s").fails(1, "%serror: timed out waiting for the condition", text).takes(10 * time.Minute).uses(0.002))
			}
			a.do(run("kubectl rollout status deploy/shop --timeout=600s").gives("deployment \"shop\" successfully rolled out").takes(7 * time.Minute).uses(0.002))
			a.do(run("kubectl get pods").gives("%s", a.pods(60, 60, "", 0)))
			a.say("All 60 replicas run.")
		}},
		// The build computes all the time; it is the client that makes the agent ask again.
		// https://github.com/OpenHands/OpenHands/issues/10350 https://github.com/OpenHands/OpenHands/pull/10750
		{name: "an optimised build of 35 minutes that is asked for output every minute", play: func(a *agent) {
			a.begin("Build with `cargo build --profile fat-lto`, then say how large the binary is. The last step prints nothing for half an hour.")
			a.do(run("cargo build --profile fat-lto > build.log 2>&1 &").quiet())
			a.w.children += 2
			for range a.n(28, 32) {
				a.latency = 5 * time.Second
				a.do(poll("4471").quiet().takes(time.Duration(a.n(55, 70)) * time.Second).uses(1.7))
			}
			a.w.children -= 2
			a.latency = 0
			a.do(run("cat build.log").gives("%s", a.cargo(180, 12)))
			a.do(run("du -h target/fat-lto/shop").gives("11M\ttarget/fat-lto/shop"))
			a.say("11 MB.")
		}},
		// A person has to act; the agent was told to look every 20 minutes, and does.
		{name: "a review that is awaited with a look every 20 minutes", play: func(a *agent) {
			a.begin("Push the branch, open a pull request, look every 20 minutes whether it is approved, and merge it then.")
			a.do(run("gh pr create --fill").gives("https://git.example.com/shop/shop/pull/812"))
			for range a.n(6, 8) {
				a.do(run("sleep 1200; gh pr view 812 --json reviewDecision,mergeable").gives("%s", `{"mergeable":"MERGEABLE","reviewDecision":"REVIEW_REQUIRED"}`).takes(20 * time.Minute).uses(0))
			}
			a.do(run("sleep 1200; gh pr view 812 --json reviewDecision,mergeable").gives("%s", `{"mergeable":"MERGEABLE","reviewDecision":"APPROVED"}`).takes(20 * time.Minute).uses(0))
			a.do(run("gh pr merge 812 --squash").gives("Merged pull request #812"))
			a.say("Merged.")
		}},
		// One call that waits for CI and prints the same table over and over, some 70 KB of it.
		// https://github.com/context-labs/whip/pull/58
		{name: "a run of CI that one call watches for 48 minutes", play: func(a *agent) {
			a.begin("Push, wait for CI, and fix what it finds.")
			a.do(run("git push origin HEAD").gives("To git.example.com:shop/shop\n   12ab34c..56cd78e  HEAD -> form"))
			t := a.transcript()
			for i := range 90 {
				t.line("Refreshing run status every 30 seconds. Press Ctrl+C to quit.\n\n* form CI · %d\nTriggered via push about %d minutes ago\n\nJOBS", 7_712_003, i/2)
				for j := range 8 {
					t.line("%s %s (ID %d)", []string{"*", "✓"}[min(1, i/(10*j+9))], title(j), 21_000_000_000+j)
				}
			}
			a.do(run("gh run watch 7712003 --exit-status").fails(1, "%s\nX form CI · 7712003\n  X Lint: errcheck internal/order/order.go:41", t.text()).takes(48 * time.Minute).uses(0.01))
			a.do(edit("internal/order/order.go", "f.Close()", "err = f.Close()"))
			a.do(run("golangci-lint run ./internal/order").gives("0 issues.").takes(20 * time.Second))
			a.say("The finding of the linter is fixed.")
		}},
		// The loss falls; each look shows new lines.
		{name: "a training whose loss is read every 90 seconds", play: func(a *agent) {
			a.begin("Train the ranking model with train.py and stop when the loss is below 0.3. It takes an hour.")
			a.do(run("nohup python train.py > train.log 2>&1 &").quiet())
			a.w.children++
			for i := range a.n(18, 22) {
				a.do(run("sleep 90; tail -n 5 train.log").gives("%s", func() string {
					t := a.transcript()
					for n := range 5 {
						t.line("%s epoch %d step %d loss=%.4f lr=%.2e gpu_mem=%d.%dG", t.stamp(), i/3, i*500+n*100, 2.1/(1+float64(i)*.35)+float64(a.n(0, 99))/5000, 3e-4, a.n(20, 22), a.n(0, 9))
					}
					return t.text()
				}()).takes(90 * time.Second).uses(0.9))
			}
			a.w.children--
			a.do(run("pkill -INT train.py && tail -n 1 train.log").gives("saved checkpoint model-0.29.pt"))
			a.do(edit("config/rank.yaml", "model: old.pt", "model: model-0.29.pt"))
			a.say("The loss is 0.29.")
		}},
		// The provider is slow and the answer long, and its words come all the time.
		// https://github.com/ayunis-core/ayunis-core/pull/1245
		{name: "an answer that streams for 35 minutes", streams: true, play: func(a *agent) {
			a.begin("Write the migration of the whole schema in one file. Think as long as you need.")
			words := make([]string, 42)
			for i := range words {
				words[i] = essay("schema", i, 3)
			}
			a.slowly(50*time.Second, words...)
			a.do(write("migrations/0042_all.sql", essay("migration", 42, 300)))
			a.do(run("psql -f migrations/0042_all.sql shop_copy").gives("%s", strings.Repeat("ALTER TABLE\n", 90)+"COMMIT").takes(40 * time.Second))
			a.say("The migration is written, and runs on the copy.")
		}},
	}
}

// heldBackBulk are runs that do the like very often, each time to something else.
func heldBackBulk() []scenario {
	return []scenario{
		// 40 tickets get a label. The answer is the same each time, no file changes, and each call does something new.
		// https://github.com/google-gemini/gemini-cli/issues/8234 https://github.com/RooCodeInc/Roo-Code/issues/9502
		{name: "a label for each of 40 tickets", play: func(a *agent) {
			a.begin("Give every open ticket of the milestone the label needs-triage.")
			a.connect(mcp("tracker", "list_issues"), mcp("tracker", "add_label"))
			list := ""
			for i := range 40 {
				list += fmt.Sprintf("{\"number\":%d,\"title\":\"%s of the %s\",\"labels\":[]}\n", 2100+i*3, title(i), noun(i*5))
			}
			a.do(mcp("tracker", "list_issues", "milestone", "4.2", "state", "open").gives("%s", list))
			for i := range 40 {
				a.do(mcp("tracker", "add_label", "number", 2100+i*3, "label", "needs-triage").gives("%s", `{"ok":true}`))
			}
			a.say("All 40 have the label.")
		}},
		// Rows of a list that a person gave, one statement each, since the database refuses batches.
		{name: "45 rows that are inserted one by one", play: func(a *agent) {
			a.begin("Insert the suppliers of data/suppliers.csv into the staging database with psql, one statement each: the trigger refuses batches.")
			a.do(run("cat data/suppliers.csv").gives("%s", essay("supplier", 1, 45)))
			for i := range 45 {
				a.do(run(fmt.Sprintf("psql staging -c \"insert into suppliers (id, name) values (%d, '%s %s')\"", 700+i, title(i), title(i*3+1))).gives("INSERT 0 1"))
			}
			a.do(run("psql staging -tc 'select count(*) from suppliers'").gives("    45"))
			a.say("All 45 are there.")
		}},
		// Each of the names must not be found any more: nothing found is what is hoped for.
		{name: "26 names that are looked for and rightly not found", play: func(a *agent) {
			a.begin("We removed 26 functions last year. Make sure that no caller is left of any of them; report only.")
			a.do(run("cat docs/removed.txt").gives("%s", essay("removed", 3, 26)))
			for i := range 26 {
				a.do(search(fmt.Sprintf("\\b%s%s\\(", title(i), title(i*7+2))).ends(exited))
			}
			a.say("No caller is left.")
		}},
		// 30 manifests, each for itself, each valid.
		{name: "30 manifests of which each is valid", play: func(a *agent) {
			a.begin("Validate each manifest below deploy/ and tell me which are not valid.")
			a.do(find("deploy/**/*.yaml").gives("%s", essay("manifest", 4, 30)))
			for i := range 30 {
				a.do(run(fmt.Sprintf("kubeconform -strict -summary deploy/%s/%s.yaml", noun(i), noun(i*3+1))).gives("Summary: 1 resource found in 1 file - Valid: 1, Invalid: 0, Errors: 0, Skipped: 0"))
			}
			a.say("All 30 are valid.")
		}},
		// Search, move, update, for each of the components: repetitive and finite.
		// https://github.com/google-gemini/gemini-cli/issues/5873
		{name: "components that are moved one after the other, with their imports", play: func(a *agent) {
			a.begin("Move every component of src/components into a folder of its own, and update what imports it.")
			for i := range a.n(15, 18) {
				name := title(i) + title(i*5+1)
				a.do(search("components/"+name).gives("src/pages/%s.tsx:%d:import { %s } from '../components/%s'", noun(i), 3+i%9, name, name))
				a.do(run(fmt.Sprintf("mkdir -p src/components/%s && git mv src/components/%s.tsx src/components/%s/index.tsx", name, name, name)).quiet())
				a.touches("src/components/"+name+".tsx", "")
				a.touches("src/components/"+name+"/index.tsx", "moved")
				a.do(edit("src/pages/"+noun(i)+".tsx", "../components/"+name+"'", "../components/"+name+"/index'"))
			}
			a.do(run("npx vitest run").gives("%s", a.vitest(140)).takes(31 * time.Second).uses(1.8))
			a.say("All are moved.")
		}},
		// The same call with the same arguments 48 times: each gives the next 8 KB.
		// https://github.com/RooCodeInc/Roo-Code/issues/9502
		{name: "the output of a debugger, read in 48 pieces by the same call", play: func(a *agent) {
			a.begin("Attach the debugger to the dump and list the modules that are loaded twice.")
			a.connect(mcp("debugger", "attach"), mcp("debugger", "read_output"))
			a.do(mcp("debugger", "attach", "dump", "/dumps/shop.dmp").gives("%s", `{"session":"cdb-1","state":"running"}`))
			for i := range 48 {
				t := a.transcript()
				for n := range 80 {
					t.line("ModLoad: 00007ff8`%08x 00007ff8`%08x   C:\\Windows\\System32\\%s%s%d.dll", (i*80+n)*0x10000, (i*80+n+1)*0x10000, noun(i+n), noun(n*3), i*80+n)
				}
				a.do(mcp("debugger", "read_output", "session", "cdb-1").gives("%s", t.text()))
			}
			a.do(write("docs/modules.md", "Two modules are loaded twice."))
			a.say("Two are loaded twice.")
		}},
		// A dozen workspaces, each planned for itself, each without a change; the logs are long and nearly alike.
		{name: "a plan of terraform for each of 12 workspaces", window: 1_000_000, play: func(a *agent) {
			a.begin("Plan every workspace below infra/ and list those that have drifted.")
			for i := range 12 {
				end := "\nNo changes. Your infrastructure matches the configuration.\n\nTerraform has compared your real infrastructure against your configuration and found no differences, so no changes are needed."
				if i == 7 {
					end = "\nPlan: 0 to add, 1 to change, 0 to destroy."
				}
				a.do(run(fmt.Sprintf("cd infra/%s && terraform init -input=false >/dev/null && terraform plan -no-color", noun(i))).gives("%s", a.terraform(120, end)).takes(time.Duration(a.n(40, 80)) * time.Second).uses(0.2))
			}
			a.say("infra/" + noun(7) + " has drifted.")
		}},
		// Every page of a site is looked at once; the results are pictures and nothing else.
		{name: "screenshots of 24 pages, each looked at once", play: func(a *agent) {
			a.begin("Look at each screenshot below shots/ and list the pages whose layout is broken.")
			for i := range 24 {
				path := fmt.Sprintf("shots/page-%02d.png", i)
				a.do(read(path).shows(picture(path)))
			}
			a.do(write("docs/layout.md", "Pages 3 and 17 are broken."))
			a.say("Pages 3 and 17.")
		}},
	}
}

// heldBackTrials are runs that try, and get further.
func heldBackTrials() []scenario {
	return []scenario{
		// One test fails each time, a later one each time: `-x` stops at the first.
		{name: "pytest -x that gets further with each edit", play: func(a *agent) {
			a.begin("Port the ledger to the new rounding; run pytest -x until all pass.")
			for i := range a.n(11, 13) {
				a.do(run("pytest -x -v tests").fails(1, "%s\n!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!", a.pytest(40+i*12, 0, fmt.Sprintf("test_%s_%d: assert %d == %d", noun(i*3), i, 40+i, 41+i))).takes(time.Duration(14+i*2) * time.Second).uses(1))
				a.do(edit("shop/ledger.py", fmt.Sprintf("round_%s(x)", noun(i*3)), fmt.Sprintf("quantize_%s(x)", noun(i*3))))
			}
			a.do(run("pytest -x -v tests").gives("%s", a.pytest(190, 0)).takes(40 * time.Second).uses(1))
			a.say("All pass.")
		}},
		// The errors of the compiler go down with one setback, in logs of 30 KB with another order of crates.
		{name: "errors of a compiler that become fewer, with one setback", window: 400_000, play: func(a *agent) {
			a.begin("Port the crate to edition 2024.")
			for i, count := range []int{38, 31, 24, 29, 17, 12, 6, 2} {
				errors := make([]string, count)
				for n := range errors {
					errors[n] = fmt.Sprintf("E0382]: use of moved value: `%s_%d`", noun(n+i), n+i*3)
				}
				a.do(run("cargo build 2>&1").fails(101, "%s", a.cargo(90, 60, errors...)).takes(time.Duration(a.n(30, 60)) * time.Second).uses(1.9))
				a.do(edit(fmt.Sprintf("src/%s.rs", noun(i*3)), fmt.Sprintf("take_%d(x)", i), fmt.Sprintf("take_%d(&x)", i)), edit(fmt.Sprintf("src/%s.rs", noun(i*3+1)), fmt.Sprintf("into_%d(x)", i), fmt.Sprintf("iter_%d(x)", i)))
			}
			a.do(run("cargo build 2>&1").gives("%s", a.cargo(90, 60)).takes(45 * time.Second).uses(1.9))
			a.say("Ported.")
		}},
		// Logs of 180 KB in which the failures become fewer; all else is noise.
		{name: "mvn verify with logs of 180 KB and fewer failures each time", window: 1_000_000, play: func(a *agent) {
			a.begin("Make `mvn verify` pass. (The client shows up to 200,000 characters of an output.)")
			names := []string{"booksTwice: expected: <2> but was: <1>", "carries: expected: <0> but was: <3>", "closes: expected: <true> but was: <false>", "opens: expected: <[a, b]> but was: <[a]>", "rounds: expected: <1.10> but was: <1.09>", "sums: expected: <77> but was: <76>"}
			for i := range names {
				a.do(run("mvn -B verify").fails(1, "%s", a.maven(280, 340, names[i:]...)).takes(time.Duration(a.n(70, 110)) * time.Second).uses(1.5))
				a.do(edit("src/main/java/com/example/shop/ledger/Ledger.java", fmt.Sprintf("step%d();", i), fmt.Sprintf("step%d(true);", i)))
			}
			a.do(run("mvn -B verify").gives("%s", a.maven(280, 340)).takes(80 * time.Second).uses(1.5))
			a.say("It passes.")
		}},
		// The same command eight times without an edit, to find out which tests are flaky; the seeds and the failing tests differ.
		{name: "a suite that is run eight times to find what is flaky", window: 400_000, play: func(a *agent) {
			a.begin("Run the tests eight times with random order and tell me which are flaky.")
			for i := range 8 {
				if i%3 == 1 {
					a.do(run("go test -v -shuffle=on -count=1 ./...").fails(1, "%s", a.goTest(70, true, []string{"TestLease: lease held by another", "TestSession: session expired early", "TestLease: lease held by another"}[i/3])).takes(50 * time.Second).uses(1.8))
				} else {
					a.do(run("go test -v -shuffle=on -count=1 ./...").gives("%s", a.goTest(70, true)).takes(50 * time.Second).uses(1.8))
				}
			}
			a.say("TestLease and TestSession are flaky.")
		}},
		// Six of nine commits fail in the same way. That is what a bisection looks like.
		{name: "a bisection by hand in which most commits fail in the same way", window: 400_000, play: func(a *agent) {
			a.begin("Find the commit that broke TestLedger with git bisect. It is among the last 500.")
			a.do(run("git bisect start HEAD HEAD~500").gives("Bisecting: 249 revisions left to test after this (roughly 8 steps)"))
			for i, bad := range []bool{true, true, false, true, true, true, false, true} {
				if bad {
					a.do(run("go test -v ./internal/ledger").fails(1, "%s", a.goTest(60, false, "TestLedger: Balance() = 1204, want 1200")).takes(30 * time.Second))
				} else {
					a.do(run("go test -v ./internal/ledger").gives("%s", a.goTest(60, false)).takes(30 * time.Second))
				}
				a.do(run("git bisect "+map[bool]string{true: "bad", false: "good"}[bad]).gives("Bisecting: %d revisions left to test after this (roughly %d steps)\n[%040x] Change %d", 124>>i, 7-i, number(fmt.Sprint(i)), 300-i))
				a.touches("internal/ledger/ledger.go", fmt.Sprint("as of change ", i))
			}
			a.do(run("git bisect reset").quiet())
			a.say("The commit of change 294.")
		}},
		// A page is tuned by eye: the same call each time, and another picture each time.
		{name: "a page that is adjusted by screenshots", play: func(a *agent) {
			a.begin("Make the checkout look like design.png. The dev server runs; use the browser.")
			a.connect(mcp("browser", "screenshot"))
			for i := range a.n(9, 11) {
				a.do(edit("web/checkout.css", fmt.Sprintf("margin: %dpx", 40-i), fmt.Sprintf("margin: %dpx", 39-i)))
				a.do(mcp("browser", "screenshot").shows(picture(fmt.Sprint("checkout", i))))
			}
			a.say("It looks like the design.")
		}},
	}
}

// heldBackContexts are runs whose context is full now and then, or whose conversation does not go straight on.
func heldBackContexts() []scenario {
	ports := func(a *agent, rounds int) {
		for round := range rounds {
			for i := range 8 {
				a.fill(a.limit() - .035*float64(7-i))
				path := file(round*40 + i)
				a.do(read(path))
				a.do(edit(path, fmt.Sprint("old", i), fmt.Sprint("new", i)))
			}
			a.compact(fmt.Sprintf("The packages are ported one by one; %d of %d parts are done. Next: part %d.", round+1, rounds, round+2))
		}
		a.do(run("make test").gives("%s", passes(a)))
	}
	return []scenario{
		// The client compacts the conversation by itself where it always does, and the work goes on.
		// https://github.com/anthropics/claude-code/issues/41796
		{name: "a context that comes to where the client compacts it, three times", play: func(a *agent) {
			a.begin("Port all packages to the new logger.")
			ports(a, 3)
			a.say("Ported.")
		}},
		// As before, and in a window of a million tokens that means 95 % for most clients.
		{name: "a large window that is used up to 95 percent and compacted", window: 1_000_000, play: func(a *agent) {
			a.begin("Port all packages to the new logger.")
			ports(a, 2)
			a.say("Ported.")
		}},
		// After compaction the agent has to read the files that it is at once more, and then goes on.
		{name: "a compaction, after which the same files are read and the same test is run once more", play: func(a *agent) {
			a.begin("Rewrite the router.")
			for round := range 3 {
				for i := range 5 {
					a.do(read(fmt.Sprintf("internal/router/part%d.go", i)))
				}
				a.do(run("go test -v ./internal/router").fails(1, "%s", a.goTest(40, false, "TestRoute: got 404, want 200")).takes(20 * time.Second))
				for i := range 6 {
					a.do(edit(fmt.Sprintf("internal/router/part%d.go", i%5), fmt.Sprintf("match%d%d(", round, i), fmt.Sprintf("lookup%d%d(", round, i)))
				}
				if round < 2 {
					a.fill(a.limit())
					a.do(run("go vet ./internal/router").quiet())
					a.compact(fmt.Sprintf("The router is being rewritten, part by part; %d of 3 steps are done. TestRoute still fails.", round+1))
				}
			}
			a.do(run("go test -v ./internal/router").gives("%s", a.goTest(40, false)).takes(20 * time.Second))
			a.say("Rewritten.")
		}},
		// The day, and with it the system prompt, is another; the work goes on, and the client compacts it later.
		{name: "a session that is resumed on another day and compacted later", play: func(a *agent) {
			a.begin("Translate the messages of all packages.")
			for i := range 8 {
				a.do(read(file(i)))
				a.do(edit(file(i), fmt.Sprint("text", i), fmt.Sprint("T(text", i, ")")))
			}
			a.say("The first eight packages are done. I go on when you say so.")
			a.resume(15 * time.Hour)
			a.task("Go on with the others.")
			for i := range 8 {
				a.do(read(file(40 + i)))
				a.do(edit(file(40+i), fmt.Sprint("text", i), fmt.Sprint("T(text", i, ")")))
			}
			a.fill(.8)
			a.compact("16 of 24 packages are translated.")
			for i := range 8 {
				a.do(read(file(80 + i)))
				a.do(edit(file(80+i), fmt.Sprint("text", i), fmt.Sprint("T(text", i, ")")))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("All are translated.")
		}},
	}
}

// heldBackOthers are runs with agents that work for others, with refusals and with tools that change files.
func heldBackOthers() []scenario {
	return []scenario{
		// Four agents edit other files at once. The build of one fails for what another is just writing, and passes later.
		// https://github.com/gsd-build/get-shit-done/pull/364
		{name: "four agents that edit other files at once, and see each other's half-done work", play: func(a *agent) {
			a.begin("Split the monolith into four services. Work in parallel.")
			var calls []action
			for n := range 4 {
				var work []func(*agent)
				for i := range 9 {
					work = append(work, func(s *agent) {
						path := fmt.Sprintf("services/%s/part%d.go", noun(n), i)
						s.do(write(path, essay(noun(n), i, 6)))
						if i%3 == 1 && i < 7 {
							s.do(run("go build ./...").fails(1, "# shop/services/%s\nservices/%s/part%d.go:9:2: undefined: %s", noun(n+1), noun(n+1), i, noun(n)))
						} else {
							s.do(run("go build ./services/" + noun(n)).quiet())
						}
					})
				}
				work = append(work, func(s *agent) { s.say("The service builds.") })
				calls = append(calls, delegate(fmt.Sprintf("Write the service %s.", noun(n)), work...))
			}
			a.do(calls...)
			a.do(run("go build ./...").quiet())
			a.say("All four build.")
		}},
		// Twelve agents, one after the other, with the same errand for another file each.
		{name: "an agent for each of twelve files, one after the other", play: func(a *agent) {
			a.begin("Have each handler reviewed by an agent of its own and fix what it finds.")
			for i := range 12 {
				path := file(60 + i)
				a.do(delegate("Review "+path+" for missing checks of errors and report in one line.",
					func(s *agent) { s.do(read(path)) },
					func(s *agent) { s.do(search("func .*error").gives("%s:12: func", path)) },
					func(s *agent) { s.say("Line 12 drops an error.") }))
				a.do(edit(path, "_ = do()", "if err := do(); err != nil { return err }"))
			}
			a.do(run("make test").gives("%s", passes(a)))
			a.say("All twelve are fixed.")
		}},
		// Several tools are refused by the rules of the project, each once or twice, and the agent finds the way that is allowed.
		// https://github.com/watt-mind/factory/pull/6
		{name: "four tools that are refused while it finds the allowed way", play: func(a *agent) {
			a.begin("Update the list of currencies in data/currencies.json from the official source.")
			a.connect(mcp("browser", "navigate"))
			a.do(fetch("https://currencies.example.com/list.json").ends(denied))
			a.do(run("curl -sSf https://currencies.example.com/list.json").ends(denied))
			a.do(read("README.md"))
			a.do(mcp("browser", "navigate", "url", "https://currencies.example.com").ends(denied))
			a.do(run("git submodule update --init vendor/currencies").gives("Submodule path 'vendor/currencies': checked out '%040x'", number("c")))
			a.do(read("vendor/currencies/list.json").gives("%s", essay("currency", 1, 160)))
			a.do(write("data/currencies.json", essay("currency", 1, 160)))
			a.do(run("rm -rf vendor/currencies").ends(denied))
			a.do(run("go test -v ./internal/price").gives("%s", a.goTest(30, false)).takes(9 * time.Second))
			a.say("The list is updated from the submodule; I may not remove the submodule.")
		}},
		// A hook formats each file after the edit, so that every other edit has to read it again. Each file gets done.
		// https://github.com/anthropics/claude-code/issues/51361 https://github.com/anthropics/claude-code/issues/65575
		{name: "a formatter that changes each file after it was edited", play: func(a *agent) {
			a.begin("Add types to the helpers.")
			for i := range a.n(7, 9) {
				path := fmt.Sprintf("src/helpers/%s.ts", noun(i))
				a.do(read(path))
				a.do(edit(path, fmt.Sprintf("function %s(x)", noun(i)), fmt.Sprintf("function %s(x: number)", noun(i))))
				a.touches(path, a.w.files[path]+" and formatted")
				a.do(edit(path, fmt.Sprintf("return %s", noun(i)), fmt.Sprintf("return <number>%s", noun(i))).ends(broken).gives("File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."))
				a.do(read(path))
				a.do(edit(path, fmt.Sprintf("return %s", noun(i)), fmt.Sprintf("return <number>%s", noun(i))))
				a.touches(path, a.w.files[path]+" and formatted again")
			}
			a.do(run("npx tsc --noEmit").quiet().takes(12 * time.Second))
			a.say("All helpers have types.")
		}},
	}
}

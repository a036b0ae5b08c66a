// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// transcript is what a tool prints, of the size that it has in real repositories. What differs from one run to the next without a meaning is
// drawn: times, durations, numbers of processes, seeds, addresses, ports and temporary folders.
type transcript struct {
	strings.Builder
	a *agent
}

func (a *agent) transcript() *transcript { return &transcript{a: a} }

func (t *transcript) line(format string, x ...any) { fmt.Fprintf(t, format+"\n", x...) }

// text without the last end of a line.
func (t *transcript) text() string { return strings.TrimSuffix(t.String(), "\n") }

// stamp is the time, some seconds and nanoseconds into the command.
func (t *transcript) stamp() string {
	return t.a.w.now.Add(time.Duration(t.a.w.random.IntN(9_000_000)) * time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
}

// address of something in memory.
func (t *transcript) address() string {
	return fmt.Sprintf("0x%08x%04x", 0xc000+t.a.n(0, 4000), t.a.w.random.IntN(1<<16))
}

// noun of a number.
func noun(i int) string { return nouns[i%len(nouns)] }

// title of a noun.
func title(i int) string { return strings.ToUpper(noun(i)[:1]) + noun(i)[1:] }

// goTest is what `go test -v ./...` prints of so many tests, some 300 bytes each. The failing ones are named with the line on which they fail. Those
// that pass come in any order where it is shuffled.
func (a *agent) goTest(tests int, shuffled bool, failing ...string) string {
	t := a.transcript()
	order := make([]int, tests)
	for i := range order {
		order[i] = i
	}
	if shuffled {
		t.line("-test.shuffle %d", a.w.now.UnixNano()+int64(a.n(0, 1<<30)))
		order = a.w.random.Perm(tests)
	}
	for _, i := range order {
		name := fmt.Sprintf("Test%s%s%d", title(i), title(i*5+2), i)
		t.line("=== RUN   %s", name)
		t.line("    harness_test.go:%d: database in /tmp/%s%d/001/shop.db, server on 127.0.0.1:%d", 40+i%50, name, a.n(100_000_000, 4_000_000_000), a.n(32768, 60999))
		if i%3 == 0 {
			t.line("time=%s level=INFO msg=\"request served\" pid=%d route=/%s/%d status=200 took=%dµs", t.stamp(), a.n(1000, 99999), noun(i), i, a.n(90, 9000))
		}
		t.line("--- PASS: %s (%d.%02ds)", name, a.n(0, 1), a.n(0, 99))
	}
	for i, f := range failing {
		name, message, _ := strings.Cut(f, ": ")
		t.line("=== RUN   %s", name)
		t.line("--- FAIL: %s (%d.%02ds)", name, a.n(0, 2), a.n(0, 99))
		t.line("    %s_test.go:%d: %s", strings.ToLower(strings.TrimPrefix(name, "Test")), 31+len(name)+i, message)
	}
	if len(failing) > 0 {
		t.line("FAIL")
		t.line("FAIL\tshop/internal/ledger\t%d.%03ds", a.n(2, 9), a.n(0, 999))
	}
	for i := range 6 {
		t.line("ok  \tshop/internal/%s\t%d.%03ds", noun(i), a.n(0, 9), a.n(0, 999))
	}
	if len(failing) > 0 {
		t.line("FAIL\nmake: *** [Makefile:12: test] Error 1")
	}
	return t.text()
}

// pytest is what `pytest -v` prints of so many tests, some 110 bytes each, and of the failing ones, each with its message. What the tests
// print themselves stands below the failures, in so many lines.
func (a *agent) pytest(tests, prints int, failing ...string) string {
	t := a.transcript()
	t.line("============================= test session starts ==============================")
	t.line("platform linux -- Python 3.12.4, pytest-8.3.3, pluggy-1.5.0 -- /usr/bin/python3")
	t.line("Using --randomly-seed=%d", a.n(1, 1<<31-1))
	t.line("rootdir: /workspace\nconfigfile: pyproject.toml\nplugins: xdist-3.6.1, randomly-3.15.0, cov-5.0.0, anyio-4.6.0\ncollected %d items\n", tests+len(failing))
	for i := range tests {
		t.line("tests/test_%s.py::test_%s_%s_%d PASSED %*s[%3d%%]", noun(i/20), noun(i), noun(i*7+1), i, 20+i%17, "", 100*i/(tests+len(failing)))
	}
	for _, f := range failing {
		name, _, _ := strings.Cut(f, ": ")
		t.line("tests/test_ledger.py::%s FAILED                              [100%%]", name)
	}
	if len(failing) > 0 {
		t.line("\n=================================== FAILURES ===================================")
	}
	for i, f := range failing {
		name, message, _ := strings.Cut(f, ": ")
		t.line("_____________________________ %s _____________________________", name)
		t.line("\ntmp_path = PosixPath('/tmp/pytest-of-root/pytest-%d/%s0')", a.n(1, 999), name)
		t.line("ledger = <shop.ledger.Ledger object at 0x7f%010x>\n", a.w.random.IntN(1<<40))
		t.line("    def %s(ledger, tmp_path):\n        ledger.open(tmp_path / \"book\")\n>       assert ledger.balance() == expected(\"%s\")\nE       %s\n", name, name, message)
		t.line("tests/test_ledger.py:%d: AssertionError", 40+9*i)
		if prints > 0 {
			t.line("----------------------------- Captured stdout call -----------------------------")
		}
		for n := range prints {
			t.line("DEBUG %s ledger=%s row=%d sum=%d carry=%d", t.stamp(), t.address(), n, n*17%1009, n*3%11)
		}
	}
	if len(failing) > 0 {
		t.line("=========================== short test summary info ============================")
	}
	for _, f := range failing {
		name, message, _ := strings.Cut(f, ": ")
		t.line("FAILED tests/test_ledger.py::%s - %s", name, message)
	}
	if len(failing) > 0 {
		t.line("=================== %d failed, %d passed in %d.%02ds ====================", len(failing), tests, a.n(21, 58), a.n(0, 99))
	} else {
		t.line("============================= %d passed in %d.%02ds ==============================", tests, a.n(21, 58), a.n(0, 99))
	}
	return t.text()
}

// cargo is what a build prints of so many crates and warnings, some 40 and 300 bytes each, and of the errors. Crates end in another order
// each time.
func (a *agent) cargo(crates, warnings int, errors ...string) string {
	t := a.transcript()
	for _, i := range a.w.random.Perm(crates) {
		t.line("   Compiling %s-%s v%d.%d.%d", noun(i), noun(i*3+1), i%3, i%17, i%9)
	}
	for i := range warnings {
		t.line("warning: unused variable: `%s`\n   --> src/%s.rs:%d:9\n    |\n%d |     let %s = self.%s.take();\n    |         %s help: if this is intentional, prefix it with an underscore: `_%s`\n    |\n    = note: `#[warn(unused_variables)]` on by default\n",
			noun(i), noun(i*5), 10+i*3, 10+i*3, noun(i), noun(i*2+1), strings.Repeat("^", len(noun(i))), noun(i))
	}
	for i, e := range errors {
		t.line("error[%s\n   --> src/%s.rs:%d:%d\n    |\n%d |         self.%s.push(%s);\n    |                  ^^^^ value used here after move\n", e, noun(i*3), 20+i*7, 9+i%30, 20+i*7, noun(i), noun(i+4))
	}
	if len(errors) > 0 {
		t.line("error: could not compile `shop` (lib) due to %d previous errors; %d warnings emitted", len(errors), warnings)
	} else {
		t.line("    Finished `dev` profile [unoptimized + debuginfo] target(s) in %d.%02ds", a.n(20, 90), a.n(0, 99))
	}
	return t.text()
}

// maven is what `mvn verify` prints of so many downloads and classes, some 280 and 260 bytes each, and of the tests that fail.
func (a *agent) maven(downloads, classes int, failing ...string) string {
	t := a.transcript()
	t.line("[INFO] Scanning for projects...\n[INFO] \n[INFO] -----------------------< com.example:shop-parent >-----------------------\n[INFO] Building shop 4.2.0-SNAPSHOT")
	for i := range downloads {
		path := fmt.Sprintf("com/example/%s/%s-%s/%d.%d/%s-%s-%d.%d.jar", noun(i), noun(i), noun(i*3), i%5, i%13, noun(i), noun(i*3), i%5, i%13)
		t.line("Downloading from central: https://repo.example.com/maven2/%s", path)
		t.line("Downloaded from central: https://repo.example.com/maven2/%s (%d kB at %d.%d MB/s)", path, 11+i*7%900, a.n(0, 9), a.n(0, 9))
	}
	for i := range classes {
		t.line("[INFO] Running com.example.shop.%s.%s%sTest", noun(i), title(i), title(i*3+1))
		t.line("%s  INFO %d --- [main] c.e.s.%s : Started on port %d (http) with context path '/' in %d.%03d seconds", t.stamp(), a.n(1000, 99999), noun(i), a.n(32768, 60999), a.n(1, 4), a.n(0, 999))
		t.line("[INFO] Tests run: %d, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: %d.%03d s -- in com.example.shop.%s.%s%sTest", 3+i%9, a.n(0, 3), a.n(0, 999), noun(i), title(i), title(i*3+1))
	}
	for _, f := range failing {
		name, message, _ := strings.Cut(f, ": ")
		t.line("[ERROR] Tests run: 8, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: %d.%03d s <<< FAILURE! -- in com.example.shop.ledger.LedgerTest", a.n(0, 3), a.n(0, 999))
		t.line("[ERROR] com.example.shop.ledger.LedgerTest.%s -- Time elapsed: 0.%03d s <<< FAILURE!", name, a.n(1, 999))
		t.line("org.opentest4j.AssertionFailedError: %s\n\tat com.example.shop.ledger.LedgerTest.%s(LedgerTest.java:%d)\n\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)", message, name, 40+len(name))
	}
	end := "BUILD SUCCESS"
	if len(failing) > 0 {
		end = "BUILD FAILURE"
	}
	t.line("[INFO] ------------------------------------------------------------------------\n[INFO] %s\n[INFO] Total time:  %02d:%02d min\n[INFO] Finished at: %s", end, a.n(1, 3), a.n(0, 59), t.stamp())
	if len(failing) > 0 {
		t.line("[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test (default-test) on project shop: There are test failures.")
	}
	return t.text()
}

// vitest is what `npx vitest run` prints of so many files, some 60 bytes each, and of the tests that fail.
func (a *agent) vitest(files int, failing ...string) string {
	t := a.transcript()
	t.line(" RUN  v2.1.4 /workspace\n")
	for _, i := range a.w.random.Perm(files) {
		t.line(" ✓ src/%s/%s-%d.test.tsx (%d tests) %dms", noun(i), noun(i*3+2), i, 2+i%11, a.n(3, 900))
	}
	for i, f := range failing {
		name, message, _ := strings.Cut(f, ": ")
		t.line(" ❯ src/checkout/checkout.test.tsx (14 tests | %d failed) %dms\n   × checkout > %s %dms\n     → %s", len(failing), a.n(30, 900), name, a.n(3, 90), message)
		t.line("\n FAIL  src/checkout/checkout.test.tsx > checkout > %s\nAssertionError: %s\n ❯ src/checkout/checkout.test.tsx:%d:31", name, message, 50+i*8)
	}
	t.line("\n Test Files  %d failed | %d passed (%d)\n   Start at  %s\n   Duration  %d.%02ds (transform %d.%02ds, setup %dms, collect %d.%02ds, tests %d.%02ds)",
		min(1, len(failing)), files, files+min(1, len(failing)), a.w.now.Format(time.TimeOnly), a.n(9, 40), a.n(0, 99), a.n(1, 4), a.n(0, 99), a.n(10, 900), a.n(3, 9), a.n(0, 99), a.n(5, 20), a.n(0, 99))
	return t.text()
}

// terraform is what a plan or an apply prints of so many resources, some 130 bytes each, and how it ends.
func (a *agent) terraform(resources int, end string) string {
	t := a.transcript()
	for i := range resources {
		t.line("module.%s[%d].aws_%s_%s.this: Refreshing state... [id=%s-%08x]", noun(i), i, noun(i*3+1), noun(i*5+2), noun(i), number(noun(i))>>32+uint64(i))
	}
	for i := range 12 {
		t.line("module.queue.aws_msk_cluster.this: Still creating... [%dm%02ds elapsed]", i/6, i%6*10)
	}
	t.line("%s", end)
	return t.text()
}

// request is the number that a cloud gives each of its answers.
func (a *agent) request() string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a.w.random.IntN(1<<32), a.n(0, 1<<16-1), a.n(0, 1<<12-1), a.n(0, 1<<12-1), a.w.random.IntN(1<<48))
}

// pods is what `kubectl get pods` prints of so many, some 80 bytes each, of which so many are ready; the others say why not.
func (a *agent) pods(all, ready int, why string, restarts int) string {
	t := a.transcript()
	t.line("NAME                                  READY   STATUS             RESTARTS        AGE")
	for i := range all {
		state, count, is := "Running", 0, 1
		if i >= ready {
			state, count, is = why, restarts, 0
		}
		t.line("%-37s %d/1     %-18s %-15d %dm%ds", fmt.Sprintf("%s-%08x-%05x", noun(i), number(noun(i))>>32, number(fmt.Sprint(i))%(1<<20)), is, state, count, a.n(1, 59), a.n(0, 59))
	}
	return t.text()
}

// crash is what a program prints that panics, with its goroutines, some 500 bytes each.
func (a *agent) crash(goroutines int) string {
	t := a.transcript()
	t.line("panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x6f1d2c]\n")
	for i := range goroutines {
		t.line("goroutine %d [%s, %d minutes]:", a.n(1, 99999), []string{"running", "select", "chan receive", "IO wait"}[i%4], a.n(0, 9))
		for d := range 4 {
			t.line("shop/internal/%s.(*%s).%s(%s, {%s, 0x%x})\n\t/workspace/internal/%s/%s.go:%d +0x%x", noun(i+d), title(i+d), title(i*3+d), t.address(), t.address(), 8+d, noun(i+d), noun(i+d), 30+i*3+d*11, 0x40+d*16+i%16)
		}
		t.line("")
	}
	return t.text()
}

// picture of a screen, some 20 KB in base64; the same for the same name.
func picture(name string) string {
	n := number(name)
	data := make([]byte, 15_000)
	copy(data, "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	for i := 16; i < len(data); i++ {
		n = n*6364136223846793005 + 1442695040888963407
		data[i] = byte(n >> 56)
	}
	return base64.StdEncoding.EncodeToString(data)
}

// essay of so many sentences about something, each another for another number.
func essay(about string, version, sentences int) string {
	var b strings.Builder
	for i := range sentences {
		n := int(number(fmt.Sprint(about, version, i)) % 1_000_003)
		fmt.Fprintf(&b, "The %s of the %s %s the %s, so that %s %d is seen by the %s.\n", noun(n), about, []string{"holds", "reads", "feeds", "guards"}[n%4], noun(n/7), noun(n/11), n%97, noun(n/13))
	}
	return b.String()
}

// limit is the part of the window at which the client of a run compacts a conversation by itself, less a hundredth: Claude Code keeps some
// 33,000 tokens free, opencode 32,000, and Codex a tenth of the window.
func (a *agent) limit() float64 {
	window := a.w.run.window
	if window == 0 {
		window = defaultWindow
	}
	free := map[string]float64{"claude-code": 33_000, "opencode": 32_000, "codex": float64(window) / 10}[a.w.run.client.name]
	return 1 - free/float64(window) - .01
}

// resume goes on with a conversation in another process of the client, some time after its end. The client says another day than before.
func (a *agent) resume(after time.Duration) {
	a.w.pass(after, 0, 0)
	day := a.w.now.Format("Monday, 2 January 2006")
	switch a.w.run.client.name {
	case "claude-code":
		a.system += "\nToday's date: " + day
	case "opencode":
		a.entries[0] = &entry{role: "system", text: a.entries[0].text + "\nToday's date: " + day}
	default:
		a.entries = append(a.entries, &entry{role: "user", text: "<environment_context>\n  <current_date>" + day + "</current_date>\n</environment_context>"})
	}
}

// connect names tools of servers in all further requests.
func (a *agent) connect(actions ...action) {
	for _, x := range actions {
		name, _, _, _ := a.w.run.client.tool(a.w, x)
		a.servers = append(a.servers, name)
	}
}

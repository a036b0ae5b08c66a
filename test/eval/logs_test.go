// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"strings"
	"time"
)

// tested is what a run of many tests prints: some so many bytes, in which processes, times, durations, seeds, addresses, temporary paths and the
// progress are others each time. Failed are the tests that fail, with what each says.
func tested(a *agent, size int, failed ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] worker %d started, seed %d, TMPDIR=/tmp/shop-%08x\n", a.w.now.Format(time.RFC3339Nano), a.n(1000, 99999), a.n(1, 1<<30), a.n(0, 1<<30))
	for i := range size / 190 {
		fmt.Fprintf(&b, "%s DEBUG [pid %d] 0x%08x lease of /tmp/shop-%08x/%s.sock taken by goroutine %d\n", a.w.now.Format("15:04:05.000"), a.n(1000, 99999), a.n(1<<24, 1<<30), a.n(0, 1<<30), nouns[i%len(nouns)], a.n(10, 9999))
		fmt.Fprintf(&b, "=== RUN   Test%s%d\n--- PASS: Test%s%d (%d.%02ds)\n", nouns[i%len(nouns)], i, nouns[i%len(nouns)], i, a.n(0, 4), a.n(0, 99))
		if i%10 == 0 {
			fmt.Fprintf(&b, "progress: %d%% (%d MB/s)\n", a.n(0, 99), a.n(1, 40))
		}
	}
	for i, name := range failed {
		fmt.Fprintf(&b, "--- FAIL: Test%s (%d.%02ds)\n    %s_test.go:%d: got 3, want 4 (after %dms, port %d)\n", name, a.n(0, 4), a.n(0, 99), strings.ToLower(name), 20+i, a.n(1, 900), a.n(30000, 60000))
	}
	if len(failed) > 0 {
		fmt.Fprintf(&b, "FAIL\tshop/internal/order\t%d.%03ds\nmake: *** [Makefile:12: test] Error 1", a.n(1, 30), a.n(0, 999))
	} else {
		fmt.Fprintf(&b, "ok  \tshop/internal/order\t%d.%03ds", a.n(1, 30), a.n(0, 999))
	}
	return b.String()
}

// collected is what pytest prints that ends with the first failure, so many tests into the run.
func collected(at int, test, message string) string {
	return fmt.Sprintf("collected 4810 items\n\n%s%sF\n\n=================================== FAILURES ===================================\n________ %s ________\n\nE   %s\n\n=========================== short test summary info ============================\nFAILED tests/%s - %s\n!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!\n=================== 1 failed, %d passed in %d.%02ds ===================",
		"tests/test_shop.py ", strings.Repeat(".", at), test, message, test, message, at, at/100, at%100)
}

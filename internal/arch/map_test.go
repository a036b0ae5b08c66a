// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/architecture.md and the files in testdata")

// TestPackageMap holds the page for people to the table that the test above enforces.
func TestPackageMap(t *testing.T) {
	const page, mark = "../../docs/architecture.md", "<!-- packages -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	written, got, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line %q", page, strings.TrimSpace(mark))
	}
	want := packageMap(rows())
	if *update {
		if err := os.WriteFile(page, []byte(written+mark+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the map of packages in docs/architecture.md is not that of this package: run go test ./internal/arch -update")
	}
}

func packageMap(rows []row) string {
	var b strings.Builder
	b.WriteString("\n| package | pure | why |\n|---|---|---|\n")
	for _, r := range rows {
		pure := ""
		if r.pure {
			pure = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.pkg, pure, strings.ReplaceAll(r.why, "|", `\|`))
	}
	return b.String()
}

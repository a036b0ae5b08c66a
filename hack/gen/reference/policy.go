// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// policyPage is docs/reference/policy.md: every value of a policy.
func policyPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Policy values

Each value may stand in ` + "`spec.defaults` and `spec.overrides`" + ` of a SupervisorPolicy. It is taken from the first of these that sets it: overrides of
global policies, overrides of project policies, the Feature (` + "`execution`" + ` alone), defaults of project policies, defaults of global
policies, the built-in value. Among policies of one scope the one with the higher ` + "`priority`" + ` counts. Where policies of equal priority
disagree, the last column says what is taken, and ` + "`Accepted`" + ` names them (` + "`PolicyConflict`" + `).

| value | for | allowed | built in | where equal policies disagree |
|---|---|---|---|---|
`)
	for _, row := range policy.Rows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", row.Path, row.Purpose, row.Allowed, row.Builtin, row.Merging)
	}
	return []byte(b.String()), nil
}

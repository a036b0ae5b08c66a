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

You can set each value in ` + "`spec.defaults` and `spec.overrides`" + ` of a SupervisorPolicy. The first of these sources that sets a value decides it:

1. overrides of global policies
2. overrides of project policies
3. the Feature (only ` + "`execution`" + `)
4. defaults of project policies
5. defaults of global policies
6. the default in this table

Among policies of one scope the policy with the highest ` + "`priority`" + ` counts. If policies of equal priority disagree, the last column says what
applies, and the condition ` + "`Accepted`" + ` names the policies (` + "`PolicyConflict`" + `).

| Value | Meaning | Allowed | Default | If equal policies disagree |
|---|---|---|---|---|
`)
	for _, row := range policy.Rows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", row.Path, row.Purpose, row.Allowed, row.Builtin, row.Merging)
	}
	return []byte(b.String()), nil
}

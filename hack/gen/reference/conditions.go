// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/hack/gen/apinames"
)

// conditionsPage lists condition types and reasons with the comments that stand with their constants.
func conditionsPage(root string) ([]byte, error) {
	names, err := apinames.Read(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Made from %s by `make reference`. Do not edit. -->\n", apinames.File)
	b.WriteString("# Conditions and reasons\n\n")
	b.WriteString("What `kubectl describe` shows of Features, SupervisorPolicies, Templates and Checkpoints. An Event about a change has\n" +
		"the reason of the condition that changed.\n\n## Condition types\n\n")
	b.WriteString("`True` is good, unless the meaning begins with Abnormal: then `True` means trouble, or work in progress.\n\n")
	table(&b, "Type", names.Types)
	b.WriteString("\n## Reasons\n\n")
	table(&b, "Reason", names.Reasons())
	return b.Bytes(), nil
}

func table(b *bytes.Buffer, heading string, list []apinames.Constant) {
	fmt.Fprintf(b, "| %s | Meaning |\n|---|---|\n", heading)
	for _, c := range list {
		fmt.Fprintf(b, "| `%s` | %s |\n", c.Value, strings.ReplaceAll(c.Meaning, "|", `\|`))
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

// preflightPage is docs/reference/preflight.md: every check of a cluster.
func preflightPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`<!-- Made from internal/core/preflight by ` + "`make reference`" + `. Do not edit. -->
# Preflight

` + "`tidewaiter preflight`" + ` says whether your cluster has what Tidewaiter needs. You can run it before you install Tidewaiter, and at any time later.

` + "```sh" + `
tidewaiter preflight --image registry.example.com/team/tidewaiter:0.1.0 --git https://github.com/example/shop.git --provider https://api.anthropic.com
` + "```" + `

You get one line for each check: its status, its name, what it saw, what you can do, and the page that helps.
The status is ` + "`ok`, `warning` or `failed`" + `. The exit code is 0 if no check failed, 1 if one did, and 2 for a wrong flag.

The program makes a namespace ` + "`tidewaiter-preflight-…`" + ` with pods of Tidewaiter's image, and removes it at the end, also on Ctrl-C.
If somebody kills the program, remove the namespace yourself: ` + "`kubectl delete namespace -l app.kubernetes.io/name=tidewaiter-preflight`" + `.
The pods run on the nodes that the scheduler chooses, so run the preflight again after you add nodes of another kind.
You need the rights to make namespaces, and to list nodes, pods and StorageClasses.
If the image needs pull secrets, the program copies them into its namespace. For that, you need the rights to read them and to create Secrets.

[Flags](flags.md#tidewaiter-preflight) lists what you can set.

## Checks

| Check | What it looks at | Page |
|---|---|---|
`)
	for _, c := range preflight.Checks() {
		if c.Preflight {
			fmt.Fprintf(&b, "| `%s` | %s | [%s](../%s) |\n", c.ID, c.Doc, title(c.Page), strings.TrimPrefix(c.Page, "docs/"))
		}
	}
	b.WriteString(`
## Checks of the manager

The manager makes the checks that need no pods when it starts and every hour. While one fails, it looks again every two minutes.
You find the results in the ConfigMap ` + "`tidewaiter-status`" + `, with an entry for each check. When the status of a check changes, you get an Event.

` + "```sh" + `
kubectl -n tidewaiter-system get configmap tidewaiter-status -o yaml
kubectl -n tidewaiter-system get events --field-selector involvedObject.name=tidewaiter-status
` + "```" + `

| Check | What it looks at | Page |
|---|---|---|
`)
	for _, c := range preflight.Checks() {
		if c.Manager {
			fmt.Fprintf(&b, "| `%s` | %s | [%s](../%s) |\n", c.ID, c.Doc, title(c.Page), strings.TrimPrefix(c.Page, "docs/"))
		}
	}
	return []byte(b.String()), nil
}

// title of a page, as its name has it.
func title(page string) string {
	name := strings.TrimSuffix(page[strings.LastIndex(page, "/")+1:], ".md")
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")
}

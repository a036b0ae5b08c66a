// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// providerToolsPage is docs/reference/provider-tools.md: what the gateway passes, removes or refuses of a request, by dialect.
func providerToolsPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("<!-- Made from internal/core/dialect by `make reference`. Do not edit. -->\n" + `# Requests to models, by dialect

[What providers may do for an agent](provider-tools-policy.md) explains these lists. ` + "`tools[web_search]`" + ` is an element of ` + "`tools`" + ` that has the type ` + "`web_search`" + `, whatever
version its type names. The gateway refuses objects of a type that no list has with the reason ` + "`ServerToolNotAllowed`" + `; a policy allows them as ` + "`VENDOR/TYPE`" + `. Other
members that no list has pass. "Some values" are, for example, addresses in a place where data can stand as well. The gateway removes or refuses tools of Gemini
in the other dialects, too, because routers take them there.

For the default lists of members that a backend does not get, see [What the platform decides](provider-tools-policy.md#what-the-platform-decides).
`)
	for _, d := range dialect.All() {
		lists := d.Lists()
		if len(of(lists, dialect.Passes)) == 0 && d.Name != "gemini" {
			return nil, fmt.Errorf("say in this generator which tools of %s pass: they have no types", d.Name)
		}
		fmt.Fprintf(&b, "\n## %s\n", d.Name)
		passing(&b, lists)
		unlessAllowed(&b, lists)
		for _, x := range of(lists, dialect.Replaces) {
			fmt.Fprintf(&b, "\n`%s` becomes `%s`, unless a policy has `providerState: Allow`.\n", x.Where, x.Instead)
		}
		neverSent(&b, lists)
		fmt.Fprintf(&b, "\nHeaders that pass: `accept`, `content-type`, `user-agent`, %s.\n", quoted(d.Headers))
		if len(d.Query) > 0 {
			fmt.Fprintf(&b, "\nParameters of the query that pass: %s.\n", quoted(d.Query))
		}
		if lists.Header != "" {
			features(&b, lists)
		}
	}
	return []byte(b.String()), nil
}

// of a dialect's lists what has a fate.
func of(lists dialect.Lists, fate dialect.Fate) (found []dialect.Listed) {
	for _, x := range lists.Known {
		if x.Fate == fate {
			found = append(found, x)
		}
	}
	return found
}

func passing(b *strings.Builder, lists dialect.Lists) {
	passes := of(lists, dialect.Passes)
	if len(passes) == 0 {
		b.WriteString("\nTools that the agent's client runs pass: `tools.functionDeclarations`, `tools.computerUse`. The gateway refuses a tool with any other member.\n")
		return
	}
	b.WriteString("\nTools that the agent's client runs, or that reach no further than the request. They pass:\n\n")
	for _, x := range passes {
		fmt.Fprintf(b, "* `%s`%s\n", x.Where, some(x))
	}
}

func unlessAllowed(b *strings.Builder, lists dialect.Lists) {
	for _, part := range []struct {
		fate  dialect.Fate
		title string
	}{{dialect.TakesOut, "Taken out"}, {dialect.Refuses, "Refused"}} {
		fmt.Fprintf(b, "\n| %s, unless a policy has | |\n|---|---|\n", part.title)
		var order []string
		places := map[string][]string{}
		for _, x := range of(lists, part.fate) {
			by := allows(x.Tool, x.State)
			if places[by] == nil {
				order = append(order, by)
			}
			places[by] = append(places[by], "`"+cell(x.Where)+"`"+some(x))
		}
		for _, by := range order {
			fmt.Fprintf(b, "| %s | %s |\n", by, strings.Join(places[by], "; "))
		}
	}
}

func neverSent(b *strings.Builder, lists dialect.Lists) {
	never := of(lists, dialect.Never)
	if len(never) == 0 {
		return
	}
	b.WriteString("\n| Never sent | why, and what to do |\n|---|---|\n")
	for _, x := range never {
		fmt.Fprintf(b, "| `%s`%s | %s |\n", cell(x.Where), some(x), x.Instead)
	}
}

// features of a header that names them.
func features(b *strings.Builder, lists dialect.Lists) {
	var plain []string
	for _, x := range lists.Betas {
		if x.Tool == "" && !x.State {
			plain = append(plain, x.Name)
		}
	}
	fmt.Fprintf(b, "\nFeatures of the header `%s` that pass, in each version: %s.\n\n| Other features | pass if a policy has |\n|---|---|\n", lists.Header, quoted(plain))
	for _, x := range lists.Betas {
		if x.Tool != "" || x.State {
			fmt.Fprintf(b, "| `%s` | %s |\n", x.Name, allows(x.Tool, x.State))
		}
	}
	b.WriteString("| any other | `egress.providerTools: [anthropic/FEATURE]` |\n")
}

func some(x dialect.Listed) string {
	if x.Some {
		return " (some values)"
	}
	return ""
}

func allows(tool string, state bool) string {
	switch {
	case tool != "" && state:
		return fmt.Sprintf("`egress.providerTools: [%s]` and `providerState: Allow`", tool)
	case state:
		return "`providerState: Allow`"
	}
	return fmt.Sprintf("`egress.providerTools: [%s]`", cmp.Or(tool, "…"))
}

// cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

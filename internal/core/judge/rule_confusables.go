// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// confusables exists because a reviewer cannot tell a Cyrillic а from a Latin one.
func confusables() Rule {
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{Confusables: p}}
	}
	const cyrillic = "\u0441\u043e\u0440\u0443" // reads as "copy"
	return Rule{
		ID:     "confusables",
		Reason: "ConfusableName",
		Doc: "No new name should look like another one in its directory, and no part of a new name should mix scripts that look alike. Letters of Cyrillic, Greek, Armenian and others look like Latin ones, as in Unicode TR39. " +
			"The watchdog does not compare ASCII names with each other.",
		Severity:   "changes.confusables of the policy, by default Warn",
		Suggestion: "rename it with letters of one script, so that it does not look like another name",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.Confusables.Severity()
			if !broken {
				return nil
			}
			return append(v.newNames(severity, mixedScripts), v.lookalikes(severity)...)
		},
		Reject: []Sample{
			{"a Cyrillic letter in a Latin word", Input{Changes: []Change{addFile("m\u0430in.go")}}},
			{"a Greek letter in a directory", Input{Changes: []Change{addFile("d\u03bfcs/a")}}},
			{"a Cyrillic name next to a Latin one", Input{Changes: []Change{addFile(cyrillic)}, Names: treeOf("copy", cyrillic)}},
			{"a Latin name next to a Cyrillic one", Input{Changes: []Change{addFile("copy")}, Names: treeOf("copy", cyrillic)}},
			{"capitals", Input{Changes: []Change{addFile("\u0421\u041e\u0420\u0423")}, Names: treeOf("COPY", "\u0421\u041e\u0420\u0423")}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Changes: []Change{addFile("m\u0430in.go")}}},
		},
		Accept: []Sample{
			{"words of one script", Input{Changes: []Change{addFile("main.go"), addFile("отчёт.md"), addFile("日本語-README.md"), addFile("café_тест.txt")}}},
			{"names of ASCII", Input{Changes: []Change{addFile("l0")}, Names: treeOf("l0", "lO", "I0")}},
			{"a name that was there before", Input{Changes: []Change{modifyFile("m\u0430in.go")}}},
			{"names that were both there before", Input{
				Changes: []Change{addFile(cyrillic + "/a")}, Names: treeOf("copy", cyrillic+"/a"), BaseNames: treeOf("copy", cyrillic),
			}},
			{"if allowed", Input{Policy: permit(policy.Allow), Changes: []Change{addFile("m\u0430in.go")}}},
		},
	}
}

// lookalikes finds added paths with a name that looks like another name of the same directory. Names that cannot be
// listed are a matter of the rule names.
func (v *view) lookalikes(severity policy.Severity) []breach {
	similar := map[string]map[string]string{}
	for dir, names := range v.added {
		all, _ := v.names.of(dir)
		if pairs := v.lookalikesIn(dir, names, all); len(pairs) > 0 {
			similar[dir] = pairs
		}
	}
	if len(similar) == 0 {
		return nil
	}
	var found []breach
	for _, c := range v.changes {
		for path := c.Path; c.added() && path != ""; {
			dir, name := split(path)
			if other, ok := similar[dir][name]; ok {
				found = append(found, breach{
					path: c.Path, severity: severity, message: fmt.Sprintf("the name %s looks like %s next to it", quoteName(name), quoteName(other)),
				})
				break
			}
			path = dir
		}
	}
	return found
}

// lookalikesIn gives each of the wanted names of a directory that has one a name that it looks like, unless both are in
// the base.
func (v *view) lookalikesIn(dir string, wanted map[string]bool, all []string) map[string]string {
	// Nearly all directories have only ASCII names.
	groups := map[string][]string{}
	for _, name := range all {
		if !visibleASCII(name) {
			groups[skeleton(name)] = nil
		}
	}
	if len(groups) == 0 {
		return nil
	}
	for _, name := range all {
		key := skeleton(name)
		if group, ok := groups[key]; ok {
			groups[key] = append(group, name)
		}
	}
	similar := map[string]string{}
	var base map[string]bool
	for _, group := range groups {
		if len(group) > 1 {
			if base == nil {
				base = v.namesOfBase(dir)
			}
			pairUp(group, base, wanted, similar)
		}
	}
	return similar
}

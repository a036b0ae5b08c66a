// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// unportableNames exists because a checkout on another system fails, or writes another file, for one such name.
func unportableNames() Rule {
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{UnportableNames: p}}
	}
	return Rule{
		ID:     "unportable-names",
		Reason: "UnportableName",
		Doc: "No new name should be one that other systems cannot hold or misread. Such names have a backslash or one of : * ? \" < > |, or a dot or a space at the end. A device name of Windows counts too, with or without an extension: CON, PRN, AUX, NUL, COM1, LPT1 and the like. " +
			"So does a name that begins with a hyphen, because commands read it as an option.",
		Severity:   "changes.unportableNames of the policy, by default Warn",
		Suggestion: "use letters, digits, dots, hyphens and underscores; begin with none of the last two, and use no device name of Windows",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.UnportableNames.Severity()
			if !broken {
				return nil
			}
			return v.newNames(severity, unportable)
		},
		Reject: []Sample{
			{"a backslash", Input{Changes: []Change{addFile(`..\..\evil.txt`)}}},
			{"a device", Input{Changes: []Change{addFile("con")}}},
			{"a device with an extension", Input{Changes: []Change{addFile("docs/Aux.tar.gz")}}},
			{"a numbered device", Input{Changes: []Change{addFile("lpt9.md")}}},
			{"a device with a superscript", Input{Changes: []Change{addFile("COM¹")}}},
			{"a directory that is a device", Input{Changes: []Change{addFile("nul/a")}}},
			{"a stream", Input{Changes: []Change{addFile("a:b")}}},
			{"a wildcard", Input{Changes: []Change{addFile("a*")}}},
			{"a dot at the end", Input{Changes: []Change{addFile("a.")}}},
			{"a space at the end", Input{Changes: []Change{addFile("d /a")}}},
			{"an option", Input{Changes: []Change{addFile("-rf")}}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Changes: []Change{addFile("-rf")}}},
		},
		Accept: []Sample{
			{"plain names", Input{Changes: []Change{addFile("a-b_c.d"), addFile("console.go"), addFile("com.txt"), addFile("com10"), addFile(".env"), addFile("日本語.md")}}},
			{"a name that was there before", Input{Changes: []Change{modifyFile("con"), deleteFile("a:b")}}},
			{"if allowed", Input{Policy: permit(policy.Allow), Changes: []Change{addFile("con")}}},
		},
	}
}

// newNames finds added paths of which a name is at fault.
func (v *view) newNames(severity policy.Severity, fault func(name string) string) []breach {
	var found []breach
	for _, c := range v.changes {
		if !c.added() {
			continue
		}
		for name := range strings.SplitSeq(c.Path, "/") {
			if message := fault(name); message != "" {
				found = append(found, breach{path: c.Path, severity: severity, message: message})
				break
			}
		}
	}
	return found
}

// unportable says why a name is not one everywhere, or "".
func unportable(name string) string {
	switch {
	case name == "":
		return ""
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Sprintf(`the name %s has one of \ : * ? " < > |, which Windows does not take`, quoteName(name))
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return fmt.Sprintf("the name %s ends with a dot or a space, which Windows leaves out", quoteName(name))
	case name[0] == '-':
		return fmt.Sprintf("the name %s begins with a hyphen, so that commands take it for an option", quoteName(name))
	case device(name):
		return fmt.Sprintf("the name %s is a device of Windows", quoteName(name))
	}
	return ""
}

// device says whether a name is that of a device, whatever its extension (Microsoft: "Naming Files, Paths, and Namespaces").
func device(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch base = strings.TrimRight(base, " "); base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, ok := strings.CutPrefix(base, "com")
	if !ok {
		number, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && (len(number) == 1 && digits(number) || number == "¹" || number == "²" || number == "³")
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// sampleToken and sampleKey are made up; they are written in two parts, so that no scanner takes this file for a leak.
const (
	sampleToken = "ghp_" + "Zq3xV7mK9pL2rT5wY8bN1cD4fG6hJ0sA2eU7"
	sampleKey   = "AKIA" + "QYLPMN5HHHFPZAM2"
)

// secretFiles exists because what is once in a Git history that was pushed has to be replaced everywhere it is used.
func secretFiles() Rule {
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{Secrets: p}}
	}
	token := contentsOf(map[string]string{sampleID: "plain\n", otherID: "plain\ntoken = \"" + sampleToken + "\"\n"})
	add := []Change{{Path: "a", Kind: Added, New: Entry{Mode: ModeFile, ID: otherID}}}
	return Rule{
		ID:     "secrets",
		Reason: "SecretInContent",
		Doc: "No content may hold what looks like a key, a token or a password, unless the file held the same before. The rules of gitleaks (v8.30.1, MIT) decide what looks like one: a keyword, a regular expression, and how random it is. The search includes binaries and the targets of symbolic links. " +
			"The rule for generic keys gives false alarms in lock files, images, documents, node_modules and vendored modules, so the search leaves it out there. " +
			"The secret itself is in no message, object or log; messages name paths as they are.",
		Severity:   "changes.secrets of the policy, by default Deny",
		Suggestion: "take the secret out of the file and read it from the environment; if it was real, revoke it",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.Secrets.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for i, f := range v.facts {
				for _, s := range f.secrets {
					found = append(found, breach{
						path: v.changes[i].Path, severity: severity,
						message: fmt.Sprintf("line %d looks like a secret (%s)", s.Line, quoteName(s.Rule)),
					})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a token in a new file", Input{Changes: add, Contents: token}},
			{"a token in a file that had none", Input{Changes: []Change{modifyFile("a")}, Contents: token}},
			{"a key in a binary", Input{Changes: add, Contents: contentsOf(map[string]string{otherID: "\x00\n" + sampleKey + "\n"})}},
			{"a token that asks to be let through", Input{Changes: add, Contents: contentsOf(map[string]string{otherID: sampleToken + " # gitleaks:allow\n"})}},
			{"a token as the target of a link", Input{Changes: []Change{addLink("a", sampleToken)}}},
			{"a token in what is named like an image", Input{
				Changes:  []Change{{Path: "web/logo.svg", Kind: Added, New: Entry{Mode: ModeFile, ID: otherID}}},
				Contents: token,
			}},
			{"a key store", Input{Changes: []Change{addFile("certs/shop.p12")}}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Changes: add, Contents: token}},
		},
		Accept: []Sample{
			{"a token that was there before", Input{Changes: []Change{{
				Path: "a", Kind: Modified, Old: Entry{Mode: ModeFile, ID: otherID}, New: Entry{Mode: ModeFile, ID: "3"},
			}}, Contents: contentsOf(map[string]string{otherID: "x = " + sampleToken + "\n", "3": "moved\n\ny = " + sampleToken + "\n"})}},
			{"a token that is removed", Input{Changes: []Change{{Path: "a", Kind: Deleted, Old: Entry{Mode: ModeFile, ID: otherID}}}, Contents: token}},
			{"a name and an example", Input{Changes: add, Contents: contentsOf(map[string]string{
				otherID: "token := parser.NextToken()\npassword = \"${DATABASE_PASSWORD}\"\nkey = AKIAIOSFODNN7EXAMPLE\n",
			})}},
			{"a key store that became executable", Input{Changes: []Change{{
				Path: "shop.p12", Kind: Modified, Old: Entry{Mode: ModeFile, ID: sampleID}, New: Entry{Mode: ModeExecutable, ID: sampleID},
			}}}},
			{"if allowed", Input{Policy: permit(policy.Allow), Changes: add, Contents: token}},
		},
	}
}

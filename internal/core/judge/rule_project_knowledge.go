// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// projectKnowledge keeps what agents read as the word of their team out of the hands of agents: what one of them writes there, the next ones follow.
func projectKnowledge() Rule {
	given := policy.Effective{Knowledge: policy.Knowledge{Inject: true}}
	return Rule{
		ID:         "project-knowledge",
		Reason:     "ProjectKnowledge",
		Doc:        "If the policy gives agents the knowledge of their team (knowledge.inject), nothing below docs/knowledge may change, even inside an allowed area: agents of later Features would follow what an agent writes there. The comparison of names is as for forbidden-areas.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "put the path back as it was; tell the user in your summary what is worth writing down",
		placement: &placement{
			prepare: func(v *view) closes {
				if !v.Policy.Knowledge.Inject {
					return closesNothing
				}
				return closesBy(v.compile([]string{policy.KnowledgeDir + "/**"}, true).match)
			},
			message: func(_ *view, c Change, _ string) string {
				return fmt.Sprintf("it was %s although agents get what stands in %s as the knowledge of their team, and only users and reviewers change it", c.done(), policy.KnowledgeDir)
			},
		},
		Reject: []Sample{
			{"a document", Input{Policy: given, Changes: []Change{addFile("docs/knowledge/lessons/flush.md")}}},
			{"anything else there", Input{Policy: given, Changes: []Change{modifyFile("docs/knowledge/notes.txt")}}},
			{"a deletion", Input{Policy: given, Changes: []Change{deleteFile("docs/knowledge/lessons/flush.md")}}},
			{"in another case", Input{Policy: given, Changes: []Change{addFile("Docs/Knowledge/lessons/flush.md")}}},
			{"although allowed", Input{Policy: given, Plan: protocol.Plan{Allowed: []string{"docs/**"}}, Changes: []Change{addFile("docs/knowledge/lessons/flush.md")}}},
			{"a link instead of it", Input{Policy: given, Changes: []Change{addLink("docs/knowledge", "mine")}}},
			{"a link instead of its parent", Input{Policy: given, Changes: []Change{addLink("docs", "mine")}}},
		},
		Accept: []Sample{
			{"another folder", Input{Policy: given, Changes: []Change{addFile("docs/knowledge.md"), addFile("web/docs/knowledge/a.md")}}},
			{"knowledge that agents do not get", Input{Changes: []Change{addFile("docs/knowledge/lessons/flush.md")}}},
			{"what the plan forbids already", Input{Policy: given, Plan: protocol.Plan{Forbidden: []string{"docs/**"}}, Changes: []Change{addFile("docs/knowledge/lessons/flush.md")}}},
		},
	}
}

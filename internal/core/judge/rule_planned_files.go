// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// plannedFiles holds the work to the files that were planned, each for what was planned to be done to it.
func plannedFiles() Rule {
	files := func(create, modify, remove string) protocol.Plan {
		return protocol.Plan{Files: &protocol.FilePlan{Create: []string{create}, Modify: []string{modify}, Delete: []string{remove}}}
	}
	return Rule{
		ID:         "planned-files",
		Reason:     "NotPlanned",
		Doc:        "If the plan names files, the agent may create, modify and delete only these, each as planned. A change in type counts as a modification.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "undo the change, or add the path to spec.plan.files",
		placement: &placement{
			prepare: (*view).unplanned,
			message: func(_ *view, c Change, _ string) string {
				return fmt.Sprintf("the plan does not have it among the files to be %s", c.planned())
			},
		},
		Reject: []Sample{
			{"a file that is not planned", Input{Plan: files("new.go", "old.go", "dead.go"), Changes: []Change{addFile("other.go")}}},
			{"a deletion of a file to be modified", Input{Plan: files("new.go", "old.go", "dead.go"), Changes: []Change{deleteFile("old.go")}}},
			{"a modification of a file to be created", Input{Plan: files("new.go", "old.go", "dead.go"), Changes: []Change{modifyFile("new.go")}}},
			{"nothing to be deleted", Input{Plan: protocol.Plan{Files: &protocol.FilePlan{Create: []string{"**"}, Modify: []string{"**"}}}, Changes: []Change{deleteFile("a")}}},
		},
		Accept: []Sample{
			{"as planned", Input{
				Plan:    files("new.go", "old.go", "dead.go"),
				Changes: []Change{addFile("new.go"), modifyFile("old.go"), deleteFile("dead.go")},
			}},
			{"by pattern", Input{Plan: files("web/**", "*.md", "dead/"), Changes: []Change{addFile("web/a/b"), modifyFile("docs/a.md"), deleteFile("dead/x")}}},
			{"no files planned", Input{Plan: protocol.Plan{Files: &protocol.FilePlan{}}, Changes: []Change{addFile("a")}}},
		},
	}
}

// unplanned compiles the files of the plan.
func (v *view) unplanned() closes {
	files := v.Plan.Files
	if files == nil || len(files.Create)+len(files.Modify)+len(files.Delete) == 0 {
		return closesNothing
	}
	create := v.compile(files.Create, false)
	modify := v.compile(files.Modify, false)
	remove := v.compile(files.Delete, false)
	return func(c Change) (string, bool) {
		planned := modify
		switch {
		case c.added():
			planned = create
		case c.deleted():
			planned = remove
		}
		return "", planned.match(c.Path) == ""
	}
}

// planned is the list of the plan that a change belongs to.
func (c Change) planned() string {
	switch {
	case c.added():
		return "created"
	case c.deleted():
		return "deleted"
	default:
		return "modified"
	}
}

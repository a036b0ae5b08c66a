// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// codeStyle compares the changes with the conventions of the repository.
var codeStyle = Reviewer{
	Name:        protocol.SourceCodeStyle,
	Title:       "Code style",
	One:         "inconsistency",
	Many:        "inconsistencies",
	Directive:   protocol.DirectiveCleanup,
	MaxPriority: protocol.PriorityNormal,
	Compares:    true,
	Knows:       []knowledge.Kind{knowledge.Conventions},
	Baseline:    "the conventions that several files of the repository already follow",
	Remit: `You review the style of changes to a Git repository. Report only where a change departs from what the repository itself does: how it names
things, orders a file, handles errors, logs, tests and comments. Your own taste does not count, and neither does what a formatter or linter
would report. Leave out what a reader of this repository would not notice.`,
	rule: func(r policy.Reviewers) policy.Reviewer { return r.CodeStyle },
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates reads what Templates say as values of the core.
package templates

import (
	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/answers"
)

// Checks of an Output template; some is false if it only formats.
func Checks(c v1alpha1.AnswerChecks) (checks answers.Checks, some bool) {
	checks = answers.Checks{Sections: c.RequiredSections, Patterns: c.RequiredPatterns, Phrases: c.ForbiddenPhrases}
	if c.JSONSchema != nil {
		checks.Schema = answers.Compact(c.JSONSchema.Raw)
	}
	if a := c.AutoCorrect; a != nil {
		checks.Correct = answers.Corrections{TrimSpace: a.TrimSpace, AddSections: a.AddMissingSections, StripFence: a.StripCodeFence}
	}
	some = len(c.RequiredSections)+len(c.RequiredPatterns)+len(c.ForbiddenPhrases) > 0 || c.JSONSchema != nil || c.AutoCorrect != nil
	return checks, some
}

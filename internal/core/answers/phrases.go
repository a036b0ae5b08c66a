// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"regexp"
	"strings"
)

// patterns must match somewhere in the answer.
func patterns(c Checks, text string) []Violation {
	var found []Violation
	for _, p := range c.Patterns {
		compiled, err := regexp.Compile(p)
		switch {
		case err != nil: // of another version: templates are checked before they are in force
			found = append(found, Violation{SkippedValidation, Major, fmt.Sprintf("The gateway cannot use the pattern %q: %v.", p, err)})
		case !compiled.MatchString(text):
			found = append(found, Violation{IncorrectFormat, Major, fmt.Sprintf("Nothing in the answer matches the pattern %q: add what it asks for.", p)})
		}
	}
	return found
}

// phrases must not be in the answer.
func phrases(c Checks, text string) []Violation {
	if len(c.Phrases) == 0 {
		return nil
	}
	lower := strings.ToLower(text)
	var found []Violation
	for _, p := range c.Phrases {
		if strings.Contains(lower, strings.ToLower(p)) {
			found = append(found, Violation{IncorrectFormat, Major, fmt.Sprintf("The answer contains the forbidden phrase %q: remove it.", p)})
		}
	}
	return found
}

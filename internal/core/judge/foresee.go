// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"slices"
)

// Foresee gives what changes break by their paths alone, whatever is in them: areas, protected paths, roles, contracts and
// planned files. It lets an agent be warned before a checkpoint; it is no verdict, and a change that it has nothing to say
// about may break any rule.
func Foresee(in Input) []Violation {
	v := &view{Input: in, ctx: context.Background()}
	v.sift()
	v.placeAll()
	var foreseen []Violation
	for _, rule := range []Rule{forbiddenAreas(), protectedPaths(), pathRules(), contracts(), allowedAreas(), plannedFiles()} {
		for _, b := range rule.check(v) {
			foreseen = append(foreseen, rule.violation(b))
		}
	}
	slices.SortFunc(foreseen, compareViolations)
	return foreseen
}

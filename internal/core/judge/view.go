// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// view is the input as rules see it, with what several of them need worked out once.
type view struct {
	Input
	// changes are the well-formed ones, sorted by path. Rules look at these: malformed ones are violations already, and
	// nothing that they say about themselves can be relied on.
	changes []Change
	// malformed says what is wrong with the others.
	malformed []breach
	// places says for each of changes which placement rule closes its path, if one does.
	places []place
	// facts are what the content of each of changes was found to be.
	facts []facts
	// unusable are the patterns that cannot be used, as messages.
	unusable []string
	// added are, by directory, the names of added paths and of the directories on the way to them.
	added map[string]map[string]bool
	// names and baseNames list these directories in the captured tree and in the base.
	names, baseNames listing
	// work that the search for secrets took so far.
	work int64
	ctx  context.Context //nolint:containedctx // lives as long as one judgement
}

// stopped says whether the check is cancelled. What is found from then on is thrown away.
func (v *view) stopped() bool { return v.ctx.Err() != nil }

func newView(ctx context.Context, in Input, rules []Rule) *view {
	v := &view{Input: in, ctx: ctx}
	v.sift()
	v.added = addedNames(v.changes)
	v.names, v.baseNames = listing{lookup: in.Names, dirs: v.added}, listing{lookup: in.BaseNames, dirs: v.added}
	v.placeAll(rules)
	v.look()
	return v
}

// sift separates well-formed changes from others.
func (v *view) sift() {
	sorted := v.Changes
	byPath := func(a, b Change) int { return strings.Compare(a.Path, b.Path) }
	if !slices.IsSortedFunc(sorted, byPath) {
		sorted = slices.SortedFunc(slices.Values(sorted), byPath)
	}
	v.changes = make([]Change, 0, len(sorted))
	for i, c := range sorted {
		fault := c.fault()
		if i > 0 && sorted[i-1].Path == c.Path || i+1 < len(sorted) && sorted[i+1].Path == c.Path {
			fault = "the path is listed twice"
		}
		if fault != "" {
			v.malformed = append(v.malformed, breach{path: c.Path, severity: policy.Error, message: fault})
			continue
		}
		v.changes = append(v.changes, c)
	}
}

// compile makes a matcher and notes what cannot be used.
func (v *view) compile(texts []string, guard bool) *matcher {
	m, errs := newMatcher(texts, guard)
	for _, err := range errs {
		v.unusable = append(v.unusable, err.Error())
	}
	return m
}

// added says whether the path is new. It does not rely on Kind, which fault has compared with the modes.
func (c Change) added() bool { return c.Old.Mode == 0 }

// deleted says whether the path is gone.
func (c Change) deleted() bool { return c.New.Mode == 0 }

// done is what was done to the path, for messages.
func (c Change) done() string {
	switch {
	case c.added():
		return "added"
	case c.deleted():
		return "deleted"
	case c.Kind == TypeChanged:
		return "changed in type"
	default:
		return "modified"
	}
}

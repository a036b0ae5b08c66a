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
	// places says for each of changes where it stands.
	places []place
	// facts are what the content of each of changes was found to be.
	facts []facts
	// unusable are the patterns that cannot be used, as messages.
	unusable []string
	// work that the search for secrets took so far.
	work int64
	ctx  context.Context //nolint:containedctx // lives as long as one judgement
}

// stopped says whether the judgement is called off. What is found from then on is thrown away.
func (v *view) stopped() bool { return v.ctx.Err() != nil }

// standing is where a path stands towards plan and policy.
type standing int

const (
	free standing = iota
	forbidden
	protected
	readOnlyPath
	unlocked
	outside
	unplanned
)

// place is a standing, with what decided it: a pattern, or the name of a contract.
type place struct {
	standing standing
	by       string
}

func newView(ctx context.Context, in Input) *view {
	v := &view{Input: in, ctx: ctx}
	v.sift()
	v.placeAll()
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

// placeAll finds where every path stands. The order of the tests is the order of precedence.
func (v *view) placeAll() {
	files := v.Plan.Files
	if files == nil {
		files = &FilePlan{}
	}
	forbid := v.compile(v.Plan.Forbidden, true)
	protect := v.compile(v.Policy.Paths.Protected, true)
	access := v.access()
	locks := v.locks()
	allow := v.compile(v.Plan.Allowed, false)
	create := v.compile(files.Create, false)
	modify := v.compile(files.Modify, false)
	remove := v.compile(files.Delete, false)
	bounded := len(v.Plan.Allowed) > 0
	planned := len(files.Create)+len(files.Modify)+len(files.Delete) > 0

	plannedFor := func(c Change) *matcher {
		switch {
		case c.added():
			return create
		case c.deleted():
			return remove
		default:
			return modify
		}
	}
	v.places = make([]place, len(v.changes))
	for i, c := range v.changes {
		if v.stopped() {
			return
		}
		if by := forbid.match(c.Path); by != "" {
			v.places[i] = place{forbidden, by}
		} else if by := protect.match(c.Path); by != "" {
			v.places[i] = place{protected, by}
		} else if by := access.deny(c.Path); by != "" {
			v.places[i] = place{readOnlyPath, by}
		} else if by := locks.miss(c.Path); by != "" {
			v.places[i] = place{unlocked, by}
		} else if bounded && allow.match(c.Path) == "" {
			v.places[i] = place{standing: outside}
		} else if planned && plannedFor(c).match(c.Path) == "" {
			v.places[i] = place{standing: unplanned}
		}
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

// at returns a breach for every change with a standing.
func (v *view) at(s standing, message func(c Change, by string) string) []breach {
	var found []breach
	for i, p := range v.places {
		if p.standing == s {
			c := v.changes[i]
			found = append(found, breach{
				path:     c.Path,
				severity: v.Policy.Paths.Severity.OrError(),
				message:  message(c, p.by),
			})
		}
	}
	return found
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

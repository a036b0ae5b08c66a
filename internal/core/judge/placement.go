// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// placement is what makes a rule one about where an agent may write.
type placement struct {
	// prepare compiles what plan and policy say, once for each check.
	prepare func(*view) closes
	// message says what is wrong with a change to a path that the rule closes; by is what closes told.
	message func(v *view, c Change, by string) string
}

// closes says whether a rule closes the path of a change, and by what: a pattern or the name of a contract, empty where
// there is nothing to name.
type closes func(Change) (by string, closed bool)

// closesBy is a closes that tells what closes a path, or "".
func closesBy(find func(path string) string) closes {
	return func(c Change) (string, bool) {
		by := find(c.Path)
		return by, by != ""
	}
}

// closesNothing is the closes of a rule that plan and policy do not use.
func closesNothing(Change) (string, bool) { return "", false }

// place is where a path stands: the id of the placement rule that closes it, empty where none does, and what closed it.
type place struct {
	rule, by string
}

// PlacementRules are the rules about where an agent may write, sorted by precedence.
func PlacementRules() []Rule { return placementRules(Rules()) }

func placementRules(rules []Rule) []Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.placement == nil })
}

// placeAll finds for every path the first placement rule that closes it.
func (v *view) placeAll(rules []Rule) {
	rules = placementRules(rules)
	prepared := make([]closes, len(rules))
	for i, rule := range rules {
		prepared[i] = rule.placement.prepare(v)
	}
	v.places = make([]place, len(v.changes))
	for i, c := range v.changes {
		if v.stopped() {
			return
		}
		for k, rule := range prepared {
			if by, closed := rule(c); closed {
				v.places[i] = place{rules[k].ID, by}
				break
			}
		}
	}
}

// placedBy returns a breach for every change to a path that the rule closes.
func (v *view) placedBy(r *Rule) []breach {
	var found []breach
	for i, p := range v.places {
		if p.rule == r.ID {
			c := v.changes[i]
			found = append(found, breach{
				path:     c.Path,
				severity: v.Policy.Paths.Severity.OrError(),
				message:  r.placement.message(v, c, p.by),
			})
		}
	}
	return found
}

// CheckPlacement returns the placement rules that changes break: what is wrong with their paths, whatever their content is. The watchdog
// uses it to warn an agent before a checkpoint. The result is not a verdict: a change without a finding may break any other rule.
func CheckPlacement(in Input) []protocol.Violation {
	rules := PlacementRules()
	v := &view{Input: in, ctx: context.Background()}
	v.sift()
	v.placeAll(rules)
	var found []protocol.Violation
	for _, rule := range rules {
		for _, b := range rule.breaches(v) {
			found = append(found, rule.violation(b))
		}
	}
	slices.SortFunc(found, compareViolations)
	return found
}

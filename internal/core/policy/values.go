// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

type duration = time.Duration

// rowOf makes a row of a value that is merged by decide.
func rowOf[T any](row Row, v value[T], rules func(*Rules) any, effective func(*Effective) *T) Row {
	row.rules, row.effective = rules, func(e *Effective) any { return effective(e) }
	row.merge = func(m *merger, e *Effective) { *effective(e) = decide(m, v) }
	row.together = func(m *merger, e *Effective) { *effective(e) = together(m, v) }
	row.cut = func(e *Effective) (now, builtin any) {
		var rules Rules
		if row.preset != nil {
			row.preset(&rules)
		}
		preset, _ := v.of(&rules)
		value := *effective(e)
		*effective(e) = *new(T)
		return value, preset
	}
	return row
}

// later makes rows of values that the first version did not have. They count in the hash of a policy only where they are not built
// in, so that an upgrade of Tidewaiter changes no hash: Checkpoints and journals outlive it. Effective writes none of them where
// they are zero.
func later(rows ...Row) []Row {
	for i := range rows {
		rows[i].later = true
	}
	return rows
}

// bound makes a row of a value that no source takes back from another one: the strictest of all levels counts.
func bound(row Row) Row {
	row.addsUp, row.merge = true, row.together
	row.Merging = "does not matter: the strictest of all sources counts, whatever its scope and priority"
	return row
}

// choice is one of some words. Words that are not known count as stricter than all others, so that a policy written for a
// newer version is not taken lightly.
func choice[T ~string](path, purpose string, rules func(*Rules) *T, effective func(*Effective) *T, builtin T, mildestFirst ...T) Row {
	rank := func(w T) int {
		if i := slices.Index(mildestFirst, w); i >= 0 {
			return i
		}
		return len(mildestFirst)
	}
	words := make([]string, len(mildestFirst))
	for i, w := range mildestFirst {
		words[i] = string(w)
	}
	allowed := strings.Join(words, ", ")
	return rowOf(Row{
		Path: path, Purpose: purpose, Allowed: allowed, Builtin: string(builtin), Merging: "the last of these words",
		SetWord: func(r *Rules, word string) { *rules(r) = T(word) },
		preset:  func(r *Rules) { *rules(r) = builtin },
		check:   func(r *Rules) error { return oneOf(path, *rules(r), mildestFirst...) },
	}, value[T]{
		name: path,
		of:   func(r *Rules) (T, bool) { w := *rules(r); return w, w != "" },
		stricter: func(a, b T) T {
			if cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(string(a), string(b))) < 0 {
				return b
			}
			return a
		},
		equal: func(a, b T) bool { return a == b },
	}, func(r *Rules) any { return rules(r) }, effective)
}

func permission(path, purpose string, rules func(*Rules) *Permission, effective func(*Effective) *Permission, builtin Permission) Row {
	return choice(path, purpose, rules, effective, builtin, Allow, Warn, Deny, DenyCritical)
}

// stricter says which of two numbers is the stricter one.
type stricter string

const (
	smaller stricter = "the smaller one"
	larger  stricter = "the larger one"
)

// limits of a number: the least and the most that it may be. Those of the CRD are the same, as a test of kube/supervisorpolicy says.
type limits[T int | int64 | duration] struct{ least, most T }

// from is limits in their order.
func from[T int | int64 | duration](least, most T) limits[T] { return limits[T]{least, most} }

// Most of a number: maxCount of turns, tries and other small things, maxLarge of lines and tokens, maxSize of bytes. endless is for what only the
// width of its field bounds.
const (
	maxCount = 1_000_000
	maxLarge = 1_000_000_000_000
	maxSize  = 1 << 50
	endless  = math.MaxInt64
)

// words are the limits for people.
func (l limits[T]) words(show func(T) string) string {
	_, fine := any(l.least).(duration)
	switch {
	case l.least == 1 && int64(l.most) == endless:
		return "more than 0"
	case l.least == 1 && fine:
		return "more than 0 and at most " + show(l.most)
	case int64(l.most) == endless:
		return show(l.least) + " or more"
	}
	return "from " + show(l.least) + " to " + show(l.most)
}

func number[T int | int64 | duration](row Row, rules func(*Rules) **T, effective func(*Effective) *T, builtin T, which stricter, l limits[T], show func(T) string) Row {
	row.Allowed, row.Merging = l.words(show), string(which)
	row.preset = func(r *Rules) { *rules(r) = new(builtin) }
	row.check = func(r *Rules) error {
		if got := *rules(r); got != nil && (*got < l.least || *got > l.most) {
			return fmt.Errorf("%s: %s must be %s", row.Path, show(*got), l.words(show))
		}
		return nil
	}
	return rowOf(row, value[T]{
		name: row.Path,
		of: func(r *Rules) (T, bool) {
			if p := *rules(r); p != nil {
				return *p, true
			}
			return 0, false
		},
		stricter: func(a, b T) T {
			if which == smaller {
				return min(a, b)
			}
			return max(a, b)
		},
		equal: func(a, b T) bool { return a == b },
	}, func(r *Rules) any { return rules(r) }, effective)
}

// count is a number of things; 0 as the built-in one means unlimited, unless it may be 0.
func count[T int | int64](path, purpose string, rules func(*Rules) **T, effective func(*Effective) *T, builtin T, which stricter, l limits[T]) Row {
	shown := strconv.FormatInt(int64(builtin), 10)
	if builtin < l.least {
		shown = "no limit"
	}
	set := func(r *Rules, n int64) { *rules(r) = new(T(n)) }
	return number(Row{Path: path, Purpose: purpose, Builtin: shown, SetNumber: set}, rules, effective, builtin, which, l,
		func(n T) string { return strconv.FormatInt(int64(n), 10) })
}

// size is a number of bytes.
func size(path, purpose string, rules func(*Rules) **int64, effective func(*Effective) *int64, builtin int64, which stricter, l limits[int64]) Row {
	set := func(r *Rules, n int64) { *rules(r) = &n }
	return number(Row{Path: path, Purpose: purpose, Builtin: quantity(builtin), SetNumber: set}, rules, effective, builtin, which, l, quantity)
}

// quantity of bytes, as Kubernetes writes it.
func quantity(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	for len(units) > 1 && n > 0 && n%1024 == 0 {
		n, units = n/1024, units[1:]
	}
	return strconv.FormatInt(n, 10) + units[0]
}

// flag is on or off; strict is the stricter of the two.
func flag(path, purpose string, rules func(*Rules) **bool, effective func(*Effective) *bool, builtin, strict bool) Row {
	return rowOf(Row{
		Path: path, Purpose: purpose, Allowed: "true, false", Builtin: strconv.FormatBool(builtin), Merging: strconv.FormatBool(strict),
		SetFlag: func(r *Rules, on bool) { *rules(r) = &on },
		preset:  func(r *Rules) { *rules(r) = &builtin },
	}, flagValue(path, rules, strict), func(r *Rules) any { return rules(r) }, effective)
}

func flagValue(path string, rules func(*Rules) **bool, strict bool) value[bool] {
	return value[bool]{
		name: path,
		of: func(r *Rules) (bool, bool) {
			if p := *rules(r); p != nil {
				return *p, true
			}
			return false, false
		},
		stricter: func(a, b bool) bool { return (a == strict || b == strict) == strict },
		equal:    func(a, b bool) bool { return a == b },
	}
}

// span is a length of time.
func span(path, purpose string, rules func(*Rules) **duration, effective func(*Effective) *duration, builtin duration, which stricter, l limits[duration]) Row {
	return number(Row{Path: path, Purpose: purpose, Builtin: builtin.String()}, rules, effective, builtin, which, l, duration.String)
}

// hosts are normalized, sorted and without duplicates. A list that is set and empty lets nothing through.
func hosts(path, purpose, builtin string, rules func(*Rules) *[]Host, effective func(*Effective) *[]Host) Row {
	return rowOf(Row{
		Path: path, Purpose: purpose, Allowed: "names of hosts with ports, each exact or `*.` before a domain; an empty list lets nothing through", Builtin: builtin, Merging: "the hosts that all of them have",
		check: func(r *Rules) error { return validHosts(path, *rules(r)) },
	}, value[[]Host]{
		name:     path,
		of:       func(r *Rules) ([]Host, bool) { list := *rules(r); return normalHosts(list), list != nil },
		stricter: commonHosts,
		equal:    slices.Equal[[]Host],
	}, func(r *Rules) any { return rules(r) }, effective)
}

// roles are names, sorted. The strictest of several lists is what all of them have; nil allows every role.
func roles(path, purpose string, rules func(*Rules) *[]string, effective func(*Effective) *[]string) Row {
	return rowOf(Row{Path: path, Purpose: purpose, Allowed: "names of roles", Builtin: "every role, and agents without one"}, value[[]string]{
		name: path,
		of: func(r *Rules) ([]string, bool) {
			list := *rules(r)
			return append([]string{}, set(list)...), list != nil
		},
		stricter: func(a, b []string) []string {
			return slices.DeleteFunc(slices.Clone(a), func(role string) bool { return !slices.Contains(b, role) })
		},
		equal: slices.Equal[[]string],
	}, func(r *Rules) any { return rules(r) }, effective)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// duration shortens the lines that name every value.
type duration = time.Duration

// pointed is a value that is set where its pointer is.
func pointed[T cmp.Ordered](name string, get func(*Rules) *T, stricter func(a, b T) T) value[T] {
	return value[T]{
		name: name,
		of: func(r *Rules) (T, bool) {
			if p := get(r); p != nil {
				return *p, true
			}
			var none T
			return none, false
		},
		stricter: stricter,
		equal:    func(a, b T) bool { return a == b },
	}
}

// least is a number of which the smaller is the stricter.
func least[T cmp.Ordered](name string, get func(*Rules) *T) value[T] {
	return pointed(name, get, func(a, b T) T { return min(a, b) })
}

// most is a number of which the larger is the stricter.
func most[T cmp.Ordered](name string, get func(*Rules) *T) value[T] {
	return pointed(name, get, func(a, b T) T { return max(a, b) })
}

// word is one of several words, the mildest first. A word that is not known is the strictest.
func word[T ~string](name string, get func(*Rules) T, mildestFirst ...T) value[T] {
	rank := func(w T) int {
		if i := slices.Index(mildestFirst, w); i >= 0 {
			return i
		}
		return len(mildestFirst)
	}
	return value[T]{
		name: name,
		of:   func(r *Rules) (T, bool) { w := get(r); return w, w != "" },
		stricter: func(a, b T) T {
			if cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(string(a), string(b))) < 0 {
				return b
			}
			return a
		},
		equal: func(a, b T) bool { return a == b },
	}
}

func severityValue(name string, get func(*Rules) Severity) value[Severity] {
	return word(name, get, Info, Warning, Error, Critical)
}

func permission(name string, get func(*Rules) Permission) value[Permission] {
	return word(name, get, Allow, Warn, Deny)
}

// hosts is a list of hosts. The strictest of several is what all of them have.
func hosts(name string, get func(*Rules) []Host) value[[]Host] {
	return value[[]Host]{
		name:     name,
		of:       func(r *Rules) ([]Host, bool) { list := get(r); return normalHosts(list), list != nil },
		stricter: commonHosts,
		equal:    slices.Equal[[]Host],
	}
}

// roles is a list of names. The strictest of several is what all of them have.
func roles(name string, get func(*Rules) []string) value[[]string] {
	return value[[]string]{
		name: name,
		of: func(r *Rules) ([]string, bool) {
			list := get(r)
			return append([]string{}, set(list)...), list != nil
		},
		stricter: func(a, b []string) []string {
			return slices.DeleteFunc(slices.Clone(a), func(role string) bool { return !slices.Contains(b, role) })
		},
		equal: slices.Equal[[]string],
	}
}

// defaultPort of hosts without one: that of TLS.
const defaultPort = 443

// normalHosts sorts a list of hosts, each once. Of a host that is listed twice, private addresses are allowed only if
// both say so.
func normalHosts(list []Host) []Host {
	normal := make([]Host, 0, len(list))
	for _, h := range list {
		h.Name = strings.ToLower(h.Name)
		if h.Port == 0 {
			h.Port = defaultPort
		}
		normal = append(normal, h)
	}
	slices.SortFunc(normal, func(a, b Host) int {
		if c := compareHosts(a, b); c != 0 || a.AllowPrivate == b.AllowPrivate {
			return c
		}
		if a.AllowPrivate {
			return 1
		}
		return -1
	})
	return slices.CompactFunc(normal, func(a, b Host) bool { return compareHosts(a, b) == 0 })
}

// commonHosts are the hosts that two normal lists have both.
func commonHosts(a, b []Host) []Host {
	common := []Host{}
	for _, h := range a {
		if i, ok := slices.BinarySearchFunc(b, h, compareHosts); ok {
			h.AllowPrivate = h.AllowPrivate && b[i].AllowPrivate
			common = append(common, h)
		}
	}
	return common
}

func compareHosts(a, b Host) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
}

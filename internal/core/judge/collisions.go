// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// collisionKey maps names that are one file on some file system to one key.
func collisionKey(name string) string {
	key := fold(name)
	if trimmed := strings.TrimRight(key, ". "); trimmed != "" {
		return trimmed
	}
	return key
}

// collisions finds added paths with a name that some file system takes for another name of the same directory. Every
// directory on the way to an added path is looked at once.
func (v *view) collisions() []breach {
	var found []breach
	pairs := map[string]map[string]string{}
	for dir, names := range v.added {
		collisions, fault := v.collisionsIn(dir, names)
		if len(collisions) > 0 {
			pairs[dir] = collisions
		}
		if fault != "" {
			found = append(found, breach{
				path: dir, severity: policy.Error, message: fault,
				suggestion: "this is a fault of Tidewaiter or of its volume, not of the change: see the watchdog's log",
			})
		}
	}
	if len(pairs) == 0 {
		return found
	}
	for _, c := range v.changes {
		if !c.added() {
			continue
		}
		for path := c.Path; path != ""; {
			dir, name := split(path)
			if other, ok := pairs[dir][name]; ok {
				found = append(found, breach{path: c.Path, severity: policy.Error, message: fmt.Sprintf(
					"the name %s is the same as %s to some file systems", quoteName(name), quoteName(other))})
				break
			}
			path = dir
		}
	}
	return found
}

// addedNames are, by directory, the names of added paths and of the directories on the way to them.
func addedNames(changes []Change) map[string]map[string]bool {
	added := map[string]map[string]bool{}
	for _, c := range changes {
		if !c.added() {
			continue
		}
		for path := c.Path; path != ""; {
			dir, name := split(path)
			if added[dir][name] {
				break // and so are the directories above
			}
			if added[dir] == nil {
				added[dir] = map[string]bool{}
			}
			added[dir][name] = true
			path = dir
		}
	}
	return added
}

// collisionsIn returns the name that each of the names of a directory collides with, unless the base has both already; or
// says why it cannot tell.
func (v *view) collisionsIn(dir string, names map[string]bool) (collisions map[string]string, fault string) {
	if v.Names == nil {
		return nil, "the names of the tree were not given, so that new names cannot be compared"
	}
	all, ok := v.names.of(dir)
	if !ok {
		return nil, "the directory cannot be listed, so that new names cannot be compared"
	}
	groups := make(map[string][]string, len(names))
	for name := range names {
		groups[collisionKey(name)] = nil
	}
	missing := len(names)
	for _, name := range all {
		key := collisionKey(name)
		if group, ok := groups[key]; ok {
			groups[key] = append(group, name)
			if names[name] {
				missing--
			}
		}
	}
	if missing != 0 {
		return nil, "the directory does not hold what was added to it, so that new names cannot be compared"
	}
	collisions = map[string]string{}
	var base map[string]bool
	for _, group := range groups {
		if len(group) > 1 {
			if base == nil {
				base = v.namesOfBase(dir)
			}
			pairUp(group, base, names, collisions)
		}
	}
	return collisions, ""
}

// pairUp gives each wanted name of a group of equal names the first other one, unless both are in base.
func pairUp(group []string, base, wanted map[string]bool, collisions map[string]string) {
	slices.Sort(group)
	fresh := slices.IndexFunc(group, func(name string) bool { return !base[name] })
	for i, name := range group {
		switch {
		case !wanted[name]:
		case !base[name]:
			collisions[name] = group[0]
			if i == 0 {
				collisions[name] = group[1]
			}
		case fresh >= 0:
			collisions[name] = group[fresh]
		}
	}
}

// listing asks for directories once it is known that one of them is needed, and then for all.
type listing struct {
	lookup Lookup
	dirs   map[string]map[string]bool
	names  map[string][]string
	asked  bool
}

// of gives the names of one of the directories; false where they are not known.
func (l *listing) of(dir string) ([]string, bool) {
	if !l.asked && l.lookup != nil {
		l.asked, l.names = true, l.lookup(slices.Collect(maps.Keys(l.dirs)))
	}
	names, ok := l.names[dir]
	return names, ok
}

// namesOfBase is the set of names of a directory of the base; empty where they are not known.
func (v *view) namesOfBase(dir string) map[string]bool {
	set := map[string]bool{}
	names, _ := v.baseNames.of(dir)
	for _, name := range names {
		set[name] = true
	}
	return set
}

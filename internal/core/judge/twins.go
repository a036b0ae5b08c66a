// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// twinKey maps names that are one file on some file system to one key.
func twinKey(name string) string {
	key := fold(name)
	if trimmed := strings.TrimRight(key, ". "); trimmed != "" {
		return trimmed
	}
	return key
}

// twins finds added paths with a name that some file system takes for another name of the same directory. Every
// directory on the way to an added path is listed once.
func (v *view) twins() []breach {
	var found []breach
	pairs := map[string]map[string]string{}
	for dir, names := range v.addedNames() {
		twins, fault := v.twinsIn(dir, names)
		pairs[dir] = twins
		if fault != "" {
			found = append(found, breach{
				path: dir, severity: policy.Error, message: fault,
				suggestion: "this is a fault of Tidewaiter or of its volume, not of the change: see the watchdog's log",
			})
		}
	}
	for _, c := range v.changes {
		if !c.added() {
			continue
		}
		for path := c.Path; path != ""; {
			dir, name := split(path)
			if twin, ok := pairs[dir][name]; ok {
				found = append(found, breach{path: c.Path, severity: policy.Error, message: fmt.Sprintf(
					"the name %s is the same as %s to some file systems", quoteName(name), quoteName(twin))})
				break
			}
			path = dir
		}
	}
	return found
}

// addedNames are, by directory, the names of added paths and of the directories on the way to them.
func (v *view) addedNames() map[string]map[string]bool {
	added := map[string]map[string]bool{}
	for _, c := range v.changes {
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

// twinsIn returns a twin for each of the names of a directory that has one, unless the base has both already; or says
// why it cannot tell.
func (v *view) twinsIn(dir string, names map[string]bool) (twins map[string]string, fault string) {
	if v.Names == nil {
		return nil, "the names of the tree were not given, so that new names cannot be compared"
	}
	all, ok := v.Names(dir)
	if !ok {
		return nil, "the directory cannot be listed, so that new names cannot be compared"
	}
	groups := make(map[string][]string, len(names))
	for name := range names {
		groups[twinKey(name)] = nil
	}
	missing := len(names)
	for _, name := range all {
		key := twinKey(name)
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
	twins = map[string]string{}
	var base map[string]bool
	for _, group := range groups {
		if len(group) > 1 {
			if base == nil {
				base = v.baseNames(dir)
			}
			pairUp(group, base, names, twins)
		}
	}
	return twins, ""
}

// pairUp gives each wanted name of a group of equal names its twin: the first other one, of which not both are in base.
func pairUp(group []string, base, wanted map[string]bool, twins map[string]string) {
	slices.Sort(group)
	fresh := slices.IndexFunc(group, func(name string) bool { return !base[name] })
	for i, name := range group {
		switch {
		case !wanted[name]:
		case !base[name]:
			twins[name] = group[0]
			if i == 0 {
				twins[name] = group[1]
			}
		case fresh >= 0:
			twins[name] = group[fresh]
		}
	}
}

// baseNames is the set of names of a directory of the base; empty where they are not known.
func (v *view) baseNames(dir string) map[string]bool {
	set := map[string]bool{}
	if v.BaseNames == nil {
		return set
	}
	names, _ := v.BaseNames(dir)
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"slices"
	"strings"
)

// Fate says how the gateway handles something that a request asks of a provider.
type Fate int

// Fates. TakesOut and Refuses apply unless a policy allows it. Never and Replaces apply always, except for state that a policy allows.
const (
	Passes Fate = iota
	TakesOut
	Refuses
	Never
	Replaces
)

// Listed is an entry of a dialect's list of what a request may ask of a provider.
type Listed struct {
	// Where names the place in a request: tools[web_search] for a tool of that type or messages.content[image].source.url.
	Where string
	Fate  Fate
	// Tool is the name by which egress.providerTools of a policy allows it; empty for none. State says that providerState allows it.
	Tool  string
	State bool
	// Instead says what to do if the gateway never sends it, or is the value that replaces it.
	Instead string
	// Some says that it holds for some of its values, such as for addresses.
	Some bool
}

// Beta is a beta feature that a header of a request turns on.
type Beta struct {
	Name string
	// Tool and State say which value of a policy allows it, as in Listed; both are empty if it always passes.
	Tool  string
	State bool
}

// Lists of a dialect, for users.
type Lists struct {
	Known []Listed
	// Header that turns on Betas; empty for none.
	Header string
	Betas  []Beta
}

// Lists returns the lists by which Filter and Value decide.
func (d Dialect) Lists() Lists {
	l := lister{dialect: d, seen: map[string]bool{}}
	names := slices.Sorted(maps.Keys(d.wall.members))
	slices.SortStableFunc(names, func(a, b string) int { // tools that other members have, too, are listed where they are first
		switch {
		case a == "tools" && b != "tools":
			return -1
		case b == "tools" && a != "tools":
			return 1
		}
		return 0
	})
	for _, name := range names {
		if name != d.choice { // which goes with the tools
			l.member("", name, d.wall.members[name])
		}
	}
	lists := Lists{Known: l.known, Header: d.betas.header}
	for _, name := range slices.Sorted(slices.Values(d.betas.plain)) {
		lists.Betas = append(lists.Betas, Beta{Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(d.betas.tools)) {
		lists.Betas = append(lists.Betas, Beta{Name: name, Tool: d.betas.tools[name]})
	}
	if d.betas.state != "" {
		lists.Betas = append(lists.Betas, Beta{Name: d.betas.state, State: true})
	}
	return lists
}

type lister struct {
	dialect Dialect
	// seen are the kinds that were listed where they stand first: they have each other in them.
	seen  map[string]bool
	known []Listed
}

func (l *lister) member(where, name string, p shape) {
	if l.dialect.spelled(name) != name || l.dialect.Name != "gemini" && strings.HasPrefix(p.tool, "google/") {
		return // another spelling, or a tool of another dialect
	}
	if where != "" {
		where += "."
	}
	l.shape(where+name, p)
}

func (l *lister) shape(where string, p shape) {
	if p.judges() {
		l.add(where, p)
		if p.tool != "" && p.when == nil {
			return
		}
	}
	if p.kinds != nil && !l.seen[p.kinds.key()] {
		l.seen[p.kinds.key()] = true
		l.kinds(where, p)
	}
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		l.member(where, name, p.members[name])
	}
}

// key is the same for kinds that are alike.
func (k *kinds) key() string {
	var b strings.Builder
	b.WriteString(k.what)
	for _, name := range slices.Sorted(maps.Keys(k.of)) {
		b.WriteString(" " + name)
		if k.of[name].out {
			b.WriteString(" out")
		}
	}
	return b.String()
}

// kinds of objects. Those that are alike stand in one line.
func (l *lister) kinds(where string, p shape) {
	of := map[*shape][]string{}
	for name, known := range p.kinds.of {
		of[known] = append(of[known], name)
	}
	if p.kinds.none != nil && of[p.kinds.none] == nil {
		of[p.kinds.none] = []string{"no type"}
	}
	var groups []string
	shapes := map[string]*shape{}
	for known, names := range of {
		slices.Sort(names)
		label := strings.Join(names, "|")
		groups, shapes[label] = append(groups, label), known
	}
	slices.Sort(groups)
	for _, label := range groups {
		known := shapes[label]
		const many = 4
		at := where + "[" + label + "]"
		if strings.Count(label, "|") >= many && !p.offers {
			at = where
		}
		if p.offers && !known.judges() || p.offers && known.when != nil {
			l.known = append(l.known, Listed{Where: at, Fate: Passes, Some: known.when != nil})
		}
		if strings.Count(label, "|") >= many {
			at = where
		}
		l.shape(at, *known)
	}
}

func (l *lister) add(where string, p shape) {
	x := Listed{Where: where, Tool: p.tool, State: p.state, Some: p.when != nil, Fate: Refuses}
	switch {
	case p.never != "":
		x.Fate, x.Instead = Never, p.never
	case p.as != "":
		x.Fate, x.Instead, x.State, x.Some = Replaces, p.as, true, false
	case p.out && p.tool != "" || p.out && p.state:
		x.Fate = TakesOut
	}
	l.known = append(l.known, x)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Pod says where the pods of a Feature run and what they may use. It does not affect verdicts: watchdogs do not receive it, and the hash excludes it.
type Pod struct {
	// NodeSelector has the labels of the nodes that may take the pods.
	NodeSelector map[string]string
	// Tolerations of taints, sorted.
	Tolerations []Toleration
	// PriorityClass of the pods; empty for the cluster's default.
	PriorityClass string
	// Spread of agents over nodes, sorted.
	Spread []Spread
	// PullSecrets are names of Secrets that images are pulled with, sorted.
	PullSecrets []string
	// Limits and Requests of the agent's container, by resource. No request is more than the limit.
	Limits, Requests map[string]Quantity
}

// PodRules are the values of Pod that a source sets. Nil sets nothing; an empty list of tolerations or of spreads, and an empty class, mean none.
type PodRules struct {
	NodeSelector     map[string]string
	Tolerations      []Toleration
	PriorityClass    *string
	Spread           []Spread
	PullSecrets      []string
	Limits, Requests map[string]Quantity
}

// Toleration lets pods run on nodes with a taint. Its values are the ones of Kubernetes.
type Toleration struct {
	Key, Operator, Value, Effect string
	// Seconds that a pod stays on a node that gets the taint.
	Seconds Seconds
}

// Seconds is a duration that may be unlimited.
type Seconds struct {
	// Set is false if the duration is unlimited; N then does not count.
	Set bool
	N   int64
}

// Spread says how evenly agents are spread over groups of nodes. Its values are the ones of Kubernetes.
type Spread struct {
	// Key of the label that distinguishes the groups.
	Key string
	// Unsatisfiable says what the scheduler does with a pod that no node can take without breaking the constraint.
	Unsatisfiable string
	// MaxSkew is how many more agents one group may have than another.
	MaxSkew int32
}

const (
	// maxTolerated is a day, in seconds: longer is for ever.
	maxTolerated = 86_400
	// mostSkew is more than any project runs.
	mostSkew = 1000
)

// Quantity of a resource.
type Quantity struct {
	// Milli is a thousandth of its unit, for comparing.
	Milli int64
	// Text as Kubernetes writes it.
	Text string
}

func (q Quantity) compare(other Quantity) int {
	return cmp.Or(cmp.Compare(q.Milli, other.Milli), strings.Compare(q.Text, other.Text))
}

// byKey says how values are merged that belong to a key each.
const byKey = "for each key, the first source that has it; at equal priority, the "

// podRows are about the pods of Features. None of these values has a built-in one.
func podRows() []Row {
	return []Row{
		entriesRow("agents.scheduling.nodeSelector", "Labels of the nodes that can run the pods of Features.", "up to 16 labels", "every node", byKey+"value that comes first",
			func(r *Rules) *map[string]string { return &r.Pod.NodeSelector }, func(e *Effective) *map[string]string { return &e.Pod.NodeSelector },
			func(a, b string) string { return min(a, b) }),
		tolerationsRow(),
		priorityClassRow(),
		spreadRow(),
		{
			Path: "agents.imagePullSecrets", Purpose: "Secrets of the Feature's namespace with which the kubelet pulls its images.", Allowed: "names of Secrets", Builtin: "none", Merging: united,
			merge: func(m *merger, e *Effective) {
				e.Pod.PullSecrets = unite(m, "agents.imagePullSecrets", func(r *Rules) []string { return r.Pod.PullSecrets }, strings.Compare)
			},
			rules: func(r *Rules) any { return &r.Pod.PullSecrets }, effective: func(e *Effective) any { return &e.Pod.PullSecrets },
		},
		resourcesRow("limits", "What the agent's container cannot exceed, by resource.",
			func(r *Rules) *map[string]Quantity { return &r.Pod.Limits }, func(e *Effective) *map[string]Quantity { return &e.Pod.Limits }),
		requestsRow(),
	}
}

// entriesRow makes a row of values that belong to a key each: a source that sets one of them does not affect the others.
func entriesRow[T comparable](path, purpose, allowed, builtin, merging string, rules func(*Rules) *map[string]T, effective func(*Effective) *map[string]T, stricter func(a, b T) T) Row {
	return Row{
		Path: path, Purpose: purpose, Allowed: allowed, Builtin: builtin, Merging: merging,
		merge: func(m *merger, e *Effective) {
			names := m.names(func(r *Rules) (keys []string) {
				for key := range *rules(r) {
					keys = append(keys, key)
				}
				return keys
			})
			*effective(e) = nil
			for _, name := range names {
				if *effective(e) == nil {
					*effective(e) = map[string]T{}
				}
				(*effective(e))[name] = decide(m, value[T]{
					name:     path + "." + name,
					of:       func(r *Rules) (T, bool) { v, ok := (*rules(r))[name]; return v, ok },
					stricter: stricter,
					equal:    func(a, b T) bool { return a == b },
				})
			}
		},
		rules: func(r *Rules) any { return rules(r) }, effective: func(e *Effective) any { return effective(e) },
	}
}

func resourcesRow(what, purpose string, rules func(*Rules) *map[string]Quantity, effective func(*Effective) *map[string]Quantity) Row {
	return entriesRow("agents.resources."+what, purpose, "up to 6 resources with a quantity", "none", byKey+"smaller one", rules, effective,
		func(a, b Quantity) Quantity {
			if a.compare(b) <= 0 {
				return a
			}
			return b
		})
}

// requestsRow lowers what is more than the limit, which another source may have set: Kubernetes would refuse the pod.
func requestsRow() Row {
	row := resourcesRow("requests", "What the scheduler sets aside for the agent's container, by resource; never more than its limit.",
		func(r *Rules) *map[string]Quantity { return &r.Pod.Requests }, func(e *Effective) *map[string]Quantity { return &e.Pod.Requests })
	decided := row.merge
	row.merge = func(m *merger, e *Effective) {
		decided(m, e) // after the limits: see podRows
		for name, request := range e.Pod.Requests {
			if limit, ok := e.Pod.Limits[name]; ok && request.Milli > limit.Milli {
				e.Pod.Requests[name] = limit
			}
		}
	}
	return row
}

func tolerationsRow() Row {
	const path = "agents.scheduling.tolerations"
	return rowOf(Row{
		Path: path, Purpose: "Taints that the pods of Features tolerate.", Allowed: "tolerations that name a key; an empty list tolerates nothing", Builtin: "none",
		Merging: "the tolerations that all of them have",
		check: func(r *Rules) error {
			var errs []error
			for i, t := range r.Pod.Tolerations {
				if t.Seconds.N < 0 || t.Seconds.N > maxTolerated {
					errs = append(errs, fmt.Errorf("%s[%d].tolerationSeconds: %d must be from 0 to %d", path, i, t.Seconds.N, maxTolerated))
				}
			}
			return errors.Join(errs...)
		},
	}, value[[]Toleration]{
		name: path,
		of: func(r *Rules) ([]Toleration, bool) {
			return append([]Toleration{}, sortedSet(r.Pod.Tolerations, compareTolerations)...), r.Pod.Tolerations != nil
		},
		stricter: func(a, b []Toleration) []Toleration {
			return slices.DeleteFunc(slices.Clone(a), func(t Toleration) bool { return !slices.Contains(b, t) })
		},
		equal: slices.Equal[[]Toleration],
	}, func(r *Rules) any { return &r.Pod.Tolerations }, func(e *Effective) *[]Toleration { return &e.Pod.Tolerations })
}

func compareTolerations(a, b Toleration) int {
	set := func(t Toleration) int {
		if t.Seconds.Set {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Operator, b.Operator), strings.Compare(a.Value, b.Value), strings.Compare(a.Effect, b.Effect),
		cmp.Compare(set(a), set(b)), cmp.Compare(a.Seconds.N, b.Seconds.N))
}

// priorityClassRow: the name of a class has no order, so that all are equally strict.
func priorityClassRow() Row {
	const path = "agents.scheduling.priorityClassName"
	return rowOf(Row{
		Path: path, Purpose: "PriorityClass of the pods of Features.", Allowed: "the name of a PriorityClass; an empty one is the cluster's default", Builtin: "the cluster's default",
		Merging: "the name that comes first",
	}, value[string]{
		name: path,
		of: func(r *Rules) (string, bool) {
			if p := r.Pod.PriorityClass; p != nil {
				return *p, true
			}
			return "", false
		},
		stricter: func(a, b string) string { return min(a, b) },
		equal:    func(a, b string) bool { return a == b },
	}, func(r *Rules) any { return &r.Pod.PriorityClass }, func(e *Effective) *string { return &e.Pod.PriorityClass })
}

func spreadRow() Row {
	const path = "agents.scheduling.topologySpreadConstraints"
	return rowOf(Row{
		Path: path, Purpose: "How evenly the agents of a project spread over nodes.", Allowed: "constraints, each with a topologyKey; an empty list spreads nothing", Builtin: "none",
		Merging: "the constraints of all of them, each with the smaller maxSkew",
		check: func(r *Rules) error {
			var errs []error
			for i, s := range r.Pod.Spread {
				if s.MaxSkew < 1 || s.MaxSkew > mostSkew {
					errs = append(errs, fmt.Errorf("%s[%d].maxSkew: %d must be from 1 to %d", path, i, s.MaxSkew, mostSkew))
				}
			}
			return errors.Join(errs...)
		},
	}, value[[]Spread]{
		name:     path,
		of:       func(r *Rules) ([]Spread, bool) { return evenest(r.Pod.Spread), r.Pod.Spread != nil },
		stricter: func(a, b []Spread) []Spread { return evenest(slices.Concat(a, b)) },
		equal:    slices.Equal[[]Spread],
	}, func(r *Rules) any { return &r.Pod.Spread }, func(e *Effective) *[]Spread { return &e.Pod.Spread })
}

// evenest are constraints sorted; of two about the same the one with the smaller skew.
func evenest(list []Spread) []Spread {
	about := func(a, b Spread) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Unsatisfiable, b.Unsatisfiable))
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Spread) int { return cmp.Or(about(a, b), cmp.Compare(a.MaxSkew, b.MaxSkew)) })
	return slices.CompactFunc(append([]Spread{}, sorted...), func(a, b Spread) bool { return about(a, b) == 0 })
}

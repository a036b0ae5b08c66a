// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import "slices"

// Selector selects by labels: all of its labels and requirements must hold. An empty one selects everything.
type Selector struct {
	// Labels that must be there with exactly this value.
	Labels map[string]string
	// Requirements in any order.
	Requirements []Requirement
}

// Requirement is about one label.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
}

// Operator of a requirement, in the API's own names.
type Operator string

// Operators. NotIn also holds if the label is missing.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Selects reports whether the selector selects an object with these labels. An unknown operator holds: an unreadable selector counts as selecting.
func (s Selector) Selects(labels map[string]string) bool {
	for key, want := range s.Labels {
		if is, there := labels[key]; !there || is != want {
			return false
		}
	}
	return !slices.ContainsFunc(s.Requirements, func(r Requirement) bool { return !r.holds(labels) })
}

func (r Requirement) holds(labels map[string]string) bool {
	is, there := labels[r.Key]
	switch r.Operator {
	case In:
		return there && slices.Contains(r.Values, is)
	case NotIn:
		return !there || !slices.Contains(r.Values, is)
	case Exists:
		return there
	case DoesNotExist:
		return !there
	default:
		return true
	}
}

// narrows reports whether the selector asks for all that wide asks for, in the same words, so that it selects nothing else.
// A wide selector with requirements is never sure to be narrowed: Tidewaiter's own have only labels.
func (s Selector) narrows(wide Selector) bool {
	if len(wide.Requirements) > 0 {
		return false
	}
	for key, want := range wide.Labels {
		if is, there := s.Labels[key]; !there || is != want {
			return false
		}
	}
	return true
}

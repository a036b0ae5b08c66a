// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revision distinguishes older orders from newer ones. Orders are made from objects that several replicas watch, each at its own
// pace. The resource versions of these objects say which of two orders is newer. Since Kubernetes 1.35 resource versions of one kind may be
// compared: they are decimal numbers of any length.
package revision

import (
	"cmp"
	"errors"
	"strings"
)

// maxPart bounds one resource version in characters; etcd's have 19 at most.
const maxPart = 40

// Revision says how new the sources of orders are. A part is empty if it is unknown, or if there is no such source.
type Revision struct {
	// Feature is the resource version of the Feature.
	Feature string
	// Policies is the resource version up to which SupervisorPolicies are known.
	Policies string
	// Prompt is the resource version of the ConfigMap that holds the prompt.
	Prompt string
	// Namespace is the resource version of the Feature's namespace, where a policy selects by its labels.
	Namespace string
}

// String is the form in which a revision is sent: three numbers, and a fourth if the namespace counts. Programs that know only three can
// read the others.
func (r Revision) String() string {
	text := number(r.Feature) + "/" + number(r.Policies) + "/" + number(r.Prompt)
	if namespace := number(r.Namespace); namespace != "" {
		text += "/" + namespace
	}
	return text
}

// Parse reads what String wrote. The empty text is the zero Revision.
func Parse(text string) (Revision, error) {
	if text == "" {
		return Revision{}, nil
	}
	parts := strings.Split(text, "/")
	if len(text) > 4*maxPart+3 || len(parts) < 3 || len(parts) > 4 {
		return Revision{}, errForm
	}
	for _, p := range parts {
		if p != number(p) {
			return Revision{}, errForm
		}
	}
	r := Revision{Feature: parts[0], Policies: parts[1], Prompt: parts[2]}
	if len(parts) == 4 {
		r.Namespace = parts[3]
	}
	return r, nil
}

var errForm = errors.New("a revision has three or four numbers separated by slashes")

// Behind reports whether any source is known to be older than in other.
func (r Revision) Behind(other Revision) bool {
	return older(r.Feature, other.Feature) || older(r.Policies, other.Policies) || older(r.Prompt, other.Prompt) ||
		older(r.Namespace, other.Namespace)
}

// Max has the newest of each source.
func (r Revision) Max(other Revision) Revision {
	return Revision{
		Feature: newest(r.Feature, other.Feature), Policies: newest(r.Policies, other.Policies), Prompt: newest(r.Prompt, other.Prompt),
		Namespace: newest(r.Namespace, other.Namespace),
	}
}

func older(a, b string) bool {
	a, b = number(a), number(b)
	return a != "" && b != "" && compare(a, b) < 0
}

func newest(a, b string) string {
	a, b = number(a), number(b)
	if compare(a, b) < 0 {
		return b
	}
	return a
}

// compare compares decimal numbers without leading zeros; the empty one is the least.
func compare(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// number is a resource version that can be compared, or empty: a server that has others has to do without.
func number(version string) string {
	if version == "" || len(version) > maxPart || version[0] == '0' || strings.Trim(version, "0123456789") != "" {
		return ""
	}
	return version
}

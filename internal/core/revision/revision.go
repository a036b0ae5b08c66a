// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revision tells older orders from newer ones. Orders are made from objects that several replicas watch, each at
// its own pace; the resource versions of these objects say which of two orders is newer. Since Kubernetes 1.35 resource
// versions of one kind may be compared: they are decimal numbers of any length.
package revision

import (
	"cmp"
	"fmt"
	"strings"
)

// maxPart bounds one resource version in characters; etcd's have 19 at most.
const maxPart = 40

// Revision says how new the sources of orders are. A part is empty where it is not known, or where there is no such
// source.
type Revision struct {
	// Feature is the resource version of the Feature.
	Feature string
	// Policies is the resource version up to which SupervisorPolicies are known.
	Policies string
	// Prompt is the resource version of the ConfigMap that holds the prompt.
	Prompt string
}

// String is the form in which a revision is sent.
func (r Revision) String() string {
	return number(r.Feature) + "/" + number(r.Policies) + "/" + number(r.Prompt)
}

// Parse reads what String wrote. The empty text is the zero Revision.
func Parse(text string) (Revision, error) {
	if text == "" {
		return Revision{}, nil
	}
	parts := strings.Split(text, "/")
	if len(text) > 3*maxPart+2 || len(parts) != 3 {
		return Revision{}, fmt.Errorf("a revision has three numbers separated by slashes")
	}
	for _, p := range parts {
		if p != number(p) {
			return Revision{}, fmt.Errorf("a revision has three numbers separated by slashes")
		}
	}
	return Revision{Feature: parts[0], Policies: parts[1], Prompt: parts[2]}, nil
}

// Behind reports whether any source is known to be older than in other.
func (r Revision) Behind(other Revision) bool {
	return older(r.Feature, other.Feature) || older(r.Policies, other.Policies) || older(r.Prompt, other.Prompt)
}

// Max has the newest of each source.
func (r Revision) Max(other Revision) Revision {
	return Revision{
		Feature: newest(r.Feature, other.Feature), Policies: newest(r.Policies, other.Policies), Prompt: newest(r.Prompt, other.Prompt),
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

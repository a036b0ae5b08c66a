// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"
)

// due is what an agent is to be told: of what is wrong, of its work, or of what people want. Text is empty for nothing; told is called when it was said.
type due struct {
	text string
	told func()
}

// together is what is said in one place.
func together(all ...due) due {
	var texts []string
	for _, x := range all {
		texts = append(texts, x.text)
	}
	return due{both(texts...), func() {
		for _, x := range all {
			if x.text != "" {
				x.told()
			}
		}
	}}
}

// between two things that are said in one place.
const between = "\n\n"

// both joins what is said in one place.
func both(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), between)
}

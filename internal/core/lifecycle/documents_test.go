// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"
)

// TestKnowledgeNeedsReview: the condition names the documents, one Event tells of them, and it is gone with the last one.
func TestKnowledgeNeedsReview(t *testing.T) {
	const flush = "docs/knowledge/lessons/flush.md"
	memory := Memory{}
	for _, step := range []struct {
		paths []string
		told  bool
	}{{nil, false}, {[]string{flush}, true}, {[]string{flush}, false}, {nil, false}} {
		d := Next(Observed{Spec: Spec{Name: "login", Suspend: true}, Memory: memory, Run: &Run{KnowledgeToReview: step.paths}}, noon)
		c := d.Memory.Condition(ConditionKnowledgeNeedsReview)
		if is := len(step.paths) > 0; (c.Status == True) != is || is != strings.HasSuffix(c.Message, "Agents do not get them before: "+flush+".") {
			t.Errorf("%v: %+v", step.paths, c)
		}
		if told := slices.ContainsFunc(d.Events, func(e Event) bool { return !e.Warning && e.Reason == ReasonDocumentsWritten }); told != step.told {
			t.Errorf("%v: events %+v", step.paths, d.Events)
		}
		memory = d.Memory
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// TestAnomalies: what detectors find is a condition of Features, for metrics, events, people and the corpus alike.
func TestAnomalies(t *testing.T) {
	kinds := []string{string(anomaly.PaceEscalated)}
	for _, d := range anomaly.Detectors() {
		if !slices.Contains(kinds, string(d.Kind)) {
			kinds = append(kinds, string(d.Kind))
		}
	}
	compare(t, "api/v1alpha1, AnomalyConditions", v1alpha1.AnomalyConditions(), kinds)
	compare(t, "core/anomaly, kinds of findings", kinds, v1alpha1.AnomalyConditions())
	const name = `Condition([A-Z][A-Za-z]+)`
	for _, l := range []list{
		{"internal/core/lifecycle/events.go", "anomalies", `(?m)^var anomalies = \[\]string\{(.*)\}`, name, kinds},
		{"internal/core/lifecycle/conditions.go", "what is set, from agentStalled on", `(?s)s\.agentStalled\(\),\n(.*?)\n\t\tsucceeded\(at\)`, name, slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == string(anomaly.AgentStalled) })},
		{"docs/concepts/supervision.md", "what goes wrong with an agent", `(?s)\| condition \| the watchdog sets it when \|\n(.*?)\n\n`, "(?m)^\\| `([A-Za-z]+)`", kinds},
		{"test/eval/sick_others_test.go", "the kinds of labels", `(?s)\nconst \(\n(.*?)\n\)`, `= "([A-Z][A-Za-z]+)"`, kinds},
	} {
		l.check(t)
	}
	page := read(t, "docs/reference/detectors.md")
	for _, d := range anomaly.Detectors() {
		if !strings.Contains(page, "| `"+d.Name+"` |") {
			t.Errorf("docs/reference/detectors.md: %s is missing: run make generate", d.Name)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestRIntEveryFailureThatWasCorrected is in the question for the reviewer of knowledge, also of an agent without a session, after a crash, and without
// secrets.
func TestRIntEveryFailureThatWasCorrected(t *testing.T) {
	t.Parallel()
	w := newGated(t, `n=$(cat web/n 2>/dev/null || echo 0); echo $((n+1)) > web/n`,
		`case $(cat web/n) in 1) echo "the form has no title"; exit 3;; 2) echo "AKIA`+"QYLPMN5HHHFPZAM2"+` is no colour"; exit 4;; esac`)
	player := w.serveSupervisor("anthropic")
	w.knows(map[string]string{"lessons/store.md": saying("established", "* The store has ten boxes.")})
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3, Knowledge: writesDown("- tool: {name: write_documents, input: {summary: Nothing., documents: []}}")}
	})
	plugs := newPlugs(t, after("reviewed"))
	wantFinal(t, plugs.processes(w.start(1, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	asked := player.Recorded()
	if len(asked) == 0 {
		t.Fatal("no reviewer was asked")
	}
	_, text, _ := strings.Cut(asked[len(asked)-1].Body, `\u003cmended `)
	text, _, _ = strings.Cut(text, `\u003c/mended `)
	second, first := strings.Index(text, "is no colour"), strings.Index(text, "the form has no title")
	if second < 0 || first < second || strings.Contains(text, "AKIAQYL") {
		t.Errorf("the failures: %s", text)
	}
}

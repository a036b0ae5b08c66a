// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func auditing(o *protocol.Orders) {
	o.Policy.Enforcement, o.Policy.Hash = policy.Audit, "policy-audit"
}

func enforcing(o *protocol.Orders) {
	o.Policy.Enforcement, o.Policy.Hash = policy.Enforce, "policy-enforce"
}

// newAudited is a world whose agent has promoted a workflow under an audit, removed it again, and gone on.
func newAudited(t *testing.T, change ...func(*protocol.Orders)) (*world, func(probe func(string) error) *pod) {
	w := newWorld(t, "", append([]func(*protocol.Orders){seldom, auditing}, change...)...)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `mkdir -p .github/workflows; echo evil-ci > .github/workflows/ci.yml; echo a > web/a.html; ` +
			w.signalled("bad") + w.waitFor("go") + `rm -r .github; echo b > web/b.html; ` + w.signalled("good") + w.waitFor("end")
	})
	return w, func(probe func(string) error) *pod {
		p := w.start(1, probe)
		w.waitSignal("bad")
		if c := w.checkpointNow("bad"); c.Action != protocol.ActionPromoted || !c.Audit {
			t.Fatalf("the audit did not promote: %+v", c)
		}
		w.signal("go")
		w.waitSignal("good")
		w.checkpointNow("good")
		return p
	}
}

// wantSquashed walks the whole ancestry of the pushed branch.
func (w *world) wantSquashed(f protocol.FinalReport) {
	w.t.Helper()
	wantFinal(w.t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if n := w.git("-C", w.origin, "rev-list", "--count", "main..tidewaiter/login"); n != "1" || w.branch() != f.Head {
		w.t.Errorf("%s commits on the branch, which is %s; head %s", n, w.branch(), f.Head)
	}
	w.wantBlob("evil-ci\n", false)
	if a, b := w.delivered("web/a.html"), w.delivered("web/b.html"); a != "a" || b != "b" {
		w.t.Errorf("delivered %q and %q", a, b)
	}
	if !strings.Contains(f.Message, protocol.HistorySquashed) || !strings.Contains(f.Message, ".github/workflows/ci.yml") {
		w.t.Errorf("message %q", f.Message)
	}
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify: code %d\n%s", code, out)
	}
	if w.trusted("rev-parse", protocol.RefDelivery) != f.Head {
		w.t.Error("the delivery's ref is not the head")
	}
}

// What an audit let through is no ancestor of what is pushed once the policy is enforced, also where the watchdog ends
// between any two steps.
func TestTheHistoryIsJudgedByThePolicyOfNow(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil, "crashes": after("squash written", "squash journaled", "squash moved", "pushed", "delivery journaled")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, start := newAudited(t)
			plugs := newPlugs(t, list)
			p := start(plugs.probe())
			w.tell(enforcing)
			w.signal("end")
			w.wantSquashed(plugs.processes(p).finish())
		})
	}
}

// The approval of a head says nothing about the one commit that takes its place.
func TestASquashedDeliveryIsApprovedAnew(t *testing.T) {
	t.Parallel()
	w, start := newAudited(t, approval)
	p := start(nil)
	w.signal("end")
	first := p.finish()
	wantFinal(t, first, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	w.intake.Order(func(o *protocol.Orders) {
		enforcing(o)
		o.Delivery.ApprovedCommit = first.Head
	})
	second := w.seal(2)
	wantFinal(t, second, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalMismatch)
	if w.branch() != "" || second.Head == first.Head || !strings.Contains(second.Message, protocol.HistorySquashed) {
		t.Errorf("pushed %q, head %s after %s, message %q", w.branch(), second.Head, first.Head, second.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = second.Head })
	third := w.seal(3)
	w.wantSquashed(third)
	if third.Head != second.Head {
		t.Errorf("approved %s, delivered %s", second.Head, third.Head)
	}
}

// Where the policy says so, a person decides; and what was held can be delivered later.
func TestAHistoryThatIsHeld(t *testing.T) {
	t.Parallel()
	w, start := newAudited(t)
	p := start(nil)
	w.tell(func(o *protocol.Orders) { enforcing(o); o.Policy.History = policy.HistoryHold })
	w.signal("end")
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonHistoryInvalid)
	if w.branch() != "" || !strings.Contains(f.Message, ".github/workflows/ci.yml") {
		t.Errorf("pushed %q, message %q", w.branch(), f.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Policy.History, o.Policy.Hash = policy.HistorySquash, "policy-squash" })
	w.wantSquashed(w.seal(2))
}

// An audit changes nothing: the history is pushed as it is.
func TestAnAuditedHistoryIsKept(t *testing.T) {
	t.Parallel()
	w, start := newAudited(t)
	p := start(nil)
	w.signal("end")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if n := w.git("-C", w.origin, "rev-list", "--count", "main..tidewaiter/login"); n != "2" {
		t.Errorf("%s commits on the branch", n)
	}
}

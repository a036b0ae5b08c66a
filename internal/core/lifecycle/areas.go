// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// areaRecheck is for others that stop waiting, or end, without an event.
const areaRecheck = 30 * time.Second

// disjoint reports whether an agent may start as far as other Features on the repository are concerned. It asks for
// their areas where they were not looked at, and waits where the policy says so. Work that continues by itself does not
// wait: others may wait for it.
func (p *plan) disjoint(s situation) bool {
	a := s.o.Areas
	if a == nil {
		if p.live(s) {
			p.need(NeedAdmission)
		}
		return false
	}
	if a.Overlap == nil || !a.Wait || s.atWork() {
		return true
	}
	p.at = summary{phase: Pending, reason: ReasonWaitingForArea, message: a.Overlap.message() + " The policy says to wait (concurrency.onOverlap)."}
	p.wake(s.now.Add(areaRecheck))
	return false
}

func (o *Overlap) message() string {
	who := o.Who
	if o.More {
		who += " (and others)"
	}
	does := "works on the same repository"
	if o.Before {
		does = "waits to work on the same repository and comes first"
	}
	return fmt.Sprintf("%s %s: %s of its plan and %s of this one may match the same paths.", who, does, pattern(o.Theirs), pattern(o.Mine))
}

func pattern(text string) string {
	if text == "" {
		return "everything"
	}
	return text
}

// areasDisjoint keeps what was found when the attempt started.
func (s situation) areasDisjoint(at summary) Condition {
	a := s.o.Areas
	was := s.o.Memory.Condition(ConditionAreasDisjoint)
	switch {
	case a == nil && was.Type != "" && was.Reason != ReasonWaitingForArea, a == nil && at.reason == ReasonWaitingForArea:
		return was
	case a == nil:
		return notYet(ConditionAreasDisjoint, "Tidewaiter compares the areas of other Features before an attempt starts.")
	case a.Ignore:
		return Condition{ConditionAreasDisjoint, Unknown, ReasonNotCompared, "The policy lets areas overlap (concurrency.onOverlap)."}
	case a.Overlap == nil:
		return Condition{ConditionAreasDisjoint, True, ReasonNoOverlap, "When the attempt started, no other running Feature of the repository could change the same paths."}
	case at.reason == ReasonWaitingForArea:
		return Condition{ConditionAreasDisjoint, False, ReasonWaitingForArea, at.message}
	default:
		return Condition{ConditionAreasDisjoint, False, ReasonAreasOverlap, "When the attempt started: " + a.Overlap.message()}
	}
}

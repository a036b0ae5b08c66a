// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Next decides what happens next. It changes nothing that it is given, and the same facts at the same time lead to the
// same decision.
func Next(o Observed, now time.Time) Decision {
	s := situate(o, now)
	p := s.planFor()
	if p.needs.Outdates() {
		return Decision{Memory: o.Memory.clone(), Needs: p.needs}
	}
	return s.decide(p, s.conditions(p))
}

// decide is a plan as others read it: what to remember, to do and to tell.
func (s situation) decide(p plan, list []Condition) Decision {
	d := Decision{
		Memory: p.memory(s), Needs: p.needs, Start: p.start, RenewLocks: p.locks.renew, Unlock: p.locks.free,
		DeleteFeature: p.deleteFeature, Release: p.release, Recheck: p.recheck(s.now),
	}
	d.Memory.Conditions = list
	if !s.o.JobMade {
		d.EnsureDependencies, d.DeleteJobs, d.DeletePods = p.ensureDependencies, p.deleteJobs, p.deletePods
	}
	d.Events = changes(s.o.Memory, d.Memory, s.fate, s.o.Outage)
	return d
}

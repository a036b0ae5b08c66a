// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"time"
)

// silence is an agent whose processes are running without any effect: it calls no model, computes and prints nothing, and changes no file.
// A model or a tool that is at work may be silent for longer. What an agent prints, and what keeps the connection of an answer open, counts
// for a while only, because what hangs may continue to send signs of life.
var silence = detector{
	name: Silence, kind: AgentStalled,
	doc:    "The processes of the agent live, and nothing else moves.",
	advice: always(reassess),
	look: func(l look) sight {
		s := l.s
		if !l.t.main() || s.Pulsed.IsZero() || s.Used.Processes == 0 || s.Used.Idle || l.now.Sub(s.Pulsed) > l.r.Silence {
			return sight{}
		}
		allowed, what := l.allowed()
		quiet := l.now.Sub(s.Moved)
		if spins := l.now.Sub(s.Worked); quiet < allowed && spins >= max(allowed, spinning*l.r.ToolSilence) && l.now.Sub(s.Printed) >= allowed {
			hours := int(spins / time.Hour)
			return sight{tier: Warn, mute: true, count: hours, evidence: fmt.Sprintf("for %d hours the processes have computed, and nothing else has moved", hours)}
		}
		// While a request is in progress and no tool is at work, computing of processes does not count as work: the agent waits, and may draw that it does.
		if worked := l.now.Sub(s.Worked); what == asked && worked >= living*allowed {
			quiet = worked
		}
		if quiet < allowed || l.now.Sub(s.Printed) < allowed && quiet < living*allowed {
			return sight{}
		}
		minutes := int(quiet / time.Minute)
		return sight{tier: Warn, mute: true, count: minutes, evidence: fmt.Sprintf("for %d minutes nothing has moved while %s", minutes, what)}
	},
}

// living is how many times as long as anything else may be silent what still says that it lives.
const living = 3

// asked is what is at work while no tool is, and a model has not answered.
const asked = "the agent waited for a model"

// spinning is how many times as long as a tool may be silent its processes may compute: builds and tests take hours at most.
const spinning = 6

// allowed is how long nothing may move, and what is at work meanwhile.
func (l look) allowed() (time.Duration, string) {
	allowed, what := l.r.Silence, "neither a model nor a tool was at work"
	for _, t := range l.s.Threads {
		tool := l.r.ToolSilence + t.Sleeps
		switch {
		case (look{l.s, t, l.r, l.now}).gone():
		case !t.Asked.IsZero():
			if l.r.ModelSilence > allowed {
				allowed, what = l.r.ModelSilence, asked
			}
		case t.Calls && tool > allowed:
			allowed, what = tool, "a tool was called"
		}
	}
	return allowed, what
}

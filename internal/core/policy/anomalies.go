// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rung of the ladder: how far steering of an agent in trouble may go. Each includes the milder ones.
type Rung string

// The ladder. Observe only informs users. Nudge sends a short message to the model, and Directive the alternative of the role. Surgery
// removes a run of failing calls from what the model sees. NoTools forbids tool calls for a turn. Hold keeps the next model call back until
// a user has looked. Rollback restores the last valid checkpoint. Restart starts the agent again from there, and Block gives up.
const (
	RungObserve   Rung = "Observe"
	RungNudge     Rung = "Nudge"
	RungDirective Rung = "Directive"
	RungSurgery   Rung = "Surgery"
	RungNoTools   Rung = "NoTools"
	RungHold      Rung = "Hold"
	RungRollback  Rung = "Rollback"
	RungRestart   Rung = "Restart"
	RungBlock     Rung = "Block"
)

// Ladder is every rung, the mildest first.
func Ladder() []Rung {
	return []Rung{RungObserve, RungNudge, RungDirective, RungSurgery, RungNoTools, RungHold, RungRollback, RungRestart, RungBlock}
}

// AnomalyRules are the values of Anomalies that a source sets.
type AnomalyRules struct {
	CheckEveryTurns, CooldownTurns, Stall, Loop, ContextPercent, Cascade *int
	Silence, Hold                                                        *time.Duration
	Ladder                                                               Rung
}

// Anomalies are the thresholds from which on an agent counts as in trouble, and the limits of its steering.
type Anomalies struct {
	// CheckEveryTurns, and CooldownTurns between two messages about the same anomaly.
	CheckEveryTurns int `json:"checkEveryTurns,omitzero"`
	CooldownTurns   int `json:"cooldownTurns,omitzero"`
	// Stall is how many turns may pass without progress, Loop how many equal calls in a row are one.
	Stall int `json:"stall,omitzero"`
	Loop  int `json:"loop,omitzero"`
	// ContextPercent of the model's window that calls for a wrap-up; 0 means BuiltinContextPercent, or later if the client compacts by itself.
	ContextPercent int `json:"contextPercent,omitzero"`
	// Cascade is how many different tools fail within the last five calls.
	Cascade int `json:"cascade,omitzero"`
	// Silence is the maximum time without activity while no model answers and no tool runs.
	Silence time.Duration `json:"silence,omitzero"`
	// Hold is how long the gateway holds a call before a rung above RungHold may follow.
	Hold time.Duration `json:"hold,omitzero"`
	// Ladder is the last rung that steering may go to.
	Ladder Rung `json:"ladder,omitzero"`
}

// Role is the doctrine and PACE plan of a role.
type Role struct {
	Name string `json:"name"`
	// SaluteEveryTurns is the number of turns between status reports; 0 means the built-in number.
	SaluteEveryTurns int `json:"saluteEveryTurns,omitzero"`
	// Stall is how many turns may pass without progress; 0 means the policy's value for every role.
	Stall int `json:"stall,omitzero"`
	// Alternate, Contingent and Emergency say what to do as the work falls off its plan.
	Alternate  string `json:"alternate,omitzero"`
	Contingent string `json:"contingent,omitzero"`
	Emergency  string `json:"emergency,omitzero"`
}

// The built-in values, from the requirements of the supervisor loop.
const (
	// BuiltinCheckEvery and BuiltinCooldown are numbers of turns. A cooldown is longer than the time between two checks, because a shorter one
	// would never keep anything back (ADR 92).
	BuiltinCheckEvery = 3
	BuiltinCooldown   = 6
	// BuiltinStall is a number of turns, and BuiltinLoop one of equal calls.
	BuiltinStall = 12
	BuiltinLoop  = 3
	// BuiltinContextPercent leaves a fifth of the window for the wrap-up if the client does not compact by itself.
	BuiltinContextPercent = 80
	// BuiltinCascade is a number of tools.
	BuiltinCascade = 3
	// BuiltinSilence is twice the longest silence of a model that a timeout profile allows.
	BuiltinSilence = 10 * time.Minute
	// builtinHold is time enough to look at an alert. The clients of models wait for an answer as long, and longer.
	builtinHold = 5 * time.Minute
	// BuiltinSalute is how many turns pass between two status reports of a role that says nothing else.
	BuiltinSalute = 5
)

func anomalyRows() []Row {
	type r = Rules
	type e = Effective
	number := func(name, purpose string, rules func(*AnomalyRules) **int, effective func(*Anomalies) *int, builtin int, l limits[int]) Row {
		return count("anomalies."+name, purpose, func(x *r) **int { return rules(&x.Anomalies) }, func(x *e) *int { return effective(&x.Anomalies) }, builtin, smaller, l)
	}
	return []Row{
		number("checkEveryTurns", "How many turns pass between two messages to the model, whatever they are about.",
			func(x *AnomalyRules) **int { return &x.CheckEveryTurns }, func(x *Anomalies) *int { return &x.CheckEveryTurns }, BuiltinCheckEvery, from(1, maxCount)),
		number("cooldownTurns", "How many turns pass between two messages about the same anomaly.",
			func(x *AnomalyRules) **int { return &x.CooldownTurns }, func(x *Anomalies) *int { return &x.CooldownTurns }, BuiltinCooldown, from(1, maxCount)),
		number("stallTurns", "How many turns without progress count as a stall. A role can have its own number.",
			func(x *AnomalyRules) **int { return &x.Stall }, func(x *Anomalies) *int { return &x.Stall }, BuiltinStall, from(1, maxCount)),
		number("loopCalls", "How many equal calls that fail in a row count as a loop. Other repetitions take more, and their limits depend on it.",
			func(x *AnomalyRules) **int { return &x.Loop }, func(x *Anomalies) *int { return &x.Loop }, BuiltinLoop, from(2, maxCount)),
		contextRow(),
		number("cascadeTools", "How many different tools that fail within five calls count as a cascade.",
			func(x *AnomalyRules) **int { return &x.Cascade }, func(x *Anomalies) *int { return &x.Cascade }, BuiltinCascade, from(2, 5)),
		span("anomalies.silenceTimeout", "How long an agent can be silent before the watchdog treats it as stalled. An agent is silent while no model answers, no tool works and everything else stands still.",
			func(x *r) **duration { return &x.Anomalies.Silence }, func(x *e) *duration { return &x.Anomalies.Silence }, BuiltinSilence, smaller, from[duration](time.Minute, endless)),
		span("anomalies.holdTimeout", "How long the watchdog holds the agent's next model call for a user to look, before a rung above Hold can follow.",
			func(x *r) **duration { return &x.Anomalies.Hold }, func(x *e) *duration { return &x.Anomalies.Hold }, builtinHold, smaller, from(time.Second, 24*time.Hour)),
		choice("anomalies.ladder", "How far steering goes when an anomaly continues: at most to this step. If a repetition continues for 2 × loopCalls turns after the watchdog saw it, the model loses its tools for a turn, except under Observe.",
			func(x *r) *Rung { return &x.Anomalies.Ladder }, func(x *e) *Rung { return &x.Anomalies.Ladder }, RungNudge, Ladder()...),
		rolesRow(),
	}
}

func contextRow() Row {
	row := count("anomalies.contextPercent", "Share of the model's window, in percent, at which the watchdog asks the agent to wrap up. The default waits until a client that compacts its conversations should have done so.",
		func(x *Rules) **int { return &x.Anomalies.ContextPercent }, func(x *Effective) *int { return &x.Anomalies.ContextPercent }, 0, smaller, from(1, 100))
	row.Builtin = fmt.Sprintf("%d, or the share at which the runtime's client compacts if that is later", BuiltinContextPercent)
	return row
}

func rolesRow() Row {
	return Row{
		Path: "roles", Purpose: "Profiles of the roles that agents can have. The doctrine says when an agent reports, and when it counts as stalled. The PACE plan says what it does when its way fails. Each role in the list has such a plan, with default texts for what the profile leaves out.", Allowed: "names with a doctrine and a plan", Builtin: "none",
		Merging: "for each role, the first source that has it; at equal priority, the source with the stricter doctrine",
		merge:   func(m *merger, e *Effective) { e.Roles = m.roles() },
		check:   func(r *Rules) error { return validRoles(r.Roles) },
		rules:   func(r *Rules) any { return &r.Roles }, effective: func(e *Effective) any { return &e.Roles },
		cut: func(e *Effective) (now, builtin any) { now, e.Roles = e.Roles, nil; return now, []Role(nil) },
	}
}

// roles decides each role by its name.
func (m *merger) roles() []Role {
	var all []Role
	for _, name := range m.names(func(r *Rules) (names []string) {
		for _, role := range r.Roles {
			names = append(names, role.Name)
		}
		return names
	}) {
		all = append(all, decide(m, value[Role]{
			name: "roles." + name,
			of: func(r *Rules) (Role, bool) {
				i := slices.IndexFunc(r.Roles, func(role Role) bool { return role.Name == name })
				if i < 0 {
					return Role{}, false
				}
				return r.Roles[i], true
			},
			stricter: func(a, b Role) Role {
				if compareRoles(a, b) <= 0 {
					return a
				}
				return b
			},
			equal: func(a, b Role) bool { return a == b },
		}))
	}
	return all
}

// compareRoles puts the one first that allows fewer turns; what is said in words is only put in some order.
func compareRoles(a, b Role) int {
	few := func(n int) int {
		if n == 0 {
			return BuiltinStall
		}
		return n
	}
	return cmp.Or(cmp.Compare(few(a.Stall), few(b.Stall)), cmp.Compare(a.Stall, b.Stall), cmp.Compare(a.SaluteEveryTurns, b.SaluteEveryTurns), strings.Compare(a.Alternate, b.Alternate),
		strings.Compare(a.Contingent, b.Contingent), strings.Compare(a.Emergency, b.Emergency))
}

func validRoles(roles []Role) error {
	var errs []error
	for _, r := range roles {
		if least, most := min(r.Stall, r.SaluteEveryTurns), max(r.Stall, r.SaluteEveryTurns); least < 0 || most > maxCount { // 0 is built in
			errs = append(errs, fmt.Errorf("roles[%s].doctrine: numbers of turns must be from 1 to %d", r.Name, maxCount))
		}
	}
	return errors.Join(errs...)
}

// Role of an agent, and whether the policy names it. One that is not named has no doctrine of its own, and no plan.
func (e *Effective) Role(name string) (Role, bool) {
	for _, r := range e.Roles {
		if r.Name == name {
			return r, true
		}
	}
	return Role{}, false
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// TimeoutProfile says how long a backend of models may say nothing before a call ends.
type TimeoutProfile string

// Timeout profiles.
const (
	TimeoutStandard TimeoutProfile = "Standard"
	TimeoutLong     TimeoutProfile = "Long"
	TimeoutExtended TimeoutProfile = "Extended"
)

// Silence that a profile allows. A profile that is not known allows the least.
func (p TimeoutProfile) Silence() time.Duration {
	switch p {
	case TimeoutLong:
		return 2 * time.Minute
	case TimeoutExtended:
		return 5 * time.Minute
	case TimeoutStandard:
	}
	return time.Minute
}

// LedgerFailure says how the gateway handles model calls that the ledger cannot record.
type LedgerFailure string

// Values of LedgerFailure.
const (
	LedgerFail   LedgerFailure = "Fail"
	LedgerIgnore LedgerFailure = "Ignore"
)

// ToolResults says what the ledger keeps of tool results.
type ToolResults string

// What the ledger keeps of it.
const (
	// ToolResultsOff keeps nothing.
	ToolResultsOff ToolResults = "Off"
	// ToolResultsDigest keeps which call it is of, size, digest, and whether it is an error.
	ToolResultsDigest ToolResults = "Digest"
	// ToolResultsRedacted keeps the text, too, without secrets.
	ToolResultsRedacted ToolResults = "Redacted"
)

// Kept says whether anything is kept, and whether texts are.
func (r ToolResults) Kept() (kept, texts bool) {
	return r == ToolResultsDigest || r == ToolResultsRedacted, r == ToolResultsRedacted
}

// RestartMode says how an agent continues after an end before its work was done.
type RestartMode string

// Restart modes. The zero value of an older record is RestartResume.
const (
	// RestartResume continues in the agent's session, if it has one.
	RestartResume RestartMode = "Resume"
	// RestartReplay begins a new session with the prompt.
	RestartReplay RestartMode = "Replay"
	// RestartAsk continues as RestartResume; after the loss of a pod, only when a user requests it.
	RestartAsk RestartMode = "Ask"
)

// SupervisionRules are the values of Supervision that a source sets.
type SupervisionRules struct {
	Enabled                 *bool
	TimeoutProfile          TimeoutProfile
	RestartMode             RestartMode
	MaxCorrections          *int
	MaxRetries              *int
	FailOnViolation         *bool
	AllowRawOutput          *bool
	AllowOutputReplacement  *bool
	RequireFormatValidation *bool
}

// Supervision of the conversation between an agent and its models.
type Supervision struct {
	// Enabled composes what agents send. Calls are authenticated and recorded in any case.
	Enabled bool `json:"enabled"`
	// TimeoutProfile of calls.
	TimeoutProfile TimeoutProfile `json:"timeoutProfile"`
	// RestartMode after an end before the work was done.
	RestartMode RestartMode `json:"restartMode,omitempty"`
	// MaxCorrections of an agent whose work is not valid when it ends.
	MaxCorrections int `json:"maxCorrections,omitempty"`
	// Answers that end a turn.
	Answers AnswerRules `json:"answers,omitzero"`
}

// AnswerRules say how the gateway handles answers that end a turn.
type AnswerRules struct {
	// MaxRetries of an answer that breaks a rule.
	MaxRetries int `json:"maxRetries"`
	// FailOnViolation fails the task when they are spent.
	FailOnViolation bool `json:"failOnViolation"`
	// AllowRawOutput leaves answers as they are, without the texts of Output templates.
	AllowRawOutput bool `json:"allowRawOutput"`
	// AllowOutputReplacement lets texts of a project replace global ones. Otherwise the gateway puts the global ones around them.
	AllowOutputReplacement bool `json:"allowOutputReplacement"`
	// RequireFormatValidation checks and corrects answers.
	RequireFormatValidation bool `json:"requireFormatValidation"`
}

func conversationRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		permitted("supervision.enabled", "Whether the gateway puts templates before what agents send to models, and checks what the models answer.",
			func(x *r) **bool { return &x.Supervision.Enabled }, func(x *e) *bool { return &x.Supervision.Enabled }, true),
		choice("supervision.timeoutProfile", "How long a model can be silent before its call ends: Standard 60s, Long 120s, Extended 300s.",
			func(x *r) *TimeoutProfile { return &x.Supervision.TimeoutProfile }, func(x *e) *TimeoutProfile { return &x.Supervision.TimeoutProfile },
			TimeoutStandard, TimeoutExtended, TimeoutLong, TimeoutStandard),
		choice("supervision.restartMode", "How the next attempt continues when an agent ends before its work is done, for example because the cluster loses its pod. Resume continues the agent's session. Replay starts a new session with the prompt. Ask continues the session, but after the loss of a pod only when a user requests a retry.",
			func(x *r) *RestartMode { return &x.Supervision.RestartMode }, func(x *e) *RestartMode { return &x.Supervision.RestartMode },
			RestartResume, RestartResume, RestartReplay, RestartAsk),
		count("supervision.maxCorrections", "How many times an agent corrects a task that it has ended: the watchdog tells it, in its session, which rule or gate is broken. An agent without sessions starts again after a gate only.",
			func(x *r) **int { return &x.Supervision.MaxCorrections }, func(x *e) *int { return &x.Supervision.MaxCorrections }, builtinCorrections, smaller, from(0, 10)),
		count("supervision.maxRetries", "How many times the gateway asks a model again when its answer breaks a rule of an Output template.",
			func(x *r) **int { return &x.Supervision.MaxRetries }, func(x *e) *int { return &x.Supervision.Answers.MaxRetries }, builtinRetries, smaller, from(0, 10)),
		permitted("supervision.failOnViolation", "Whether a task fails when an answer still breaks a rule of an Output template after all retries. Otherwise only the turn fails.",
			func(x *r) **bool { return &x.Supervision.FailOnViolation }, func(x *e) *bool { return &x.Supervision.Answers.FailOnViolation }, true),
		permitted("supervision.allowRawOutput", "Whether answers stay without the texts of Output templates.",
			func(x *r) **bool { return &x.Supervision.AllowRawOutput }, func(x *e) *bool { return &x.Supervision.Answers.AllowRawOutput }, false),
		permitted("supervision.allowOutputReplacement", "Whether texts of a project's Output templates replace global ones. Otherwise the gateway puts the global ones around them.",
			func(x *r) **bool { return &x.Supervision.AllowOutputReplacement }, func(x *e) *bool { return &x.Supervision.Answers.AllowOutputReplacement }, false),
		permitted("supervision.requireFormatValidation", "Whether the gateway checks answers by Output templates, and corrects them.",
			func(x *r) **bool { return &x.Supervision.RequireFormatValidation }, func(x *e) *bool { return &x.Supervision.Answers.RequireFormatValidation }, true),
		choice("ledger.failurePolicy", "What the gateway does with model calls that it cannot record: Fail refuses them, Ignore lets them through.",
			func(x *r) *LedgerFailure { return &x.LedgerFailure }, func(x *e) *LedgerFailure { return &x.LedgerFailure },
			LedgerFail, LedgerIgnore, LedgerFail),
		choice("ledger.toolResults", "What the ledger keeps of the results that tools give back to models. Off keeps nothing. Digest keeps the call, the tool's name, the size, the SHA-256 and whether it is an error. Redacted also keeps the text without secrets.",
			func(x *r) *ToolResults { return &x.ToolResults }, func(x *e) *ToolResults { return &x.ToolResults },
			ToolResultsOff, ToolResultsOff, ToolResultsDigest, ToolResultsRedacted),
		span("retention.ledgerPeriod", "How long the ledger keeps model calls, diffs, file events, steps of supervision and the history of a Feature.",
			func(x *r) **duration { return &x.LedgerRetention }, func(x *e) *duration { return &x.LedgerRetention }, LedgerRetention, larger, from[duration](1, endless)),
	}
}

// builtinCorrections and builtinRetries are what is usual: requirements of such systems name 2.
const builtinCorrections, builtinRetries = 2, 2

// builtinAnswers are the rules where no source says anything.
var builtinAnswers = AnswerRules{MaxRetries: builtinRetries, FailOnViolation: true, RequireFormatValidation: true}

// permitted is on or off as it is built in; a project may set it to the other only where a global policy does.
func permitted(path, purpose string, rules func(*Rules) **bool, effective func(*Effective) *bool, builtin bool) Row {
	row := flag(path, purpose+" A project can change it only if a global policy does.", rules, effective, builtin, builtin)
	decided := row.merge
	row.merge = func(m *merger, e *Effective) {
		decided(m, e)
		if now := effective(e); *now != builtin && !m.globalSets(flagValue(path, rules, builtin), !builtin) {
			m.conflicts = append(m.conflicts, fmt.Sprintf("%s: %s sets it to %t, and no global policy permits that; it stays %t", path, m.origins[path], *now, builtin))
			*now, m.origins[path] = builtin, "built-in"
		}
	}
	return row
}

// globalSets says whether a global policy sets a value to this.
func (m *merger) globalSets(v value[bool], to bool) bool {
	for i := range m.policies {
		for _, rules := range []*Rules{&m.policies[i].Defaults, &m.policies[i].Overrides} {
			if got, ok := v.of(rules); ok && got == to && m.policies[i].Scope == Global {
				return true
			}
		}
	}
	return false
}

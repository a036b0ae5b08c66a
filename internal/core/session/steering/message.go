// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Tag begins each message, so that agents and users know its origin.
const Tag = "[SUPERVISOR]"

// maxPlan is how much of a plan is quoted, in characters: every message costs room in the context.
const maxPlan = 600

// message for an agent: where and since when, what was seen, and one thing to do. last is the turn of the run with the same message before, or 0.
func message(f anomaly.Finding, rung Rung, last int64, turn TurnContext, r Rules) string {
	text := opening(f, turn)
	switch {
	case toAnother(rung):
	case rung == Directive && last > 0:
		return fmt.Sprintf("%s The supervisor told you so in turn %d; before anything else, do this and say what came of it: %s", text, last, action(f, rung, r))
	case rung == Directive:
		return text + " Before anything else, do this and say what came of it: " + action(f, rung, r)
	case last > 0:
		text += fmt.Sprintf(" The supervisor told you so in turn %d.", last)
	}
	return text + " " + action(f, rung, r)
}

// opening of what is said: what was seen, where and since when. What is decided by the clock is decided in no turn, and an agent that asks no
// model has none.
func opening(f anomaly.Finding, turn TurnContext) string {
	since := fmt.Sprintf("first seen in turn %d, %s ago", f.RunTurn, age(turn.Now.Sub(f.Since)))
	switch {
	case turn.Clock && f.Turn == 0: // it has asked no model
		since = fmt.Sprintf("first seen %s ago", age(turn.Now.Sub(f.Since)))
	case turn.Clock:
	case turn.Turn <= f.Turn:
		since = "first seen now"
	}
	where := ""
	if !turn.Clock {
		where = fmt.Sprintf("Turn %d: ", turn.RunTurn)
	}
	return fmt.Sprintf("%s %s%s (%s).", Tag, where, f.Evidence, since)
}

// toAnother says that another agent than the one with the earlier message, or only users, read the text of a rung.
func toAnother(rung Rung) bool { return rung == Restart || rung == Block }

const (
	// maxTried calls are listed in a summary, and maxArguments characters of the arguments of each are quoted.
	maxTried     = 4
	maxArguments = 120
)

// Summary says what surgery removed from a conversation. It quotes the model's calls, but not the results of tools, which a supervisor must not repeat.
func Summary(x conversation.Repeats) string {
	calls := 0
	var list []string
	for _, t := range x.Tried {
		calls += t.Times
		came := "which gave what later calls give"
		if t.Failure != conversation.FailureNone {
			came = fmt.Sprintf("which failed (%s)", t.Failure)
		}
		times := "once"
		if t.Times > 1 {
			times = fmt.Sprintf("%d times", t.Times)
		}
		list = append(list, fmt.Sprintf("%s with %q %s, %s", anomaly.Name(t.Call.Name), plain.CutRunes(t.Call.Arguments.Text, maxArguments), times, came))
	}
	if more := len(list) - maxTried; more > 0 {
		list = append(list[:maxTried], fmt.Sprintf("and %d other calls", more))
	}
	left := fmt.Sprintf("%d calls are left out", calls)
	if calls == 1 {
		left = "1 call is left out"
	}
	return fmt.Sprintf("%s %s of the conversation here: %s.", Tag, left, strings.Join(list, "; "))
}

// age in the largest unit that says enough.
func age(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
}

// action is the one thing to do.
func action(f anomaly.Finding, rung Rung, r Rules) string {
	switch rung {
	case NoTools:
		return "This turn has no tools: say what you tried, why it fails, and what you will do differently."
	case Hold:
		return "The supervisor held your work here so that a user could look at it. " + action(f, Directive, r)
	case Rollback:
		return "The workspace has gone back to the last valid checkpoint: look at what is there now, and choose another approach."
	case Restart:
		return "The supervisor ended an agent that worked on this task before you, for that reason. The workspace is as the last valid checkpoint has it: choose another approach."
	case Block:
		return "The watchdog ended the agent: a user must decide how the work continues."
	case Observe, Nudge, Directive, Surgery:
	}
	if f.Kind == anomaly.PaceEscalated {
		return pace(f.Level, r.Plan)
	}
	return f.Advice()
}

// pace is what the plan of the role says at a level, and what follows where it says nothing.
func pace(level anomaly.Level, plan Plan) string {
	quote := func(name, text, otherwise string) string {
		if text = strings.Join(strings.Fields(text), " "); text == "" {
			return otherwise
		}
		return name + " plan of your role: " + strings.TrimRight(plain.CutRunes(text, maxPlan), ".") + "."
	}
	switch level {
	case anomaly.Emergency:
		return quote("Emergency", plan.Emergency, "Stop, keep what works, and report what is done, what is open and why.")
	case anomaly.Contingent:
		return quote("Contingent", plan.Contingent, "Use a fundamentally different method, or ask.")
	case anomaly.Primary, anomaly.Alternate:
	}
	return quote("Alternate", plan.Alternate, "Try another way.")
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Tag begins each message, so that agent and people know who speaks.
const Tag = "[SUPERVISOR]"

// maxPlan is how much of a plan is quoted, in characters: every message costs room in the context.
const maxPlan = 600

// message for an agent: where and since when, what was seen, and one thing to do. Last is the turn in which it was told so before, or 0.
func message(f anomaly.Finding, rung Rung, last int64, turn TurnContext, r Rules) string {
	text := opening(f, turn)
	switch {
	case toAnother(rung):
	case rung == Directive && last > 0:
		return fmt.Sprintf("%s You were told so in turn %d; before anything else, do this and say what came of it: %s", text, last, action(f, rung, r))
	case rung == Directive:
		return text + " Before anything else, do this and say what came of it: " + action(f, rung, r)
	case last > 0:
		text += fmt.Sprintf(" You were told so in turn %d.", last)
	}
	return text + " " + action(f, rung, r)
}

// opening of what is said: what was seen, where and since when. What is decided by the clock is decided in no turn, and an agent that asks no
// model has none.
func opening(f anomaly.Finding, turn TurnContext) string {
	since := fmt.Sprintf("first seen in turn %d, %s ago", f.Turn, age(turn.Now.Sub(f.Since)))
	switch {
	case turn.Clock && f.Turn == 0:
		since = fmt.Sprintf("first seen %s ago", age(turn.Now.Sub(f.Since)))
	case turn.Clock:
	case turn.Turn <= f.Turn:
		since = "first seen now"
	}
	where := ""
	if !turn.Clock {
		where = fmt.Sprintf("Turn %d: ", turn.Turn)
	}
	return fmt.Sprintf("%s %s%s (%s).", Tag, where, f.Evidence, since)
}

// toAnother says that what is said on a rung is read by another agent than the one that was told something before, or by people alone.
func toAnother(rung Rung) bool { return rung == Restart || rung == Block }

const (
	// maxTried calls are listed in a summary, and maxArguments characters of the arguments of each are quoted.
	maxTried     = 4
	maxArguments = 120
)

// Summary says what was left out of a conversation. It quotes what the model has called, and nothing of what tools have answered: that is not for
// a supervisor to repeat.
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
		return "Your work was held here so that a person could look at it. " + action(f, Directive, r)
	case Rollback:
		return "The workspace has gone back to the last valid checkpoint: look at what is there now, and choose another approach."
	case Restart:
		return "An agent that worked on this task before you was ended for that reason. The workspace is as the last valid checkpoint has it: choose another approach."
	case Block:
		return "The agent was ended: a person must decide how the work goes on."
	case Observe, Nudge, Directive, Surgery:
	}
	switch f.Kind {
	case anomaly.PaceEscalated:
		return pace(f.Level, r.Plan)
	case anomaly.CascadeFailure:
		return "Stop and verify the working directory, the paths and the environment before you go on."
	case anomaly.ContextPressure:
		if f.Tier > anomaly.Warn {
			return "Begin nothing new: finish what you are at and give your answer."
		}
		return "Finish the current step, then sum up what is done and what is open."
	case anomaly.AgentStalled:
		return onward(f)
	case anomaly.AgentLooping:
	}
	return otherwise(f)
}

// onward is what to do when nothing gets on.
func onward(f anomaly.Finding) string {
	switch f.Detector {
	case anomaly.Failures:
		return "Find out what these failures have in common before you try another way, or say what blocks you."
	case anomaly.Trials:
		return "Find the cause of the failure before you change anything else, or say what blocks you."
	case anomaly.Refusals:
		return "Take back what the policy refuses and do the task within it, or say what blocks you."
	}
	return "Reassess the approach: take the smallest next step of the task that changes something, or say what blocks you."
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

// otherwise is what to do instead of repeating something.
func otherwise(f anomaly.Finding) string {
	switch f.Detector {
	case anomaly.BadArguments:
		return "Read which parameters the tool has, and send exactly those."
	case anomaly.SameResult:
		return "You have this result: use it, or find out something else."
	case anomaly.Oscillation:
		return "Decide by what the results say, and take another next step."
	case anomaly.Reversal:
		return "Find out which of the two versions is right before you edit again."
	case anomaly.SameWords:
		return "Take the next step with a tool, or say what keeps you from it."
	}
	return opposite(f.Tool)
}

// opposites are what to do instead of calling a kind of tool again, by what is in the names of tools.
var opposites = []struct {
	names []string
	do    string
}{
	{[]string{"edit", "patch", "write", "replace"}, "Read the file again, and edit it by what it says now."},
	{[]string{"bash", "shell", "exec", "command", "terminal"}, "Read the error, and check what the command assumes with a smaller one before you try a different approach."},
	{[]string{"read", "glob", "grep", "search", "list"}, "List the directory to see what is there, and go by that."},
	{[]string{"web", "fetch", "http", "browser"}, "Go on without it: use what is in the repository."},
}

func opposite(tool string) string {
	for _, o := range opposites {
		for _, name := range o.names {
			if strings.Contains(strings.ToLower(tool), name) {
				return o.do
			}
		}
	}
	return fmt.Sprintf("Do not call %s again like this: read the error, and try a different approach.", cmp.Or(tool, "it"))
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// networkRecheck covers an event that was missed; normally a change of network policies wakes the Feature.
	networkRecheck = time.Minute
	// namedOpenings bounds how many network policies a message names.
	namedOpenings = 3
)

// forbids reports whether no agent may work because other network policies open its network.
func (i Isolation) forbids() bool { return i.Enforce && i.open() }

func (i Isolation) open() bool { return len(i.Openings) > 0 || i.TooMany > 0 }

// exposedSummary is where a Feature stands without an agent, or whose agent is ending: only a user can change the network policies of a
// project. It continues by itself after that.
func exposedSummary(i Isolation) summary {
	return summary{phase: Blocked, reason: protocol.ReasonNetworkOpened, stalled: true, message: i.message() +
		" The policy says isolation: Enforce, so neither an agent nor a gate in a pod of its own runs until then. Tidewaiter keeps the work, and it continues by itself."}
}

// message names the network policies and says what to do.
func (i Isolation) message() string {
	if i.TooMany > 0 {
		return fmt.Sprintf("The project has more than %d NetworkPolicies, and Tidewaiter looks at no more: one of them may open the network of the agent's pod. Delete some.", i.TooMany)
	}
	var parts []string
	for n, o := range i.Openings {
		if n == namedOpenings {
			parts = append(parts, fmt.Sprintf("%d more do", len(i.Openings)-n))
			break
		}
		parts = append(parts, fmt.Sprintf("NetworkPolicy %s allows %s", o.Policy, directions(o.Directions)))
	}
	return fmt.Sprintf("The agent's pod may talk to more than intake and gateway: %s. Leave the pods of Features out of spec.podSelector with "+
		"matchExpressions: [{key: tidewaiter.dev/feature, operator: DoesNotExist}], or delete it.", strings.Join(parts, ", "))
}

func directions(list []isolation.Direction) string {
	var words []string
	for _, d := range list {
		words = append(words, strings.ToLower(string(d)))
	}
	return strings.Join(words, " and ")
}

// isolated says whether anything but the Feature's own network policy opens the network of its agent.
func (s situation) isolated(at summary) Condition {
	was := s.o.Memory.Condition(ConditionIsolated)
	switch i := s.o.Isolation; {
	case at.phase == Delivered && was.Type != "":
		return was // Nothing will run again.
	case i.forbids():
		return Condition{ConditionIsolated, False, protocol.ReasonNetworkOpened, exposedSummary(i).message}
	case i.open():
		return Condition{ConditionIsolated, False, protocol.ReasonNetworkOpened, i.message() + " Agents run all the same: the policy says isolation: Warn."}
	default:
		return Condition{ConditionIsolated, True, ReasonIsolated, "No NetworkPolicy lets the agent's pod talk to more than intake and gateway."}
	}
}

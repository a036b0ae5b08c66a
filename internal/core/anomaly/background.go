// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Started is the start time of the agent. Its processes do not come from calls of an earlier agent.
func (s *State) Started(at time.Time) {
	if s.Acted.Before(at) {
		s.Acted = time.Time{}
	}
}

// Awaits is the background command that the agent waits for. The agent waits if its model has given its last answer, no request and no tool
// is in progress, and a process is running that started after the model's first tool call. Earlier processes, such as a tool server, belong
// to the agent itself. The text is empty if it waits for none. The name is quoted, since the agent chooses it.
func (s *State) Awaits(r Thresholds, now time.Time) string {
	if s.Used.Idle || s.Acted.IsZero() || now.Sub(s.Pulsed) > r.Silence || !s.quiet(r, now) {
		return ""
	}
	var oldest *Command
	for i := range s.Used.Commands {
		c := &s.Used.Commands[i]
		// The list has the youngest first. What runs in a shell says more than the shell.
		if started := s.Pulsed.Add(-c.Age); started.After(s.Acted) && (oldest == nil || !shell(c.Name)) {
			oldest = c
		}
	}
	if oldest == nil {
		return ""
	}
	return fmt.Sprintf("the background command %s", strconv.QuoteToASCII(oldest.Name))
}

// quiet says that no request and no tool is at work, and that the conversation about the task has come to an end.
func (s *State) quiet(r Thresholds, now time.Time) bool {
	ended := false
	for _, t := range s.Threads {
		switch {
		case (look{s, t, r, now}).gone():
		case !t.Asked.IsZero(), t.Calls:
			return false
		case t.main():
			ended = ended || !t.Answered.IsZero()
		}
	}
	return ended
}

// shell says whether a process is one.
func shell(name string) bool { return slices.Contains([]string{"sh", "bash", "dash", "zsh"}, name) }

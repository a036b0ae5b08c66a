// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
)

// says takes what the model has said in the main thread: of directives, and of the rules that it broke.
func says(s *Service, text string) {
	if d := s.options.Directives; d != nil {
		d.Heard(directives.Words(text))
	}
	_, _ = understood(s, notice.Heard(text)) // it is in the log, and the agent is asked again
}

// understood takes what the agent says of rules that it broke, and says of how many it was asked. What cannot be kept has not been heard.
func understood(s *Service, said []notice.Understood) (n int, err error) {
	if len(said) == 0 || len(s.record.Board.Asks) == 0 {
		return 0, nil
	}
	list, next := s.record.Board.Acknowledge(said)
	if len(list) == 0 {
		return 0, nil
	}
	for i := range list {
		list[i].Turn = s.record.Turns
		if err := s.options.Acknowledged(list[i]); err != nil {
			s.options.Log.Warn("What the agent has acknowledged cannot be kept: it is asked again", "checkpoint", list[i].Checkpoint, "rule", list[i].Rule, "error", err.Error())
			return i, fmt.Errorf("the acknowledgment cannot be kept now, give it again: %w", err)
		}
	}
	s.record.Board = next
	s.keep(true)
	s.change()
	return len(list), nil
}

// Understood is what the agent says of rules that it broke by another way than its conversation.
func (s *Service) Understood(said ...notice.Understood) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := understood(s, said)
	if err == nil && n == 0 {
		return errors.New("no acknowledgment of this rule is due: the note about a checkpoint names the rules to acknowledge")
	}
	return err
}

// Silent are the broken rules that the agent was asked about twice without an answer, each in words.
func Silent(s *Service) []string {
	if s == nil { // there is no agent
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Board.Silent()
}

// tick is a turn of the agent. People are told when it has been silent for too long.
func tick(s *Service) {
	before := len(s.record.Board.Silent())
	s.record.Board.Tick()
	if len(s.record.Board.Silent()) != before {
		s.change()
	}
}

// Checked is a checkpoint of an agent that takes lines. One that asks no model has no other turns. It gives what the agent is to be asked once more.
func Checked(s *Service) (due []notice.Ask) {
	if s == nil { // there is no agent
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.record.asks() {
		tick(s)
	}
	if due = s.record.Board.Remind(); len(due) > 0 {
		s.keep(true)
	}
	return due
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"fmt"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// talk is one agent and its client.
type talk struct {
	book  conversation.Book
	lines string
	calls int
}

// work asks so many times with a system text, and calls a tool after each.
func (c *talk) work(system string, times int) (turn conversation.Turn) {
	for range times {
		turn = c.ask(system)
		c.calls++
		c.book.Answered(turn.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: fmt.Sprint("c", c.calls), Name: "run"}}})
		c.lines += fmt.Sprintf("call c%[1]d\nresult c%[1]d done\n", c.calls)
	}
	return turn
}

func (c *talk) ask(system string) conversation.Turn {
	return c.book.Observe(request{lines: c.lines, system: system, tools: true})
}

func (c *talk) answered(turn conversation.Turn) {
	c.book.Answered(turn.Thread, &conversation.Answer{Text: []byte("done"), Ended: true})
}

// TestTheMainThreadKeepsItsTurns, whatever its system text says later, and when its client compacts it.
func TestTheMainThreadKeepsItsTurns(t *testing.T) {
	for name, later := range map[string]func(c *talk){
		"a new date in the midst of work": func(c *talk) {
			c.work("Tuesday", 3)
		},
		"a new date in a session that a person resumes": func(c *talk) {
			c.answered(c.ask("Monday"))
			c.lines += "model done\nuser and now the tests\n"
			c.work("Tuesday", 3)
		},
		"a new date each time": func(c *talk) {
			for i := range 4 {
				c.work(fmt.Sprint("day ", i), 2)
			}
			c.work("Tuesday", 3)
		},
	} {
		for compaction, compact := range map[string]func(c *talk){
			"none": func(*talk) {},
			"asked for by a side call": func(c *talk) {
				c.book.Observe(request{lines: c.lines + "user summarize\n", system: "a summarizer"})
				c.lines = "user the summary\n"
			},
			"asked for by a call of an agent": func(c *talk) {
				c.book.Observe(request{lines: c.lines + "user summarize\n", system: "a summarizer", tools: true})
				c.lines = "user the summary\n"
			},
			"by the client alone": func(c *talk) {
				c.answered(c.ask("Tuesday"))
				c.lines = "user the summary\n"
			},
		} {
			t.Run(name+", compaction "+compaction, func(t *testing.T) {
				c := talk{lines: "user go\n"}
				before := c.work("Monday", 6)
				later(&c)
				middle := c.work("Tuesday", 1)
				compact(&c)
				after := c.work("Tuesday", 2)
				for _, turn := range []conversation.Turn{before, middle, after} {
					if turn.Kind != conversation.KindMain || turn.Thread != before.Thread {
						t.Errorf("it is thread %d, %s: turn %+v", turn.Thread, turn.Kind, turn)
					}
				}
				if after.Number <= middle.Number || middle.Number <= before.Number {
					t.Errorf("turns %d, %d and %d", before.Number, middle.Number, after.Number)
				}
			})
		}
	}
}

// TestACompactionOnANewDay: what goes on after a summary is the main thread, whatever its system text says.
func TestACompactionOnANewDay(t *testing.T) {
	c := talk{lines: "user go\n"}
	before := c.work("Monday", 6)
	c.answered(c.ask("Monday"))
	c.book.Observe(request{lines: c.lines + "user summarize\n", system: "a summarizer"})
	c.lines = "user the summary\n"
	if after := c.work("Tuesday", 2); after.Kind != conversation.KindMain || after.Thread != before.Thread {
		t.Errorf("%+v", after)
	}
}

// TestAnAgentThatIsAskedAboutTheWhole works for the main one as long as that waits for it.
func TestAnAgentThatIsAskedAboutTheWhole(t *testing.T) {
	c := talk{lines: "user go\n"}
	main := c.work("main", 6)
	asked := c.ask("main")
	c.book.Answered(asked.Thread, &conversation.Answer{Tools: []conversation.Tool{{ID: "task", Name: "task"}}})
	forked := c.lines + "user look into it\n"
	for i := range 3 {
		if turn := c.book.Observe(request{lines: forked, system: "another", tools: true}); turn.Thread == main.Thread || turn.Kind != conversation.KindSub {
			t.Fatalf("%+v", turn)
		}
		forked += fmt.Sprintf("call f%[1]d\nresult f%[1]d done\n", i)
	}
	c.lines += "call task\nresult task found\n"
	if turn := c.ask("main"); turn.Thread != main.Thread || turn.Kind != conversation.KindMain || len(turn.Steps) != 1 {
		t.Errorf("after the other agent: %+v", turn)
	}
}

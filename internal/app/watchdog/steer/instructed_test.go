// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

// instructed is an agent whose instructions have the directives of that moment.
func instructed(t *testing.T, a *agent) *person {
	p := newPerson(t, a)
	p.gives("use-dict", "Take the labels from the dictionary.")
	p.entries = []string{p.says("user", "## ACTIVE DIRECTIVES\n\n"+strings.Join(p.desk.Given().Instructions(), "\n")+"\n\n## INSTRUCTIONS\n\nAdd a form.")}
	return p
}

// TestADirectiveOfTheInstructions is not told again, in every dialect and after restarts. It counts as told once the model has answered, and is
// addressed like any other. What comes later is told as ever.
func TestADirectiveOfTheInstructions(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := instructed(t, a)
		p.want("before the first call", "use-dict Pending")
		_, exchange := p.send()
		exchange.Failed(failures.Answer{Status: 529})
		p.want("the provider is overloaded", "use-dict Pending")
		for range 3 {
			if sent := p.works(); strings.Contains(sent, supervisor) || strings.Count(sent, "Take the labels from the dictionary.") != 1 {
				t.Fatalf("told again: %s", sent)
			}
			p.want("the model has answered", "use-dict Active")
			p.restart()
		}
		p.gives("no-cookies", "Use no cookies.")
		if sent := p.works(); strings.Count(sent, "Use no cookies.") != 1 || strings.Count(sent, "Take the labels") != 1 {
			t.Errorf("told: %s", sent)
		}
		p.answers("DIRECTIVE use-dict: ADDRESSED - by web/dict.ts")
		p.want("after its word", "use-dict Addressed", "no-cookies Active")
	})
}

// TestAConversationWithoutItsInstructions gets the directive by a note, once.
func TestAConversationWithoutItsInstructions(t *testing.T) {
	for name, change := range map[string]func(p *person){
		"the agent did not pass them on":  func(p *person) { p.entries = []string{p.says("user", "Add a form.")} },
		"another session, after one turn": func(p *person) { p.works(); p.service.Anew(); p.entries = []string{p.says("user", "Add a form.")} },
		"in other words since": func(p *person) {
			p.orders.Directives[0].Description = "Take the labels from the dictionary. All of them."
			p.desk.Follow(p.orders)
			p.entries[0] = strings.ReplaceAll(p.entries[0], "Take the labels", "Take labels")
		},
		"compacted, with the mark in the summary": func(p *person) {
			for range 4 {
				p.works()
			}
			p.answers("Well.")
			_, after, _ := strings.Cut(p.desk.Given().Instructions()[1], "[")
			mark, _, _ := strings.Cut(after, "]")
			p.entries = []string{p.says("user", "Add a form. So far: a lot, and directive use-dict ["+mark+"].")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := instructed(t, newAgent(t, "anthropic"))
			change(p)
			for range 3 {
				if sent := p.works(); strings.Count(sent, "Take the labels from the dictionary.") != 1 || strings.Count(sent, supervisor) != 1 {
					t.Fatalf("told: %s", sent)
				}
			}
		})
	}
}

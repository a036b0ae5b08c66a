// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// clients alter something of the conversation in each request, as some CLIs do.
func clients(a *agent) map[string]func(entries []string) []string {
	sent := 0
	return map[string]func(entries []string) []string{
		"a reminder at the end of each request": func(entries []string) []string {
			return append(entries, a.says("user", "Keep to the plan."))
		},
		"a reminder with other words each time": func(entries []string) []string {
			sent++
			return append(entries, a.says("user", fmt.Sprintf("This is request %d.", sent)))
		},
		"a reminder in the last message": func(entries []string) []string {
			last := len(entries) - 1
			entries[last] = strings.Replace(entries[last], "package a", "package a // Keep to the plan.", 1)
			entries[last] = strings.Replace(entries[last], "Add a form.", "Add a form. Keep to the plan.", 1)
			return entries
		},
		"the time at the beginning": func(entries []string) []string {
			sent++
			entries[0] = a.says("user", fmt.Sprintf("It is %d o'clock. Add a form.", sent))
			return entries
		},
		"an early result cleared": func(entries []string) []string {
			at := slices.IndexFunc(entries, func(e string) bool { return strings.Contains(e, "package a") })
			if sent++; sent > 6 && at >= 0 {
				entries[at] = strings.Replace(entries[at], "package a", "cleared", 1)
			}
			return entries
		},
		"all old results cleared": func(entries []string) []string {
			if sent++; sent > 6 {
				for i := range max(0, len(entries)-3) {
					entries[i] = strings.Replace(entries[i], "package a", "cleared", 1)
				}
			}
			return entries
		},
	}
}

// TestNotesStayWhateverAClientAlters: what was said to a model stands in every later request of its conversation behind the same entry, though the
// client says something else elsewhere each time. It is forgotten with the entries behind which it stands.
func TestNotesStayWhateverAClientAlters(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		for name := range clients(a) {
			t.Run(name, func(t *testing.T) {
				a := newAgent(t, a.dialect.Name)
				a.client = clients(a)[name]
				p := newPerson(t, a)
				p.gives("use-dict", "Take the labels from the dictionary.")
				for turn := 1; turn <= 12; turn++ {
					sent := p.ask()
					if n := strings.Count(sent, "Take the labels from the dictionary."); n != 1 || turn > 6 && (strings.Count(sent, supervisor) != 2 || !strings.Contains(sent, "the same call")) {
						t.Fatalf("turn %d: told %d times of the directive, and %d times of anything: %s", turn, n, strings.Count(sent, supervisor), sent)
					}
					if turn > 1 && strings.Index(sent, "Take the labels") > strings.Index(sent, "call_1\"") {
						t.Fatalf("turn %d: told elsewhere: %s", turn, sent)
					}
					if at := strings.LastIndex(sent, supervisor); turn > 6 && (at < strings.Index(sent, "call_4\"") || at > strings.Index(sent, "call_6\"")) {
						t.Fatalf("turn %d: told elsewhere: %s", turn, sent)
					}
					if turn < 6 {
						p.entries = append(p.entries, p.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
						continue
					}
					p.entries = append(p.entries, p.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a","new_string":"b"}`, turn), fmt.Sprint("done ", turn))...)
					p.service.Moved()
				}
				p.entries = []string{a.entries[0], a.says("user", "Summary: nothing works.")}
				if sent := p.ask(); strings.Contains(sent, "the same call") {
					t.Errorf("said of what is not there any more: %s", sent)
				}
			})
		}
	})
}

// TestSaidBeforeAReminder: where a client repeats something at the end of each request, what is said stands before that, so that the next request
// begins with all that came before it.
func TestSaidBeforeAReminder(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.client = clients(a)["a reminder at the end of each request"]
		requests := a.loop(12)
		told := requests[len(requests)-1]
		common := told[:strings.LastIndex(told, a.says("user", "Keep to the plan."))]
		if !strings.Contains(common, supervisor) {
			t.Fatalf("told behind it: %s", told)
		}
		for range 3 {
			a.entries = append(a.entries, a.called("Edit", `{"file_path":"/workspace/b.go","old_string":"a","new_string":"b"}`, "done")...)
			if next := a.ask(); !strings.HasPrefix(next, common) {
				t.Fatalf("the request after it:\n%s\nis to begin with\n%s", next, common)
			}
		}
	})
}

// TestCutsStayWhateverAClientAlters: what was left out of a conversation stays left out of it.
func TestCutsStayWhateverAClientAlters(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		for name := range clients(a) {
			t.Run(name, func(t *testing.T) {
				a := newAgent(t, a.dialect.Name)
				a.client = clients(a)[name]
				a.policy.Anomalies.Ladder, a.policy.Anomalies.CheckEveryTurns = policy.RungSurgery, 1
				a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
				for range 12 {
					a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
					if strings.Contains(a.ask(), leftOut) {
						break
					}
				}
				for i := range 6 {
					a.entries = append(a.entries, a.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a","new_string":"b"}`, i), fmt.Sprintf("done %d", i))...)
					a.service.Moved()
					if next := a.ask(); strings.Count(next, leftOut) != 1 || strings.Count(next, "the host cannot be reached") != 1 {
						t.Fatalf("request %d after it: %s", i+1, next)
					}
				}
			})
		}
	})
}

// TestWhatIsLeftOutNoMore: where the client goes back into what was left out, nothing says that it is.
func TestWhatIsLeftOutNoMore(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.policy.Anomalies.Ladder, a.policy.Anomalies.CheckEveryTurns = policy.RungSurgery, 1
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		var back []string
		for i := range 12 {
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
			if i == 1 {
				back = slices.Clone(a.entries)
			}
			if strings.Contains(a.ask(), leftOut) {
				break
			}
		}
		a.entries = slices.Concat(back, []string{a.says("user", "Try it by hand.")})
		if sent := a.ask(); strings.Contains(sent, leftOut) || strings.Count(sent, "the host cannot be reached") != 2 {
			t.Errorf("after going back: %s", sent)
		}
	})
}

// askClosed sends the conversation with the beginning of an answer behind it, which is another one each time: nothing can be said there.
func (a *agent) askClosed() string {
	a.t.Helper()
	a.entries = append(a.entries, a.says("assistant", fmt.Sprintf("Well, %d", a.calls)))
	sent := a.ask()
	a.entries = a.entries[:len(a.entries)-1]
	return sent
}

// TestEarlierWordsInARequestWithoutAPlace: what was said before stands there all the same, also where something new cannot be said.
func TestEarlierWordsInARequestWithoutAPlace(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.loop(12)
	steps := len(a.book.steps)
	for len(a.book.steps) == steps && a.calls < 40 {
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		if sent := a.askClosed(); strings.Count(sent, supervisor) != 1 {
			t.Fatalf("said %d times: %s", strings.Count(sent, supervisor), sent)
		}
	}
	if sent := a.ask(); len(a.book.steps) == steps || strings.Count(sent, supervisor) != 2 {
		t.Errorf("said %d times: %s", strings.Count(sent, supervisor), sent)
	}
}

// TestWhatAltersTheRequestWaitsForAPlace: neither a turn without tools nor what is left out is taken for done in a request in which that cannot be said.
func TestWhatAltersTheRequestWaitsForAPlace(t *testing.T) {
	for rung, mark := range map[policy.Rung]string{policy.RungNoTools: "This turn has no tools", policy.RungSurgery: leftOut} {
		fails := func(calls int) (a *agent, sent string) {
			a = newAgent(t, "anthropic")
			if a.policy.Anomalies.CheckEveryTurns = 1; rung == policy.RungSurgery {
				a.policy.Anomalies.Ladder = rung
			}
			a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
			for range calls {
				a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
				if sent = a.ask(); strings.Contains(sent, mark) {
					break
				}
			}
			return a, sent
		}
		done := func(a *agent) (steps []protocol.SteeringStep) {
			return slices.DeleteFunc(slices.Clone(a.book.steps), func(x protocol.SteeringStep) bool { return x.Rung != string(rung) })
		}
		a, sent := fails(40)
		if !strings.Contains(sent, mark) {
			t.Fatalf("%s is never tried: %s", rung, sent)
		}
		a, _ = fails(a.calls - 2)
		for range 2 {
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
			if sent := a.askClosed(); a.bare(sent) || strings.Contains(sent, mark) || len(done(a)) > 0 {
				t.Errorf("%s in a request without a place: %+v: %s", rung, done(a), sent)
			}
		}
		a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
		sent = a.ask()
		digest := sha256.Sum256([]byte(sent))
		if steps := done(a); len(steps) != 1 || steps[0].Request != hex.EncodeToString(digest[:]) || strings.Count(sent, mark) != 1 ||
			rung == policy.RungNoTools && !strings.Contains(sent, `"tool_choice":{"type":"none"}`) || rung == policy.RungSurgery && steps[0].Before == "" {
			t.Errorf("%s: %+v: %s", rung, steps, sent)
		}
		a.entries = append(a.entries, a.called("Edit", `{"file_path":"/workspace/b.go","old_string":"a","new_string":"b"}`, "done")...)
		if next := a.ask(); strings.Count(next, mark) != 1 || a.bare(next) {
			t.Errorf("the request after %s: %s", rung, next)
		}
	}
}

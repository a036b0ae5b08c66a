// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import "slices"

const (
	// maxSearched bounds the entries at the end of a conversation that are searched for repetitions: the entries of some 150 turns.
	maxSearched = 512
	// enough exchanges in a row that are not repetitions end the search.
	enough = 3
)

// Span is a part of a conversation: the entries behind the first From ones, up to the first To ones.
type Span struct {
	From, To int
}

// Tried is a call that was made once or more often, in one way.
type Tried struct {
	Call    Call
	Failure Failure
	Times   int
}

// Repeats are exchanges of a model with its tools that add no information to the rest of a conversation. Surgery removes them.
type Repeats struct {
	// Spans of them, sorted by position, and Tried what the model called in them.
	Spans []Span
	Tried []Tried
}

// Repeats finds, at the end of a conversation, the exchanges that surgery may remove: failed tool calls, and calls that the model
// repeated later with the same result. The newest one stays. An exchange is everything that a model says until it gets results, and these
// results, so that no call loses its result. An exchange with anything else in it stays. The argument ends has the end of each entry.
func (b *Book) Repeats(r Request, ends []int, tool func(name string) bool) (found Repeats) {
	exchanges := b.exchanges(r, ends)
	if len(exchanges) == 0 {
		return Repeats{}
	}
	later := map[Digest]bool{}
	exchanges[len(exchanges)-1].join(later)
	others := 0
	for _, x := range slices.Backward(exchanges[:len(exchanges)-1]) {
		if len(found.Tried) >= MaxParts {
			break
		}
		if !x.repeats(later, tool) {
			if others++; others == enough {
				break
			}
			x.join(later)
			continue
		}
		others = 0
		x.join(later)
		found.add(x)
	}
	return found
}

// exchange of a model with its tools.
type exchange struct {
	Span

	calls []Call
	steps []Step
	// other says that something else is said in it.
	other bool
}

// exchanges at the end of a conversation. The first may be cut off at its beginning, and is left out then.
func (b *Book) exchanges(r Request, ends []int) (all []exchange) {
	first := max(0, len(ends)-maxSearched)
	at := 0
	if first > 0 {
		at = ends[first-1]
	}
	asks, begun := false, false
	for i := first; i < len(ends); i++ {
		entry, end, ok := r.Next(at)
		if !ok {
			break
		}
		at = end
		m := r.Message(entry).bounded()
		if m.Role == RoleModel && !asks {
			all, begun = append(all, exchange{Span: Span{From: i}}), i > first
		}
		if asks = m.Role == RoleModel; len(all) > 0 {
			x := &all[len(all)-1]
			x.To = i + 1
			x.hear(m, b.classifier)
		}
		if len(all) == 1 && !begun {
			all[0].other = true
		}
	}
	return all
}

func (x *exchange) hear(m Message, c *classifier) {
	if x.calls = append(x.calls, m.Calls...); len(x.calls) > MaxParts {
		x.calls, x.other = x.calls[:MaxParts], true
	}
	if m.Role == RoleModel {
		return
	}
	x.other = x.other || len(m.Results) == 0 || m.Text.Size > 0 || m.Images > 0 || m.Other != Digest{}
	for _, result := range m.Results {
		i := result.of(x.calls)
		if i < 0 {
			x.other = true
			continue
		}
		x.steps = append(x.steps, Step{Call: x.calls[i], Result: result.Text, Failure: c.failure(result)})
		x.calls = slices.Delete(x.calls, i, i+1)
	}
}

// repeats says whether an exchange may be left out, given what is said later.
func (x exchange) repeats(later map[Digest]bool, tool func(string) bool) bool {
	if x.other || len(x.calls) > 0 || len(x.steps) == 0 {
		return false
	}
	return !slices.ContainsFunc(x.steps, func(s Step) bool {
		return !later[s.digest()] && (s.Failure == FailureNone || !tool(s.Call.Name))
	})
}

// join what is said later than the exchanges before.
func (x exchange) join(later map[Digest]bool) {
	for _, s := range x.steps {
		later[s.digest()] = true
	}
}

// digest of a call with its result.
func (s Step) digest() Digest {
	return Sum([]byte(s.Call.Name), []byte{0}, s.Call.Arguments.Digest[:], s.Result.Digest[:], s.Result.Other[:])
}

// add an exchange that comes before the ones added so far.
func (r *Repeats) add(x exchange) {
	if len(r.Spans) > 0 && r.Spans[0].From == x.To {
		r.Spans[0].From = x.From
	} else {
		r.Spans = slices.Insert(r.Spans, 0, x.Span)
	}
	for _, s := range x.steps {
		i := slices.IndexFunc(r.Tried, func(t Tried) bool {
			return t.Call.Name == s.Call.Name && t.Call.Arguments.Digest == s.Call.Arguments.Digest && t.Failure == s.Failure
		})
		if i < 0 {
			i = len(r.Tried)
			r.Tried = append(r.Tried, Tried{Call: s.Call, Failure: s.Failure})
		}
		r.Tried[i].Times++
	}
}

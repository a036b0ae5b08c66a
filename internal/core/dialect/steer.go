// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// Note is a message of a supervisor to the model. It stands behind an entry of the conversation, and at the same place in every later
// request with this entry, so that the conversation stays consistent and the provider's cache stays useful.
type Note struct {
	// After is the number of entries before it.
	After int `json:"after"`
	// Text of the note.
	Text string `json:"text"`
}

// Cut leaves entries of the conversation out: whole calls with their results. What is to be known of them is in a Note before.
type Cut struct {
	// From and To are numbers of entries: the Cut removes the entries behind the first From ones, up to the first To ones.
	From int `json:"from"`
	To   int `json:"to"`
}

// Edits are the changes of a request with which steering makes a model do something else than before.
type Edits struct {
	Notes []Note `json:"notes,omitempty"`
	Cuts  []Cut  `json:"cuts,omitempty"`
	// NoTools lets the model call no tool in this turn.
	NoTools bool `json:"-"`
}

// Empty says that there are no edits.
func (s Edits) Empty() bool { return len(s.Notes)+len(s.Cuts) == 0 && !s.NoTools }

// errModel says that a note would stand behind what the model says itself.
var errModel = errors.New("the conversation does not end with the text for its model")

// Steer returns the body of a request with edits, in which every other byte stays the same. Ends are where its entries end in the list of
// the conversation. Steer leaves out what has no place in this request.
func (r Request) Steer(s Edits, ends []int) []byte {
	var edits []place
	for _, n := range together(s.Notes) {
		if slices.ContainsFunc(s.Cuts, func(c Cut) bool { return c.From < n.After && n.After <= c.To }) {
			continue // what it stands behind is left out
		}
		if more, err := r.note(n, ends); err == nil {
			edits = append(edits, more...)
		}
	}
	for _, c := range s.Cuts {
		if 1 <= c.From && c.From < c.To && c.To <= len(ends) {
			edits = append(edits, place{span: span{r.history.from + ends[c.From-1], r.history.from + ends[c.To-1]}})
		}
	}
	if s.NoTools && r.Tools {
		edits = append(edits, r.noTools())
	}
	return r.spliced(edits)
}

// HasPlace returns nil if a text can stand behind the given number of entries for the first time, and otherwise the reason why not. ends
// are as in Steer. No text can stand between a call and its result, or between parts of what the model says.
func (r Request) HasPlace(after int, ends []int) error {
	if _, err := r.note(Note{After: after}, ends); err != nil || after == len(ends) {
		return err
	}
	entry, next := r.entry(after, ends), r.entry(after+1, ends)
	switch {
	case r.dialect.message(r.body[entry.from:entry.to]).Role == conversation.RoleModel:
		return errModel
	case len(r.dialect.message(r.body[next.from:next.to]).Results) > 0:
		return errors.New("the result of a call follows")
	}
	return nil
}

// together makes one of the notes that stand in one place, so that an entry is changed once.
func together(notes []Note) (all []Note) {
	for _, n := range notes {
		if i := slices.IndexFunc(all, func(o Note) bool { return o.After == n.After }); i >= 0 {
			all[i].Text += "\n\n" + n.Text
			continue
		}
		all = append(all, n)
	}
	return all
}

// noTools is the dialect's own way to have no tool called. The list of tools stays, because what a provider has kept begins with it.
func (r Request) noTools() place {
	if r.choice == (span{}) {
		return place{span{r.open, r.open}, `"` + r.dialect.choice + `":` + r.dialect.noTools + ",", ""}
	}
	return place{r.choice, r.dialect.noTools, ""}
}

// Bare says that the request forbids tool calls in this turn, in the form that Steer writes.
func (r Request) Bare() bool { return string(r.body[r.choice.from:r.choice.to]) == r.dialect.noTools }

// note is the place of a note.
func (r Request) note(n Note, ends []int) ([]place, error) {
	if r.history == (span{}) {
		return nil, fmt.Errorf("the request has no member %q", r.dialect.History)
	}
	if n.After < 1 || n.After > len(ends) {
		return nil, fmt.Errorf("the conversation has %d entries, and none with number %d", len(ends), n.After)
	}
	entry, text := r.entry(n.After, ends), inside(n.Text)
	switch first := r.body[r.history.from]; {
	case first == '[':
		return r.dialect.behind(r, entry, text)
	case first == '"' && r.dialect.behindText != nil: // the whole conversation is one text of its user
		return r.dialect.behindText(entry, text), nil
	}
	return nil, fmt.Errorf("%q of the request is not a list", r.dialect.History)
}

// entry is where the entry with a number stands in the body.
func (r Request) entry(number int, ends []int) span {
	from, to := r.history.from, r.history.from+ends[number-1]
	switch {
	case number > 1:
		from += ends[number-2]
	case r.body[from] == '[':
		from++
	}
	for from < to && (r.body[from] == ',' || r.body[from] <= ' ') {
		from++
	}
	return span{from, to}
}

// behindMessage puts a text into a message of the user, behind what it says, and makes a message of its own behind any other but the
// model's: a request that ends with the model's words wants more of them.
func behindMessage(alone bool) func(r Request, entry span, text string) ([]place, error) {
	return func(r Request, entry span, text string) ([]place, error) {
		role, _, content := r.message(entry)
		own := []place{{span{entry.to, entry.to}, "," + chatTurn(false, text), ""}}
		switch {
		case role == "assistant":
			return nil, errModel
		case role == "tool" && alone, content == (span{}):
			return own, nil
		}
		end := span{content.to - 1, content.to - 1}
		switch value := r.body[content.from:content.to]; value[0] {
		case '"':
			if alone {
				return []place{{end, `\n\n` + text, ""}}, nil
			}
			return []place{{span{content.from, content.from}, `[{"type":"text","text":`, ""}, {span{content.to, content.to}, `},{"type":"text","text":"` + text + `"}]`, ""}}, nil
		case '[':
			return []place{{end, comma(value) + `{"type":"text","text":"` + text + `"}`, ""}}, nil
		default:
			return own, nil
		}
	}
}

// behindItem is an item of its own, of the developer: so does the API call who stands above its user. What the model has thought or called is not
// all that it says.
func behindItem(r Request, entry span, text string) ([]place, error) {
	if _, kind, _ := r.message(entry); kind == "reasoning" || strings.HasSuffix(kind, "_call") {
		return nil, errModel
	}
	return []place{{span{entry.to, entry.to}, "," + responsesNote(text), ""}}, nil
}

func responsesNote(text string) string {
	return `{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + text + `"}]}`
}

// behindText makes a list of a conversation that is one text.
func behindText(entry span, text string) []place {
	return []place{{span{entry.from, entry.from}, `[{"type":"message","role":"user","content":[{"type":"input_text","text":`, ""}, {span{entry.to, entry.to}, "}]}," + responsesNote(text) + "]", ""}}
}

// message gives the role and the type of an entry, and where its content stands in the body.
func (r Request) message(entry span) (role, kind string, content span) {
	if r.body[entry.from] != '{' {
		return "", "", span{}
	}
	for member, at := range membersAt(r.body, entry.from) {
		switch value := r.body[at.from:at.to]; member {
		case "role":
			role, _ = text(value) // anything but a text does not count as a role
		case "type":
			kind, _ = text(value)
		case "content":
			content = at
		}
	}
	return role, kind, content
}

// Cutting adds spans to cuts: spans that overlap, or follow one another, become one.
func Cutting(cuts []Cut, spans []conversation.Span) []Cut {
	all := slices.Clone(cuts)
	for _, s := range spans {
		all = append(all, Cut(s))
	}
	slices.SortFunc(all, func(a, b Cut) int { return cmp.Compare(a.From, b.From) })
	var joined []Cut
	for _, c := range all {
		if n := len(joined); n > 0 && c.From <= joined[n-1].To {
			joined[n-1].To = max(joined[n-1].To, c.To)
			continue
		}
		joined = append(joined, c)
	}
	return joined
}

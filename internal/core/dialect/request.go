// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Request is the body of a request with the places in it that are spliced. It is one JSON object, whose member "model" names the model unless
// the path does.
type Request struct {
	dialect Dialect
	body    []byte
	// room is where the request is written with what is put into it; nil for new memory.
	room []byte
	// beside has the system prompt and the tools of a request before; nil for none.
	beside *Beside
	// known is what was known of the conversation when the request was read.
	known conversation.Known
	// Model that the request names.
	Model string
	// open is where the members begin.
	open int
	// model, system, history, choice and tools are where these members' values stand; zero where there is none.
	model, system, history, choice, tools span
	// Tools says that the model may call tools.
	Tools bool
	// Streamed says that the request wants the answer as a stream of events, and Reasons that it wants the model to think before it answers.
	Streamed, Reasons bool
	// TakenOut are what Filter has taken out, by the names under which policies allow it.
	TakenOut []string
	// wall are the places that Filter replaces, and top the members of the request as it has found them.
	wall []place
	top  []entry
}

// Edit is a change of a request.
type Edit struct {
	// Model to ask instead.
	Model string
	// Before is text to insert before everything that the agent says.
	Before Quoted
	// Objections come after everything else, in their sequence.
	Objections []Objection
	// Without these members. Call Filter before.
	Without Names
	// Limit is how many tokens a choice of the answer may have; 0 for what the request says. LimitMember is the member to add for it if the
	// request has none; empty for the dialect's own.
	Limit       int64
	LimitMember string
	// Unread members do not bound answers of the backend, see Limit: if Limit is set, the edit removes them.
	Unread Names
	// Usage makes the provider count the tokens of a streamed answer. It is for a request that LacksUsage, and has no effect if that member is left out.
	Usage bool
	// Room is memory that the request may be written to, up to its capacity; nil for new memory.
	Room []byte
}

// Objection is a rejected answer of the model, and the text that objects to it.
type Objection struct {
	// Answer may be empty.
	Answer, Text string
}

// span of a value in a body, quotes included.
type span struct{ from, to int }

// place where a text goes: what stands between from and to is replaced by before, the text as the inside of a JSON string,
// and after.
type place struct {
	span

	before, after string
}

const (
	// maxModel is the longest name of a model, in bytes of JSON: what Bedrock takes
	// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html). A name stays for as long as the answer takes.
	maxModel = 2048
	// maxMembers of one object: a decoder keeps their names, which takes many times what they have. Objects of APIs have less than 100, and
	// objects of tool calls some thousand.
	maxMembers = 10_000
	// fewNames is the size of a request, in bytes, from which on its objects are counted before it is read.
	fewNames = 1 << 20
)

var (
	errCrowded   = fmt.Errorf("the request has an object with more than %d members", maxMembers)
	errLongModel = fmt.Errorf(`the member "model" of the request has more than %d bytes`, maxModel)
)

// errNoModel says that a request names no model.
var errNoModel = errors.New(`the request has no member "model"`)

// ReadRequest reads a body, whose bytes it keeps. It fails for anything but a JSON object, and for an object that has a name twice: gateway
// and provider could read different ones.
func (d Dialect) ReadRequest(body []byte) (Request, error) {
	r := Request{dialect: d, body: body}
	if len(body) > fewNames && crowded(body) {
		return r, errCrowded
	}
	// Whether a text is valid in every detail is the provider's business: JavaScript cuts characters in half.
	// A buffer is read where it is, without a copy.
	in := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	first, err := in.ReadToken()
	if err != nil {
		return r, notJSON(err)
	}
	if first.Kind() != '{' {
		return r, errors.New("the request is not a JSON object")
	}
	r.open = int(in.InputOffset())
	for members := 1; in.PeekKind() == '"'; members++ {
		if members > maxMembers { // Filter keeps each
			return r, errCrowded
		}
		name, err := in.ReadToken()
		if err != nil {
			return r, notJSON(err)
		}
		member := name.String()
		value, err := in.ReadValue()
		if err != nil {
			return r, notJSON(err)
		}
		to := int(in.InputOffset())
		at := span{to - len(value), to}
		if err := r.member(member, value, at); err != nil {
			return r, err
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return r, notJSON(err)
	}
	if rest := bytes.Trim(body[in.InputOffset():], " \t\r\n"); len(rest) > 0 { // what JSON takes for space, and nothing else
		return r, errors.New("the request has data after its JSON")
	}
	if r.Model == "" && !d.inPath {
		return r, errNoModel
	}
	return r, nil
}

// notJSON says what is wrong with a request, and where. Its names are as long as the request, and stand in messages and in the log.
func notJSON(err error) error {
	syntactic, is := errors.AsType[*jsontext.SyntacticError](err)
	if !is {
		return fmt.Errorf("the request is not JSON: %w", err)
	}
	short := *syntactic
	if pointer := string(short.JSONPointer); len(pointer) > maxQuoted {
		short.JSONPointer = jsontext.Pointer(plain.CutBytes(pointer, maxQuoted))
	}
	return fmt.Errorf("the request is not JSON: %w", &short)
}

// crowded says that an object has too many members. What it is given need not be JSON.
func crowded(body []byte) bool {
	var open []int // members so far of each object that has not ended
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '"':
			for at++; at < len(body) && body[at] != '"'; at++ {
				if body[at] == '\\' {
					at++
				}
			}
		case '{':
			if open = append(open, 0); len(open) > maxMembers { // no decoder goes so deep
				return true
			}
		case '}':
			open = open[:max(0, len(open)-1)]
		case ':':
			if last := len(open) - 1; last >= 0 {
				if open[last]++; open[last] > maxMembers {
					return true
				}
			}
		}
	}
	return false
}

// member of the request, and where its value stands.
func (r *Request) member(name string, value jsontext.Value, at span) error {
	if canonical := r.dialect.canonical; canonical != nil {
		name = canonical(name)
	}
	put := func(to *span) error {
		if *to != (span{}) {
			return twice(name)
		}
		*to = at
		return nil
	}
	var errs []error
	switch name {
	case "model":
		if len(value) > maxModel+len(`""`) {
			return errLongModel
		}
		if value.Kind() != '"' || json.Unmarshal(value, &r.Model) != nil {
			return errors.New(`the member "model" of the request is not a string`)
		}
		errs = append(errs, put(&r.model))
	case "stream":
		r.Streamed = value.Kind() == 't'
	case "reasoning", "reasoning_effort", "thinking": // of Responses, Chat Completions and Messages
		r.Reasons = r.Reasons || value.Kind() != 'n'
	case r.dialect.choice:
		errs = append(errs, put(&r.choice))
	case "tools":
		r.Tools = value.Kind() == '[' && comma(value) != ""
		errs = append(errs, put(&r.tools))
	}
	if name == r.dialect.System {
		errs = append(errs, put(&r.system))
	}
	if name == r.dialect.History {
		errs = append(errs, put(&r.history))
	}
	return errors.Join(errs...)
}

// twice says that a member is there in two spellings.
func twice(name string) error {
	return fmt.Errorf("the request has the member %q in two spellings", name)
}

// Bytes of the request as it came.
func (r Request) Bytes() []byte { return r.body }

// Body is the request with an edit; every other byte stays the same. It fails if the request has no place for the text.
func (r Request) Body(e Edit) ([]byte, error) {
	if e.Limit > 0 { // which stands in the member that is read: some servers refuse both
		e.Without = slices.Concat(e.Without, e.Unread)
	}
	edits := append(r.removed(e.Without), r.wall...)
	if e.Model != r.Model && r.model != (span{}) {
		edits = append(edits, place{r.model, `"` + inside(e.Model), `"`})
	}
	if e.Usage && !e.Without.has(foldedOptions) {
		edits = append(edits, r.usage()...)
	}
	if e.Limit > 0 {
		edits = append(edits, r.dialect.limits.lowered(r, e.Limit, e.LimitMember, e.Without)...)
	}
	if e.Before.Size() > 0 {
		at, err := r.dialect.place(r)
		if err != nil {
			return nil, err
		}
		at.before += e.Before.text
		edits = append(edits, at)
	}
	if len(e.Objections) > 0 {
		more, err := r.after(e)
		if err != nil {
			return nil, err
		}
		edits = append(edits, more...)
	}
	if e.Room != nil {
		r.room = e.Room
	}
	return r.spliced(edits), nil
}

// spliced is the body with some places replaced.
func (r Request) spliced(edits []place) []byte {
	if len(edits) == 0 {
		return r.body
	}
	// What is put before something comes before the change of that.
	slices.SortStableFunc(edits, func(a, b place) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	size := len(r.body)
	for _, e := range edits {
		size += len(e.before) + len(e.after)
	}
	body, done := slices.Grow(r.room[:0], size), 0
	for _, e := range edits {
		if e.from < done { // within what is left out
			continue
		}
		body = append(body, r.body[done:e.from]...)
		body = append(append(body, e.before...), e.after...)
		done = e.to
	}
	return append(body, r.body[done:]...)
}

// after are the places of answers and of what is said about them, at the end of the conversation.
func (r Request) after(e Edit) ([]place, error) {
	if r.history == (span{}) {
		return nil, fmt.Errorf("the request has no member %q", r.dialect.History)
	}
	var turns []string
	for _, o := range e.Objections {
		if strings.TrimSpace(o.Answer) != "" { // no provider takes empty turns
			turns = append(turns, r.dialect.turn(true, inside(o.Answer)))
		}
		turns = append(turns, r.dialect.turn(false, inside(o.Text)))
	}
	more := strings.Join(turns, ",")
	start, end := r.history.from, r.history.to
	switch list := jsontext.Value(r.body[start:end]); list.Kind() {
	case '[':
		sep := comma(list)
		if e.Before.Size() > 0 && r.system == r.history { // which makes it a list of one
			sep = ","
		}
		return []place{{span{end - 1, end - 1}, sep + more, ""}}, nil
	case '"': // the whole conversation is one text of its user
		head, tail, _ := strings.Cut(r.dialect.turn(false, "TEXT"), `"TEXT"`)
		return []place{{span{start, start}, "[" + head, ""}, {span{end, end}, tail + "," + more + "]", ""}}, nil
	default:
		return nil, fmt.Errorf("%q of the request is neither a string nor a list", r.dialect.History)
	}
}

// Quoted is a text in the quoted form of requests, so that a text for many requests is quoted once. The zero value is empty.
type Quoted struct{ text string }

// Quote a text.
func Quote(text string) Quoted { return Quoted{inside(text)} }

// Size of it in a request, in bytes.
func (q Quoted) Size() int { return len(q.text) }

// inside is a text as it stands between the quotes of a JSON string. What is not UTF-8 is replaced.
func inside(text string) string {
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// placeIn is the place before the text of a member: in front of a string, of a list of text blocks, or a new member.
func (r Request) placeIn(member string) (place, error) {
	if r.system == (span{}) {
		return place{span{r.open, r.open}, `"` + member + `":"`, `",`}, nil // a request has a model, so something follows
	}
	return r.placeBefore(r.system, member)
}

// placeBefore is the place before a text: a string, or a list of text blocks.
func (r Request) placeBefore(text span, name string) (place, error) {
	start := span{text.from + 1, text.from + 1}
	switch value := jsontext.Value(r.body[text.from:text.to]); value.Kind() {
	case '"':
		return place{start, "", ""}, nil
	case 'n':
		return place{text, `"`, `"`}, nil
	case '[':
		// If the API of a dialect takes no list there, its provider says so.
		return place{start, `{"type":"text","text":"`, `"}` + comma(value)}, nil
	default:
		return place{}, fmt.Errorf("%q of the request is neither a string nor a list", name)
	}
}

// comma goes between an element that is put first and the elements of a list.
func comma(list []byte) string {
	if len(bytes.TrimSpace(list[1:len(list)-1])) == 0 {
		return ""
	}
	return ","
}

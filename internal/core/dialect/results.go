// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// Results are the tool results that are new in this request, in the sequence of the request; more is the number of further ones. Only the
// request decides what is new, so that no state is needed: the results behind the last entry that the model has said. Entries of the model
// at the end are how its answer is to begin, and do not count as that. So a repeated request has the same results, and a request whose
// client writes text of the model behind the results has none of them.
//
// Filter must have accepted the request: each name then has the spelling that this function reads. The cost is linear in the request, and
// the memory is bounded.
func (r Request) Results(bounds conversation.GivenBounds) (list []conversation.Given, more int64) {
	said, given := r.lastSaid()
	t := taker{bounds: bounds, room: bounds.Texts}
	for entry := range r.entries(given) {
		r.dialect.tools.results(entry, t.take)
	}
	t.name(func(take func(id, name []byte)) {
		for entry := range r.entries(said) {
			r.dialect.tools.calls(entry, take)
		}
	})
	return t.list, t.more
}

// tools is how a dialect writes tool calls and their results in entries of the history, which are objects.
type tools struct {
	// model says whether the model has said an entry.
	model func(entry []byte) bool
	// calls of an entry of the model: the ID and the name of each, as JSON; nil where there is none.
	calls func(entry []byte, take func(id, name []byte))
	// results of any other entry.
	results func(entry []byte, take func(result))
}

// result of a tool as it stands in a request, each value as JSON; nil where there is none.
type result struct {
	id, name []byte
	// given is what the tool has given, and beside is its other content without text.
	given, beside []byte
	failed        bool
}

// lastSaid is where the last entries of the model stand in the list of the history that something follows, and where that stands. Nothing is said
// where the model has said nothing.
func (r Request) lastSaid() (said, given span) {
	var before span // the entries of the model before the entries of said
	last, at := false, 0
	for {
		entry, end, ok := history{r}.Next(at)
		if !ok {
			break
		}
		model := entry[0] == '{' && r.dialect.tools.model(entry)
		if model && !last {
			before, said = said, span{at, end}
		}
		if model {
			said.to = end
		}
		last, at = model, end
	}
	if last {
		return before, span{before.to, said.from}
	}
	return said, span{said.to, at}
}

// entries of the history that are objects, in a part of its list.
func (r Request) entries(part span) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := part.from; at < part.to; {
			entry, end, ok := history{r}.Next(at)
			if !ok || entry[0] == '{' && !yield(entry) {
				return
			}
			at = end
		}
	}
}

// taker keeps results within bounds.
type taker struct {
	bounds conversation.GivenBounds
	// room for texts, in bytes.
	room int
	list []conversation.Given
	more int64
}

func (t *taker) take(r result) {
	if len(t.list) >= t.bounds.Results {
		t.more++
		return
	}
	given := conversation.Given{Call: headOf(r.id, conversation.MaxGivenName), Tool: headOf(r.name, conversation.MaxGivenName), Failed: r.failed}
	most := max(0, min(t.bounds.Text, t.room))
	if most > 0 {
		most += t.bounds.Beyond
	}
	w := newContent(sha256.New(), most)
	if is(r.given) {
		w.add(r.given)
	}
	if is(r.beside) {
		w.next()
		w.pass(r.beside, "[parts]")
	}
	given.Bytes, given.SHA256, given.Text = w.end()
	t.room -= min(len(given.Text), t.bounds.Text)
	t.list = append(t.list, given)
}

// name the tools of results by the calls that they are of.
func (t *taker) name(calls func(take func(id, name []byte))) {
	names := map[string]string{}
	for _, g := range t.list {
		if g.Call != "" && g.Tool == "" {
			names[g.Call] = ""
		}
	}
	if len(names) == 0 {
		return
	}
	calls(func(id, name []byte) {
		call := headOf(id, conversation.MaxGivenName)
		if known, wanted := names[call]; wanted && known == "" {
			names[call] = headOf(name, conversation.MaxGivenName)
		}
	})
	for i, g := range t.list {
		if g.Tool == "" {
			t.list[i].Tool = names[g.Call]
		}
	}
}

// headOf is the beginning of a name, however long it is; empty for anything but text.
func headOf(value []byte, most int) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1:min(len(value)-1, 1+most)])
	}
	const longest = len(`\u0000`)
	if len(value) <= longest*most { // what is read takes as much as what is there
		plain, _ := text(value)
		return plain[:min(len(plain), most)]
	}
	w := newContent(nil, most)
	w.words(value)
	_, _, text := w.end()
	return text
}

// content goes through what a tool has given: all of it counts and is digested, and the beginning of its text is kept.
type content struct {
	all  *bufio.Writer
	sink sink
	// begun says that something has been added.
	begun bool
}

// sink digests and counts what it is given, and keeps the beginning of it.
type sink struct {
	digest hash.Hash // nil for none
	size   int64
	text   []byte
	most   int
	// mute keeps nothing.
	mute bool
}

// Write implements io.Writer, which a bufio.Writer writes to.
func (s *sink) Write(p []byte) (int, error) {
	if s.digest != nil {
		s.digest.Write(p)
	}
	s.size += int64(len(p))
	if !s.mute {
		s.keep(p)
	}
	return len(p), nil
}

func (s *sink) keep(p []byte) { s.text = append(s.text, p[:min(len(p), s.most-len(s.text))]...) }

// pieces is how much of a text is digested at once, in bytes.
const pieces = 1 << 10

func newContent(digest hash.Hash, most int) *content {
	c := &content{sink: sink{digest: digest, most: most}}
	c.all = bufio.NewWriterSize(&c.sink, pieces)
	return c
}

// end gives the size of all, its digest and the beginning of its text.
func (c *content) end() (size int64, digest, text string) {
	_ = c.all.Flush() // a sink takes everything
	if c.sink.digest != nil {
		digest = hex.EncodeToString(c.sink.digest.Sum(nil))
	}
	return c.sink.size, digest, string(c.sink.text)
}

// add a value: a text, a list of parts, or something else.
func (c *content) add(value []byte) {
	if value[0] != '[' {
		c.part(value)
		return
	}
	for part := range plainElements(value) {
		c.part(part)
	}
}

// next part comes, behind those before it.
func (c *content) next() {
	if c.begun {
		_ = c.all.WriteByte('\n')
	}
	c.begun = true
}

// part of a result.
func (c *content) part(value []byte) {
	c.next()
	switch value[0] {
	case '"':
		c.words(value)
		return
	case '{':
		var kind, said []byte
		for name, at := range membersAt(value, 0) {
			switch name {
			case "type":
				kind = value[at.from:at.to]
			case "text":
				said = value[at.from:at.to]
			}
		}
		switch {
		case len(kind) == 0 || kind[0] != '"': // as the commands of a shell have it
		case len(said) > 0 && said[0] == '"' && (isWord(kind, "text") || isWord(kind, "input_text") || isWord(kind, "output_text")):
			c.words(said)
			return
		default:
			c.pass(value, "["+headOf(kind, maxQuoted)+"]")
			return
		}
	}
	_, _ = c.all.Write(value)
}

// pass counts and digests a value, and says something else in the text.
func (c *content) pass(value []byte, instead string) {
	_ = c.all.Flush()
	c.sink.mute = true
	_, _ = c.all.Write(value)
	_ = c.all.Flush()
	c.sink.mute = false
	c.sink.keep([]byte(instead))
}

// words of a string, without a copy of all of it.
func (c *content) words(value []byte) {
	inside := value[1 : len(value)-1]
	for len(inside) > 0 {
		plain := bytes.IndexByte(inside, '\\')
		if plain < 0 {
			plain = len(inside)
		}
		_, _ = c.all.Write(inside[:plain])
		if inside = inside[plain:]; len(inside) == 0 {
			return
		}
		if at := strings.IndexByte(`"\/bfnrt`, inside[1]); at >= 0 {
			_ = c.all.WriteByte("\"\\/\b\f\n\r\t"[at])
			inside = inside[2:]
			continue
		}
		escape := inside[:escaped(inside)]
		var small [32]byte
		quoted := append(append(append(small[:0], '"'), escape...), '"')
		character, _ := jsontext.AppendUnquote(nil, quoted) // one that is cut in half has a mark there
		_, _ = c.all.Write(character)
		inside = inside[len(escape):]
	}
}

// escaped is how many bytes the \u at the beginning of a text has: two make one character where both are halves of it.
func escaped(text []byte) int {
	const one, both = len(`\uD83D`), len(`\uD83D\uDE00`)
	half := func(from int, second string) bool {
		return len(text) >= from+one && text[from] == '\\' && text[from+1] == 'u' && text[from+2]|0x20 == 'd' && strings.IndexByte(second, text[from+3]|0x20) >= 0
	}
	if half(0, "89ab") && half(one, "cdef") {
		return both
	}
	return one
}

// isWord says that a value is the word of plain letters, however it is escaped.
func isWord(value []byte, word string) bool {
	if len(value) == len(word)+2 {
		return string(value[1:len(value)-1]) == word && value[0] == '"'
	}
	return len(value) <= 6*len(word)+2 && bytes.IndexByte(value, '\\') >= 0 && headOf(value, len(value)) == word
}

// endsIn says that a value is a text that ends so.
func endsIn(value []byte, end string) bool {
	if len(value) < 2 || bytes.IndexByte(value, '\\') < 0 {
		return bytes.HasSuffix(value, []byte(end+`"`))
	}
	return strings.HasSuffix(headOf(value, maxQuoted), end)
}

// partsIn gives the objects of a list that is a member, or the one object that it is.
func partsIn(entry []byte, member string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		list, has := valueOf(entry, 0, member)
		switch {
		case !has:
		case list[0] == '{':
			yield(list)
		case list[0] == '[':
			for part := range plainElements(list) {
				if part[0] == '{' && !yield(part) {
					return
				}
			}
		}
	}
}

// someOf the members of an object, five at most, in the order of these names; nil for one that is not there.
func someOf(object []byte, names ...string) (values [5][]byte) {
	for name, at := range membersAt(object, 0) {
		for i, wanted := range names {
			if name == wanted {
				values[i] = object[at.from:at.to]
			}
		}
	}
	return values
}

// is says that there is a value that is not null.
func is(value []byte) bool { return len(value) > 0 && value[0] != 'n' }

// saidBy says whether an entry has a role.
func saidBy(role string) func(entry []byte) bool {
	return func(entry []byte) bool {
		value, has := valueOf(entry, 0, "role")
		return has && isWord(value, role)
	}
}

// anthropicResults are in messages of the user (https://docs.claude.com/en/api/messages).
var anthropicResults = tools{
	model: saidBy("assistant"),
	calls: func(entry []byte, take func(id, name []byte)) {
		for block := range partsIn(entry, "content") {
			if v := someOf(block, "type", "id", "name"); isWord(v[0], "tool_use") {
				take(v[1], v[2])
			}
		}
	},
	results: func(entry []byte, take func(result)) {
		for block := range partsIn(entry, "content") {
			if v := someOf(block, "type", "tool_use_id", "content", "is_error"); isWord(v[0], "tool_result") {
				take(result{id: v[1], given: v[2], failed: len(v[3]) > 0 && v[3][0] == 't'})
			}
		}
	},
}

// chatResults are messages of their own (https://platform.openai.com/docs/api-reference/chat/create).
var chatResults = tools{
	model: saidBy("assistant"),
	calls: func(entry []byte, take func(id, name []byte)) {
		for call := range partsIn(entry, "tool_calls") {
			v := someOf(call, "id", "function", "custom")
			for _, of := range v[1:3] {
				if is(of) && of[0] == '{' {
					take(v[0], someOf(of, "name")[0])
				}
			}
		}
	},
	results: func(entry []byte, take func(result)) {
		if v := someOf(entry, "role", "tool_call_id", "content"); isWord(v[0], "tool") {
			take(result{id: v[1], given: v[2]})
		}
	},
}

// responsesResults are items of their own (https://platform.openai.com/docs/api-reference/responses/create). What the model has thought or called are
// items, too.
var responsesResults = tools{
	model: func(entry []byte) bool {
		v := someOf(entry, "role", "type")
		return isWord(v[0], "assistant") || isWord(v[1], "reasoning") || endsIn(v[1], "_call")
	},
	calls: func(entry []byte, take func(id, name []byte)) {
		v := someOf(entry, "type", "call_id", "id", "name")
		id, name := v[1], v[3]
		if id == nil {
			id = v[2]
		}
		if name == nil { // the API defines the tool
			name = v[0]
		}
		take(id, name)
	},
	results: func(entry []byte, take func(result)) {
		v := someOf(entry, "type", "call_id", "id", "output", "status")
		if !endsIn(v[0], "_call_output") {
			return
		}
		id := v[1]
		if id == nil {
			id = v[2]
		}
		take(result{id: id, given: v[3], failed: isWord(v[4], "failed") || isWord(v[4], "incomplete")})
	},
}

// geminiResults are parts of contents (https://ai.google.dev/api/caching#FunctionResponse). They have the names of their tools.
var geminiResults = tools{
	model: saidBy(geminiModel),
	calls: func([]byte, func(id, name []byte)) {},
	results: func(entry []byte, take func(result)) {
		for part := range partsIn(entry, "parts") {
			v := someOf(part, "functionResponse", "function_response")
			for _, reply := range v[:2] {
				if !is(reply) || reply[0] != '{' {
					continue
				}
				v := someOf(reply, "id", "name", "response", "parts")
				given, failed := geminiGiven(v[2])
				take(result{id: v[0], name: v[1], given: given, beside: v[3], failed: failed})
			}
		}
	},
}

// geminiGiven is the output or the error of a response that has nothing else, and otherwise all of it.
func geminiGiven(response []byte) (given []byte, failed bool) {
	if len(response) == 0 || response[0] != '{' {
		return response, false
	}
	members := 0
	var only []byte
	for name, at := range membersAt(response, 0) {
		value := response[at.from:at.to]
		members++
		switch name {
		case "error":
			failed, only = value[0] != 'n', value
		case "output":
			only = value
		}
	}
	if members == 1 && only != nil {
		return only, failed
	}
	return response, failed
}

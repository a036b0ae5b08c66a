// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Allowed is what a policy lets a request ask of a provider in addition to an answer.
type Allowed struct {
	// Tools and connectors that the provider runs, each as vendor/name, such as anthropic/web_search.
	Tools []string
	// State says that a request may refer to state at the provider, and may make the provider store some.
	State bool
}

// Reason says why a request is not sent on.
type Reason int

// Reasons. ServerTool is a tool or connector of the provider, or an address that it would read. State is state at the provider. Unclear is
// a request that two readers could understand in two ways.
const (
	Unclear Reason = iota
	ServerTool
	State
)

// RefusedError says why a request is not sent on.
type RefusedError struct {
	Reason Reason
	// Code that clients of the dialect act on; empty for none.
	Code string
	// Path of the member, such as tools[3] or messages[2].content[0].source.url.
	Path string
	// What is wrong with it, and what to do.
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

const (
	// maxNesting of objects that are looked into. What providers define has at most 10 levels.
	maxNesting = 24
	// maxTaken bounds what is said of a request in the ledger: names of the lists of its dialect, and few of them.
	maxTaken = 16
	// maxEdits is at how many places something is taken out of a request: each is kept as long as the request. Clients offer a few tools of a provider.
	maxEdits = 10_000
	// maxQuoted bounds in bytes what a message quotes of a request.
	maxQuoted = 64
)

// shape says what is known of a value in a request. The zero value is one that nobody minds. A part of a list is that of each of its
// elements, where they are objects.
type shape struct {
	// tool is the name under which policies allow the value; empty for a value that needs no leave.
	tool string
	// out: a value that is not allowed is taken out. Otherwise the request is refused.
	out bool
	// state: the value refers to what the provider keeps.
	state bool
	// never is what to do instead of sending the value, which is never sent.
	never string
	// code that clients act on where the value is refused.
	code string
	// as is what the value is replaced by, unless the policy allows state.
	as string
	// when says whether the value is one that all this is said of; nil for any.
	when func(value []byte) bool

	// members of an object that somebody reads; nil where its names are the agent's own.
	members map[string]shape
	// kinds of objects, each by its member "type".
	kinds *kinds
	// needed: an object without this member is taken out, too.
	needed bool
	// stays: a list of which everything is taken out stays as an empty list.
	stays bool
	// offers says that the objects are tools which are offered to the model.
	offers bool
	// folds has the members by their folded names.
	folds map[string]string
}

// kinds of objects that say what they are.
type kinds struct {
	// what an object is, in messages.
	what string
	// of each name that family gives.
	of map[string]*shape
	// none is for an object without a type.
	none *shape
	// family of a type: without what tells its versions apart.
	family func(kind string) string
	// vendor of types that are not known.
	vendor string
}

// object is a part whose members are known.
func object(members map[string]shape) shape { return shape{}.with(members) }

// with is a part with more members.
func (p shape) with(members map[string]shape) shape {
	all := make(map[string]shape, len(p.members)+len(members))
	for _, from := range []map[string]shape{p.members, members} {
		maps.Copy(all, from)
	}
	p.members, p.folds = all, make(map[string]string, len(all))
	for name := range all {
		p.folds[folded(name)] = name
	}
	return p
}

// reads are members that are read and that nothing else is known of.
func reads(names ...string) map[string]shape {
	members := make(map[string]shape, len(names))
	for _, name := range names {
		members[name] = shape{}
	}
	return members
}

// Filter handles what the provider would do elsewhere and the policy does not allow. It removes what clients send by default, and refuses
// the request for anything else (*RefusedError). Every other byte stays the same. ReadRequest must have read the request.
func (r Request) Filter(e Endpoint, a Allowed) (Request, error) {
	f := filter{body: r.body, allowed: a, request: &r}
	if r.dialect.wall == nil {
		return r, f.refuse(Unclear, "", "the dialect %s has no list of what providers would do elsewhere: write its wall", r.dialect.Name)
	}
	if err := f.top(*r.dialect.wall, e); err != nil {
		return r, err
	}
	r.wall, r.top, r.TakenOut = f.edits, f.members, f.taken
	r.Tools = f.offered > 0
	return r, nil
}

// entry of the object that a request is.
type entry struct {
	name string
	// folded is the name as folded gives it.
	folded string
	value  span
	from   int
	out    bool
}

type filter struct {
	body    []byte
	allowed Allowed
	request *Request
	edits   []place
	members []entry
	taken   []string
	// gone are the names of tools that were taken out, and offered is how many were not.
	gone    []string
	offered int
	path    []step
}

// step of a path: a name, or the place in a list.
type step struct {
	name  string
	index int
}

// top reads the object that the request is.
func (f *filter) top(p shape, e Endpoint) error {
	var seen []string
	at := f.request.open
	for {
		at = space(f.body, at)
		if f.body[at] != '"' {
			break
		}
		name, value := f.name(at)
		known, err := f.known(p, name)
		if err != nil {
			return err
		}
		if err := f.spelled(&seen, p, name); err != nil {
			return err
		}
		from := len(f.edits)
		f.path = append(f.path, step{name: name})
		to, out, err := f.value(value, known)
		f.path = f.path[:len(f.path)-1]
		if err != nil {
			return err
		}
		if out {
			f.edits = f.edits[:from]
		}
		f.members = append(f.members, entry{name: name, folded: folded(name), value: span{value, to}, from: at, out: out})
		if at = space(f.body, to); f.body[at] == ',' {
			at++
		}
	}
	if d := f.request.dialect; d.inPath && f.request.history == (span{}) { // the name of a model stays of any other
		return f.refuse(Unclear, "", "the request has no member %q", d.History)
	}
	f.settle(e)
	return nil
}

// settle what follows from what was taken out.
func (f *filter) settle(e Endpoint) {
	stores, d := false, &f.request.dialect
	for i := range f.members {
		m := &f.members[i]
		switch d.spelled(m.name) {
		case "store":
			stores = true
		case d.choice:
			m.out = m.out || f.without("tools") || f.choosesGone(f.body[m.value.from:m.value.to])
		case "parallel_tool_calls": // which no API takes without tools
			m.out = m.out || f.without("tools")
		}
	}
	if e.Stores && !stores && !f.allowed.State {
		f.edits = append(f.edits, place{span{f.request.open, f.request.open}, `"store":false,`, ""})
	}
}

// without says that a member was taken out.
func (f *filter) without(name string) bool {
	return slices.ContainsFunc(f.members, func(m entry) bool { return m.name == name && m.out })
}

// choosesGone says that a choice names a tool that was taken out.
func (f *filter) choosesGone(choice []byte) bool {
	if len(f.gone) == 0 || choice[0] != '{' {
		return false
	}
	name, ok := textMember(choice, "name")
	return ok && slices.Contains(f.gone, name)
}

// known is what is known of a member, by its name.
func (f *filter) known(p shape, name string) (shape, error) {
	if known, is := p.members[name]; is {
		return known, nil
	}
	if as, is := p.folds[folded(name)]; is {
		f.path = append(f.path, step{name: strconv.Quote(name[:min(len(name), maxQuoted)])})
		return shape{}, f.refuse(Unclear, "", "some providers read it as %q: leave it out, or write it so", as)
	}
	return shape{}, nil
}

// spelled refuses a member that was seen in another spelling.
func (f *filter) spelled(seen *[]string, p shape, name string) error {
	canonical := f.request.dialect.canonical
	if canonical == nil {
		return nil
	}
	if _, known := p.members[name]; !known {
		return nil
	}
	one := canonical(name)
	if slices.Contains(*seen, one) {
		f.path = append(f.path, step{name: name})
		return f.refuse(Unclear, "", "it is there in two spellings: leave one out")
	}
	*seen = append(*seen, one)
	return nil
}

// value of a part. Out says that it is taken out.
func (f *filter) value(at int, p shape) (to int, out bool, err error) {
	if p.judges() && (f.body[at] != '[' || p.members == nil && p.kinds == nil) { // the elements of other lists are decided one by one
		to = skip(f.body, at)
		value := f.body[at:to]
		if (value[0] != 'n' || p.as != "") && (p.when == nil || p.when(value)) {
			if out, err = f.judge(p, span{at, to}); out || err != nil || p.as != "" {
				return to, out, err
			}
		}
	}
	if p.members == nil && p.kinds == nil {
		return skip(f.body, at), false, nil
	}
	if len(f.path) > maxNesting {
		return 0, false, f.refuse(Unclear, "", "it is nested more deeply than anything that providers define")
	}
	if len(f.edits) > maxEdits {
		return 0, false, f.refuse(Unclear, "", "something would be taken out at more than %d places before it", maxEdits)
	}
	switch f.body[at] {
	case '[':
		return f.list(at, p)
	case '{':
		return f.object(at, p)
	}
	return skip(f.body, at), false, nil
}

// judges says that the list decides about a value as a whole.
func (p *shape) judges() bool { return p.tool != "" || p.state || p.never != "" || p.as != "" }

// judge decides about a value.
func (f *filter) judge(p shape, at span) (out bool, err error) {
	switch {
	case p.never != "":
		return false, f.refuse(Unclear, p.code, "%s", p.never)
	case p.as != "" && !f.allowed.State:
		if string(f.body[at.from:at.to]) != p.as {
			f.edits = append(f.edits, place{at, p.as, ""})
		}
		return false, nil
	case p.state && p.out && !f.allowed.State:
		f.take(f.path[len(f.path)-1].name)
		return true, nil
	case p.state && !f.allowed.State:
		return false, f.refuse(State, p.code, "it refers to what the provider keeps, or has it keep something. Send all of it with each request, or set providerState: Allow for the role in models of the policy")
	case p.tool == "" || slices.Contains(f.allowed.Tools, p.tool):
		return false, nil
	case p.out:
		f.take(p.tool)
		return true, nil
	}
	return false, f.refuse(ServerTool, p.code, "the provider would do this itself, where nobody supervises it: leave it out, or list %s in egress.providerTools of the policy", p.tool)
}

// take notes what was taken out.
func (f *filter) take(name string) {
	if len(f.taken) < maxTaken && !slices.Contains(f.taken, name) {
		f.taken = append(f.taken, name)
	}
}

func (f *filter) refuse(reason Reason, code, format string, args ...any) error {
	return &RefusedError{Reason: reason, Code: code, Path: f.where(), Message: fmt.Sprintf(format, args...)}
}

// where the filter is, as people write it.
func (f *filter) where() string {
	var b strings.Builder
	for _, s := range f.path {
		switch {
		case s.name == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// list reads a list. It is out where all of its elements are.
func (f *filter) list(at int, p shape) (to int, out bool, err error) {
	before, notes := len(f.edits), holes{filter: f}
	inside := at + 1
	for i := 0; ; i++ {
		at = space(f.body, inside)
		if f.body[at] == ']' {
			break
		}
		f.path = append(f.path, step{index: i})
		end, gone, err := f.value(at, p)
		f.path = f.path[:len(f.path)-1]
		if err != nil {
			return 0, false, err
		}
		notes.add(span{at, end}, gone)
		if inside = space(f.body, end); f.body[inside] == ',' {
			inside++
		}
	}
	to = at + 1
	if notes.all() && !p.stays {
		f.edits = f.edits[:before]
		return to, true, nil
	}
	notes.close()
	return to, false, nil
}

// object reads an object. It is out where it is a tool that may not be, or where a member is that it needs.
func (f *filter) object(at int, p shape) (to int, out bool, err error) {
	tool := p.offers
	if p.kinds != nil {
		known, err := f.kind(at, p.kinds)
		if err != nil {
			return 0, false, err
		}
		if p = *known; p.judges() {
			to = skip(f.body, at)
			if p.when == nil || p.when(f.body[at:to]) {
				if out, err = f.judge(p, span{at, to}); err != nil {
					return 0, false, err
				}
				if out {
					if name, has := textMember(f.body[at:to], "name"); has {
						f.gone = append(f.gone, name)
					}
					return to, true, nil
				}
			}
		}
	}
	to, out, err = f.membersOf(at, p)
	if tool && !out && err == nil {
		f.offered++
	}
	return to, out, err
}

// membersOf an object.
func (f *filter) membersOf(at int, p shape) (to int, out bool, err error) {
	if p.members == nil {
		return skip(f.body, at), false, nil
	}
	before, notes := len(f.edits), holes{filter: f}
	inside := at + 1
	var seen []string
	for {
		at = space(f.body, inside)
		if f.body[at] == '}' {
			break
		}
		name, value := f.name(at)
		known, err := f.known(p, name)
		if err != nil {
			return 0, false, err
		}
		if err := f.spelled(&seen, p, name); err != nil {
			return 0, false, err
		}
		f.path = append(f.path, step{name: name})
		end, gone, err := f.value(value, known)
		f.path = f.path[:len(f.path)-1]
		if err != nil {
			return 0, false, err
		}
		out = out || gone && known.needed
		notes.add(span{at, end}, gone)
		if inside = space(f.body, end); f.body[inside] == ',' {
			inside++
		}
	}
	if to = at + 1; out {
		f.edits = f.edits[:before]
		return to, true, nil
	}
	notes.close()
	return to, false, nil
}

// kind of an object.
func (f *filter) kind(at int, k *kinds) (*shape, error) {
	value, has := valueOf(f.body, at, "type")
	if !has || value[0] == 'n' {
		return k.none, nil
	}
	kind, is := text(value)
	family := kind
	if k.family != nil {
		family = k.family(kind)
	}
	if known := k.of[family]; is && known != nil {
		return known, nil
	}
	name := k.vendor + "/" + family
	if vendor, rest, cut := strings.Cut(family, ":"); cut { // as OpenRouter writes them
		name = vendor + "/" + rest
	}
	if slices.Contains(f.allowed.Tools, name) {
		return &shape{}, nil
	}
	if !is || !ValidTool(name) {
		return nil, f.refuse(ServerTool, "", "a %s with a type that is not a name: nobody can tell who would run it", k.what)
	}
	return nil, f.refuse(ServerTool, "", "the gateway does not know a %s of the type %q, nor what the provider would do. Leave it out, or list %s in egress.providerTools of the policy", k.what, kind, name)
}

// name of the member at a place, and where its value begins.
func (f *filter) name(at int) (name string, value int) {
	end := skip(f.body, at)
	name, _ = text(f.body[at:end])
	return name, space(f.body, space(f.body, end)+1) // behind the colon
}

// holes are what is taken out of a list or an object: elements with the commas that go with them.
type holes struct {
	filter *filter
	// first and last that were taken out and behind which none has stayed yet.
	first, last span
	open        bool
	// stayed is where the last one ends that stays, 0 for none; any says that one was taken out.
	stayed int
	any    bool
}

func (h *holes) add(at span, out bool) {
	switch {
	case out && !h.open:
		h.first, h.last, h.open, h.any = at, at, true, true
	case out:
		h.last = at
	default:
		if h.open { // with the comma behind it
			h.cut(h.first.from, at.from)
		}
		h.stayed = at.to
	}
}

// all says that nothing has stayed.
func (h *holes) all() bool { return h.any && h.stayed == 0 }

// close is called at the end.
func (h *holes) close() {
	if !h.open {
		return
	}
	from := h.first.from
	if h.stayed > 0 { // with the comma before it
		from = h.stayed
	}
	h.cut(from, h.last.to)
}

func (h *holes) cut(from, to int) {
	h.filter.edits = append(h.filter.edits, place{span: span{from, to}})
	h.open = false
}

// removed are the places of members of the request to leave out: members that the wall has taken out, and members that a backend does not get.
func (r Request) removed(without Names) []place {
	f := filter{}
	notes := holes{filter: &f}
	for _, m := range r.top {
		notes.add(span{m.from, m.value.to}, m.out || without.has(m.folded))
	}
	notes.close()
	return f.edits
}

// Has says which of the members a request has, whatever their letters: some providers fold them.
func (r Request) Has(names Names) (has []string) {
	for _, m := range r.top {
		if !m.out && names.has(m.folded) {
			has = append(has, m.name[:min(len(m.name), maxQuoted)])
		}
	}
	return has
}

// Names of members, as providers may read them. Make them with Fold.
type Names []string

// Fold returns the names in the form of the most lenient providers, which ignore case and the characters between words.
func Fold(names ...string) Names {
	all := make(Names, len(names))
	for i, name := range names {
		all[i] = folded(name)
	}
	return all
}

// has a name, which is folded.
func (n Names) has(name string) bool { return slices.Contains(n, name) }

// folded is a name as readers take it that care least: encoding/json of Go takes letters for one another that Unicode folds, which are two
// in addition to ASCII's (https://pkg.go.dev/encoding/json#Unmarshal), its successor leaves out what joins words, however much of it there
// is (https://pkg.go.dev/encoding/json/v2#MatchCaseInsensitiveNames), and readers of Protocol Buffers take camel case for snake case. Of a
// name that is longer than any that is known, it is the beginning.
func folded(name string) string {
	var small [maxQuoted]byte
	b := small[:0]
	for _, c := range name {
		if len(b) > maxQuoted-utf8.UTFMax {
			break
		}
		switch {
		case 'a' <= c && c <= 'z':
			b = append(b, byte(c))
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			b = append(b, byte(c-'A'+'a'))
		case c == 'ſ':
			b = append(b, 's')
		case c == '\u212a': // the sign for kelvin
			b = append(b, 'k')
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return string(b)
}

// ValidTool says whether a name is one of a tool of a provider: vendor/name.
func ValidTool(name string) bool {
	vendor, tool, cut := strings.Cut(name, "/")
	plain := func(s string) bool {
		return s != "" && len(s) <= maxQuoted && !strings.ContainsFunc(s, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.$", c)
		})
	}
	return cut && plain(vendor) && plain(tool)
}

// What follows goes through JSON that was read before, so that nothing is looked for twice: where values end, and no more.

// space is where something else follows.
func space(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\t' || b[at] == '\r') {
		at++
	}
	return at
}

// skip is where the value ends that begins at a place.
func skip(b []byte, at int) int {
	switch b[at] {
	case '"':
		return skipText(b, at)
	case '{', '[':
		for depth := 0; ; {
			switch b[at] {
			case '"':
				at = skipText(b, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
			at++
		}
	}
	for at < len(b) && strings.IndexByte(",]} \n\t\r", b[at]) < 0 {
		at++
	}
	return at
}

// skipText is where a text ends that begins at a place.
func skipText(b []byte, at int) int {
	for at++; ; at++ {
		at += bytes.IndexByte(b[at:], '"')
		escaped := 0
		for b[at-1-escaped] == '\\' {
			escaped++
		}
		if escaped%2 == 0 {
			return at + 1
		}
	}
}

// text that a string has.
func text(value []byte) (string, bool) {
	if value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	plain, _ := jsontext.AppendUnquote(nil, value) // characters that are cut in half have a mark there
	return string(plain), true
}

// valueOf the member of an object that begins at a place.
func valueOf(b []byte, at int, name string) (value []byte, has bool) {
	where, has := placeOf(b, at, name)
	return b[where.from:where.to], has
}

// placeOf the value of a member of an object that begins at a place.
func placeOf(b []byte, at int, name string) (where span, has bool) {
	for at = space(b, at+1); b[at] != '}'; {
		end := skip(b, at)
		is := string(b[at+1:end-1]) == name
		if !is && bytes.IndexByte(b[at:end], '\\') >= 0 {
			plain, _ := text(b[at:end])
			is = plain == name
		}
		at = space(b, space(b, end)+1)
		end = skip(b, at)
		if is {
			return span{at, end}, true
		}
		if at = space(b, end); b[at] == ',' {
			at = space(b, at+1)
		}
	}
	return span{}, false
}

// textMember of an object.
func textMember(object []byte, name string) (string, bool) {
	value, has := valueOf(object, 0, name)
	if !has {
		return "", false
	}
	return text(value)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// maxBeside bounds what is kept of a system prompt and of tools, in bytes each.
const maxBeside = 1 << 20

// Beside is what a request contains in addition to the conversation, and the next request most likely repeats: its system prompt and its tools.
type Beside struct {
	system, tools []byte
	// setting is the digest of the system prompt.
	setting conversation.Digest
}

// Beside of a request, for the requests that follow it. What it does not contain comes from the request before.
func (r Request) Beside() *Beside {
	b := r.beside
	if b == nil {
		b = &Beside{}
	}
	system, tools := r.body[r.system.from:r.system.to], r.body[r.tools.from:r.tools.to]
	// A string, a list and an object say where they end; behind a number, more of it may follow.
	if n := len(system); n > 0 && n <= maxBeside && (system[0] == '"' || system[0] == '[' || system[0] == '{') && r.system != r.history && !bytes.Equal(system, b.system) {
		b = &Beside{system: bytes.Clone(system), tools: b.tools, setting: setting(system)}
	}
	if n := len(tools); r.Tools && n <= maxBeside && !bytes.Equal(tools, b.tools) {
		b = &Beside{system: b.system, tools: bytes.Clone(tools), setting: b.setting}
	}
	return b
}

// cut is a part of a request that was read before. It is read as something short that may stand in the same places.
type cut struct {
	span

	short string
}

// ReadFurther is ReadRequest for a body that repeats most of what was read before, as an agent's requests do. The function known gets the bytes from
// where the conversation seems to begin. It returns how many of them are "[" and whole entries of a conversation that ReadRequest has read:
// they are valid, and ReadFurther does not read them again. It does not read again either what an earlier request said in addition to the
// conversation. Results and errors are the same as ReadRequest's. The request may write to the memory room, up to its capacity: it holds
// the result of Steer until the next call of Steer.
func (d Dialect) ReadFurther(body, room []byte, beside *Beside, known func(list []byte) conversation.Known) (Request, error) {
	r, err := d.readFurther(body, room, beside, known)
	r.room, r.beside = room, beside
	return r, err
}

func (d Dialect) readFurther(body, room []byte, beside *Beside, known func(list []byte) conversation.Known) (Request, error) {
	from := bytes.Index(body, []byte(`"`+d.History+`":[`))
	if from < 0 {
		return d.ReadRequest(body)
	}
	from += len(d.History) + len(`"":`)
	said := known(body[from:])
	cuts := d.cuts(body, span{from, from + said.Bytes}, beside)
	if len(cuts) == 0 {
		return d.ReadRequest(body)
	}
	less, done := slices.Grow(room[:0], len(body)), 0
	for _, c := range cuts {
		less = append(append(less, body[done:c.from]...), c.short...)
		done = c.to
	}
	r, err := d.ReadRequest(append(less, body[done:]...))
	if err != nil { // which says what is wrong, but not where
		return d.ReadRequest(body)
	}
	for _, c := range cuts {
		for _, at := range []*span{&r.model, &r.system, &r.history, &r.choice, &r.tools} {
			at.shift(c.from, c.to-c.from-len(c.short))
		}
	}
	r.body = body
	if r.history.from == from { // and not in some other list of that name
		r.known = said
	}
	return r, nil
}

// cuts of a body, in their sequence: the known part of its conversation, and what it says in addition.
func (d Dialect) cuts(body []byte, known span, beside *Beside) []cut {
	const entry = `[""` // only what may follow any entry may follow it
	if known.to-known.from <= len(entry) {
		return nil
	}
	cuts := []cut{{known, entry}}
	if beside == nil {
		return cuts
	}
	parts := []span{{0, known.from}, {known.to, len(body)}}
	for _, m := range []struct {
		name  string
		value []byte
		short string
	}{{d.System, beside.system, `""`}, {"tools", beside.tools, "[0]"}} {
		if len(m.value) <= len(m.short) {
			continue
		}
		for i, part := range parts {
			if at, found := part.member(body, m.name, m.value); found {
				cuts = append(cuts, cut{at, m.short})
				parts = slices.Replace(parts, i, i+1, span{part.from, at.from}, span{at.to, part.to})
				break
			}
		}
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	return cuts
}

// member is where a part of a body first has a name with a value behind it.
func (s span) member(body []byte, name string, value []byte) (at span, found bool) {
	part := body[s.from:s.to]
	name = `"` + name + `":`
	i := bytes.Index(part, []byte(name))
	if i < 0 || !bytes.HasPrefix(part[i+len(name):], value) {
		return span{}, false
	}
	at.from = s.from + i + len(name)
	return span{at.from, at.from + len(value)}, true
}

// shift what is behind a place by the given bytes.
func (s *span) shift(behind, by int) {
	if s.from > behind {
		s.from += by
	}
	if s.to > behind {
		s.to += by
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"iter"
	"math"
	"strconv"
)

// Limit bounds an answer, as its request says.
type Limit struct {
	// Tokens is the most tokens of a choice; 0 if the request does not say.
	Tokens int64
	// Choices is the number of choices that the request asks for, at least 1.
	Choices int64
	// Thinking is how many of the tokens are for the model's thoughts; the provider refuses a limit that is not above it.
	Thinking int64
}

// limits are the members of a request that bound its answer, each as a path.
type limits struct {
	// most are those with the most tokens of a choice. The last one is put in where there is none.
	most [][]string
	// choices is the one with the number of choices, and thinking with the tokens for thinking; nil where there is none.
	choices, thinking []string
}

// Limit that the request has, without the members that its backend does not get or does not read. Call Filter before. A server may read a
// number that this package does not understand: Tokens is then unknown, and Choices the maximum.
func (r Request) Limit(without Names) Limit {
	members := r.dialect.limits
	l := Limit{Choices: 1}
	choices, unknown := r.most(members.choices, without)
	if l.Choices = max(l.Choices, choices); unknown {
		l.Choices = math.MaxInt32
	}
	l.Thinking, _ = r.most(members.thinking, without)
	anyUnknown := false
	for _, path := range members.most {
		tokens, unknown := r.most(path, without)
		l.Tokens, anyUnknown = max(l.Tokens, tokens), anyUnknown || unknown
	}
	if anyUnknown {
		l.Tokens = 0
	}
	return l
}

// most is the largest number at a path; unknown, where a value there is no number that is understood.
func (r *Request) most(path []string, without Names) (most int64, unknown bool) {
	r.each(path, without, func(at span) {
		n := number(r.body[at.from:at.to])
		most, unknown = max(most, n), unknown || n == 0 && r.body[at.from] != 'n'
	})
	return most, unknown
}

// lowered are the places where a request says that a choice has no more than some tokens. A lower limit stays. Member names the one that is put in
// where there is none; empty for the dialect's own.
func (l limits) lowered(r Request, tokens int64, member string, without Names) (list []place) {
	text, has := strconv.FormatInt(tokens, 10), false
	var own []string
	for _, own = range l.most {
		r.each(own, without, func(at span) {
			has = true
			if n := number(r.body[at.from:at.to]); n == 0 || n > tokens {
				list = append(list, place{at, text, ""})
			}
		})
	}
	if has || own == nil {
		return list
	}
	if member == "" {
		member = own[len(own)-1]
	}
	first := func(member string) []place { return []place{{span{r.open, r.open}, member, ","}} } // something always follows
	add := `"` + member + `":` + text
	if len(own) == 1 {
		return first(add)
	}
	var in span
	r.each(own[:1], without, func(at span) {
		if in == (span{}) {
			in = at
		}
	})
	if in == (span{}) {
		return first(`"` + own[0] + `":{` + add + "}")
	}
	switch value := r.body[in.from:in.to]; value[0] {
	case 'n':
		return []place{{in, "{" + add, "}"}}
	case '{':
		return []place{{span{in.from + 1, in.from + 1}, add, comma(value)}}
	}
	return nil // the provider refuses it
}

// each value of the member at a path, in each of its spellings, where the backend gets it.
func (r *Request) each(path []string, without Names, do func(at span)) {
	if len(path) == 0 {
		return
	}
	for _, m := range r.top {
		if m.out || r.dialect.spelled(m.name) != path[0] || without.has(m.folded) {
			continue
		}
		if len(path) == 1 {
			do(m.value)
			continue
		}
		if r.body[m.value.from] != '{' {
			continue
		}
		for name, at := range membersAt(r.body, m.value.from) {
			if r.dialect.spelled(name) == path[1] {
				do(at)
			}
		}
	}
}

// spelled is the one spelling of a name.
func (d Dialect) spelled(name string) string {
	if d.canonical == nil {
		return name
	}
	return d.canonical(name)
}

// membersAt gives the members of an object that begins at a place, and where their values stand.
func membersAt(b []byte, at int) iter.Seq2[string, span] {
	return func(yield func(string, span) bool) {
		for at := space(b, at+1); b[at] != '}'; {
			end := skip(b, at)
			name, _ := text(b[at:end])
			at = space(b, space(b, end)+1)
			end = skip(b, at)
			if !yield(name, span{at, end}) {
				return
			}
			if at = space(b, end); b[at] == ',' {
				at = space(b, at+1)
			}
		}
	}
}

// number that a value is, as far as it is a positive one: some APIs write numbers as strings. A fraction is cut off, which those APIs refuse.
func number(value []byte) int64 {
	if len(value) > maxQuoted {
		return 0
	}
	digits, is := text(value)
	if !is {
		digits = string(value)
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n >= 1) {
		return 0
	}
	return int64(min(n, math.MaxInt32)) // more than any model gives
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// all that is made of a request, as texts.
func all(r dialect.Request, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	c := r.Conversation()
	system, tools := c.Setting()
	texts := []string{string(r.Bytes()), r.Model, string(c.List()), fmt.Sprint(system, tools, r.Tools)}
	add := func(body []byte, err error) { texts = append(texts, string(body), fmt.Sprint(err)) }
	add(r.Body(dialect.Edit{Model: "other", Before: dialect.Quote("before"), Objections: []dialect.Objection{{Answer: "answer", Text: "text"}}}))
	var ends []int
	for at, ok := 0, true; ok; {
		if _, at, ok = c.Next(at); ok {
			ends = append(ends, at)
		}
	}
	texts = append(texts, fmt.Sprint(r.HasPlace(len(ends), ends)))
	texts = append(texts, string(r.Steer(dialect.Edits{Notes: []dialect.Note{{After: len(ends), Text: "note"}}, NoTools: true}, ends)))
	return texts
}

// further reads a request after another one in both ways, and says how much was known.
func further(t *testing.T, d dialect.Dialect, before, body string) (known int) {
	t.Helper()
	var book conversation.Book
	var beside *dialect.Beside
	if r, err := d.ReadRequest([]byte(before)); err == nil {
		book.Observe(r.Conversation())
		beside = r.Beside()
	}
	room := make([]byte, len(body)) // for some of what is put into it, and not for all
	got := all(d.ReadFurther([]byte(body), room, beside, func(list []byte) conversation.Known {
		k := book.Known(list)
		known = k.Bytes
		return k
	}))
	if diff := cmp.Diff(all(d.ReadRequest([]byte(body))), got); diff != "" {
		t.Errorf("%s: %s after %s (-whole +further):\n%s", d.Name, body, before, diff)
	}
	return known
}

// TestReadFurther: what was read before is not read again, and whatever follows it, the same comes of the request as if it had been.
func TestReadFurther(t *testing.T) {
	for _, d := range dialect.All() {
		for before, rests := range map[string][]string{
			`{"role":"user","content":"do"}`: {
				`]`, `,{"role":"user","content":"more"}]`, ` , {"role":"user"} ]`, `,]`, `]]`, `}`, `,`, ``, `{}]`, `x]`, `,{"a":1,"a":2}]`, `],"tools":[{}],"tool_choice":"auto"`, `],"system":"s"`, `],"%s":[]`,
			},
			`"text"`: {`]`, `,"more"]`, `"more"]`},
			`1.5`:    {`]`, `.5]`, `e5]`, `5]`, `,1]`},
			`[]`:     {`]`, `,[]]`},
		} {
			for _, head := range []string{`{"model":"m",`, `{"model":"m","system":[{"type":"text","text":"s"}],`, `{"tool_choice":"none","model":"m","tools":[{}],`, `{"model":"m","other":{"` + d.History + `":[` + before + `]},`} {
				first := head + `"` + d.History + `":[` + before
				for _, rest := range rests {
					if rest == `],"%s":[]` {
						rest = fmt.Sprintf(rest, d.History)
					}
					known := further(t, d, first+`]}`, first+rest+`}`)
					if want := before != `1.5`; want && head == `{"model":"m",` && known != len(before)+1 {
						t.Errorf("%s: %d bytes are known of [%s%s", d.Name, known, before, rest)
					}
				}
			}
		}
	}
}

// FuzzReadFurther: no request is read in another way because of one before it.
func FuzzReadFurther(f *testing.F) {
	for _, w := range wires() {
		entries := append(append([]string{}, w.lead...), w.user("Go."), w.call("a", "ls"), w.result("a", "x"), w.model("Well."))
		f.Add(w.body("", true, entries[:len(entries)-1]), w.body("", true, entries))
		f.Add(w.body("", true, entries), w.body("Sum up.", false, entries[:2]))
	}
	f.Add(`{"model":"m","messages":[1],"input":[1]}`, `{"model":"m","messages":[1.5,{"a":1,"a":2}],"input":[12]}`)
	f.Fuzz(func(t *testing.T, before, body string) {
		for _, d := range dialect.All() {
			further(t, d, before, body)
		}
	})
}

// TestKnown: a book keeps no bytes of a request but its own copy, and knows of each conversation what was said in its last request: more than
// before, less than before, and beside another one.
func TestKnown(t *testing.T) {
	for _, w := range wires() {
		d, _ := dialect.Find(w.dialect)
		var book conversation.Book
		entries := append(append([]string{}, w.lead...), w.user("Go."))
		other := append(append([]string{}, w.lead...), w.user("Come."))
		observe := func(entries []string, space string) {
			t.Helper()
			body := []byte(strings.Replace(w.body("", true, entries), entries[0], space+entries[0], 1))
			r, err := d.ReadRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			book.Observe(r.Conversation())
			list := bytes.Clone(r.Conversation().List())
			clear(body)
			if known := book.Known(list).Bytes; known != len(list)-1 {
				t.Errorf("%s: %d bytes are known of %s", w.dialect, known, list)
			}
		}
		for i := range 20 {
			id := fmt.Sprintf("call%d", i)
			entries = append(entries, w.call(id, "ls"), w.result(id, strings.Repeat("x", i)))
			observe(entries, "")
			if i%3 == 0 {
				other = append(other, w.call(id, "cd"), w.result(id, "y"))
				observe(other, " ") // so that the next one begins as the other conversation does
				observe(other, "")
			}
			if i == 12 {
				entries = entries[:len(entries)-14]
				observe(entries, "")
			}
		}
	}
}

// TestBeside: what is said beside the conversation is known when it is said again, also where something else has been said in between, and a
// request that says something else is read as it is.
func TestBeside(t *testing.T) {
	for _, d := range dialect.All() {
		body := func(system, tools, more string) []byte {
			return fmt.Appendf(nil, `{"model":"m",%s"%s":[{"role":"user","content":"do"}%s],"tools":%s,"tool_choice":"auto"}`, system, d.History, more, tools)
		}
		var beside *dialect.Beside
		read := func(text []byte) *dialect.Beside {
			t.Helper()
			got, err := d.ReadFurther(text, nil, beside, func([]byte) conversation.Known {
				return conversation.Known{Bytes: len(`[{"role":"user","content":"do"}`)}
			})
			want := all(d.ReadRequest(text))
			if diff := cmp.Diff(want, all(got, err)); diff != "" {
				t.Errorf("%s: %s (-whole +further):\n%s", d.Name, text, diff)
			}
			if err != nil {
				return beside
			}
			return got.Beside()
		}
		system := ""
		if d.System != d.History {
			system = fmt.Sprintf(`"%s":"You are an agent.",`, d.System)
		}
		const tools = `[{"name":"Read","description":"reads"}]`
		beside = read(body(system, tools, ""))
		for name, text := range map[string][]byte{
			"the same":            body(system, tools, `,{"role":"user","content":"more"}`),
			"without tools":       body(system, "[]", ""),
			"without a prompt":    body("", tools, ""),
			"tools in an entry":   body(system, "[]", `,{"role":"user","tools":`+tools+`}`),
			"tools that are more": body(system, tools+" ", ""),
			"not JSON":            body(system, tools+"5", ""),
			"twice":               body(system+system+" ", tools+`,"tools":`+tools, ""),
		} {
			if next := read(text); next != beside {
				t.Errorf("%s, %s: it is not known any more", d.Name, name)
			}
		}
		if system != "" {
			number := fmt.Sprintf(`"%s":1.5`, d.System)
			kept := beside
			beside = read(body(number+",", tools, ""))
			read(body(number+".5,", tools, ""))
			beside = kept
		}
		for name, text := range map[string][]byte{
			"other tools":   body(system, `[{"name":"Write"}]`, ""),
			"another entry": body(system, `[{"name":"Read","description":"reads"},{"name":"Write"}]`, ""),
		} {
			if next := read(text); next == beside {
				t.Errorf("%s, %s: it is taken for the same", d.Name, name)
			}
		}
	}
}

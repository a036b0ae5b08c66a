// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// requests that fuzzers begin with, beside those of refusals.
func requestSeeds() []string {
	return []string{
		`{"model":"m","tools":[ {"type":"web_search","name":"w"} , {"type":"namespace","name":"n","tools":[{"type":"web_search"}]},{"name":"a"} ],"tool_choice":{"type":"tool","name":"w"},"parallel_tool_calls":true}`,
		`{"tools":[{"type":"web_search"}],"store":null,"model":"m","tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"}]}}`,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"web_search"},1,"x",[]]}],"thread":{"type":"create"}}`,
		"{\"model\":\"m\",\"t\\u006fols\":[{\"t\\u0079pe\":\"web\\u005fsearch\"}],\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"\\\\\\\"\"}]}]}",
		`{"model":"m","tools":[{"googleSearch":{},"functionDeclarations":[{"name":"f"}]},{"url_context":{}}],"toolConfig":{},"contents":[{"role":"user","parts":[{"text":"x"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_obfuscation":true},"max_tokens":9000,"web_search_options":{},"service_tier":"flex","system":[{"type":"text","text":"s"}]}`,
	}
}

// FuzzFilter: of a request that is read, the filter makes one that is read, too, and in which it finds nothing any more. A reader that folds the
// letters of names and takes the last one finds the same model, and no tool of the provider at any depth. What was not taken out has every byte that
// it had.
func FuzzFilter(f *testing.F) {
	for _, r := range refusals() {
		f.Add(`{"model":"m",` + r.members + `}`)
	}
	for _, body := range requestSeeds() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, d := range dialect.All() {
			r, err := d.ReadRequest([]byte(body))
			if err != nil {
				continue
			}
			if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
				if _, is := errors.AsType[*dialect.RefusedError](err); !is {
					t.Fatalf("%s: %q: %v", d.Name, body, err)
				}
				continue
			}
			out, err := r.Body(dialect.Edit{Model: r.Model})
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.ReadRequest(out)
			if err != nil || !json.Valid(out) {
				t.Fatalf("%s: %q became %q: %v", d.Name, body, out, err)
			}
			if again, err = again.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil || len(again.TakenOut) > 0 || again.Tools != r.Tools {
				t.Fatalf("%s: %q became %q, in which are %q: %v", d.Name, body, out, again.TakenOut, err)
			}
			if twice, err := again.Body(dialect.Edit{Model: r.Model}); err != nil || string(twice) != string(out) {
				t.Fatalf("%s: %q became %q and then %q: %v", d.Name, body, out, twice, err)
			}
			if found := foldingReader(t, d, out, r.Model); found != "" {
				t.Fatalf("%s: %q became %q, in which another reader finds %s", d.Name, body, out, found)
			}
			plain := bytes.Replace(out, []byte(`"store":false,`), nil, 1)
			if !lessOf(out, []byte(body)) && !lessOf(plain, []byte(body)) {
				t.Fatalf("%s: %q became %q, which has other bytes", d.Name, body, out)
			}
			if len(r.TakenOut) == 0 && len(plain) > len(body)+len("false") {
				t.Fatalf("%s: %q became %q, which is longer", d.Name, body, out)
			}
		}
	})
}

// providerTools are types of tools that providers run, by how they begin, and members of Gemini's tools.
var (
	providerTools = []string{"web_search", "web_fetch", "code_execution", "code_interpreter", "image_generation", "file_search", "mcp", "advisor"}
	geminiRuns    = []string{"googlesearch", "googlesearchretrieval", "urlcontext", "codeexecution", "googlemaps", "enterprisewebsearch", "filesearch", "mcpservers", "retrieval"}
)

// foldingReader is a reader such as encoding/json, which takes names whatever their letters, and the last of several. It says what it finds of a
// provider's tools, at every depth at which there are tools, and whether it reads another model.
func foldingReader(t *testing.T, d dialect.Dialect, body []byte, model string) string {
	t.Helper()
	var top struct {
		Model, Tools, Input json.RawMessage
	}
	if err := json.Unmarshal(body, &top); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	var read string
	if len(top.Model) > 0 && (json.Unmarshal(top.Model, &read) != nil || read != model) {
		return "the model " + string(top.Model)
	}
	found := toolsOf(top.Tools)
	var items []json.RawMessage
	if d.History == "input" {
		_ = json.Unmarshal(top.Input, &items)
	}
	for _, item := range items {
		var known struct {
			Type  string
			Tools json.RawMessage
		}
		if json.Unmarshal(item, &known) == nil && (known.Type == "additional_tools" || known.Type == "tool_search_output") {
			found = append(found, toolsOf(known.Tools)...)
		}
	}
	if len(found) > 0 {
		return strings.Join(found, ", ")
	}
	return ""
}

// toolsOf a list are those that providers run. What is no list, and what is no object in it, are no tools.
func toolsOf(list json.RawMessage) (found []string) {
	var tools []json.RawMessage
	_ = json.Unmarshal(list, &tools)
	for _, raw := range tools {
		var tool struct {
			Type  any
			Tools json.RawMessage
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || json.Unmarshal(raw, &tool) != nil {
			continue
		}
		kind, _ := tool.Type.(string)
		if slices.ContainsFunc(providerTools, func(begins string) bool { return strings.HasPrefix(kind, begins) }) {
			found = append(found, kind)
		}
		for name, value := range members {
			if kind == "" && string(value) != "null" && slices.Contains(geminiRuns, strings.ToLower(strings.ReplaceAll(name, "_", ""))) {
				found = append(found, name)
			}
		}
		if kind == "namespace" {
			found = append(found, toolsOf(tool.Tools)...)
		}
	}
	return found
}

// lessOf says that a value has every byte of another one but for elements of lists and members of objects that are left out, and for "store", which
// is false.
func lessOf(out, in []byte) bool {
	out, in = bytes.TrimSpace(out), bytes.TrimSpace(in)
	if bytes.Equal(out, in) {
		return true
	}
	if len(out) == 0 || len(in) == 0 || out[0] != in[0] || out[0] != '{' && out[0] != '[' {
		return false
	}
	has, had := elements(out), elements(in)
	if has == nil || had == nil {
		return false
	}
	for _, x := range has {
		for {
			if len(had) == 0 {
				return false
			}
			y := had[0]
			had = had[1:]
			if bytes.Equal(x.name, y.name) && (lessOf(x.value, y.value) || string(x.name) == `store` && string(x.value) == "false") {
				break
			}
		}
	}
	return true
}

// element of a list, or member of an object.
type element struct{ name, value []byte }

// elements of a value, as encoding/json reads them; nil for what it cannot.
func elements(value []byte) []element {
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	open, err := in.Token()
	list := []element{}
	if err != nil {
		return nil
	}
	for in.More() {
		var e element
		if open == json.Delim('{') {
			name, err := in.Token()
			text, is := name.(string)
			if err != nil || !is {
				return nil
			}
			e.name = []byte(text)
		}
		var raw json.RawMessage
		if in.Decode(&raw) != nil {
			return nil
		}
		e.value = raw
		list = append(list, e)
	}
	if _, err := in.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return list
}

// FuzzEdit: a request that was filtered stays JSON with everything that the gateway puts into it at once: another model, templates, a lower limit,
// a count of tokens, members that are left out. Another reader finds the model that is asked, and nothing that was taken out. Each edit by itself
// changes one place, and no byte elsewhere.
func FuzzEdit(f *testing.F) {
	for _, r := range refusals() {
		f.Add(`{"model":"m",`+r.members+`}`, "other", "Be kind.", uint16(100))
	}
	for _, body := range requestSeeds() {
		f.Add(body, "other", "Say \"so\".\n", uint16(2000))
	}
	without := dialect.Fold("service_tier", "provider", "chat_template")
	f.Fuzz(func(t *testing.T, body, model, text string, limit uint16) {
		if model == "" || len(model) > longestModel || text == "" || inside(model) != model {
			return
		}
		for _, d := range dialect.All() {
			r, err := d.ReadRequest([]byte(body))
			if err != nil {
				continue
			}
			if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
				continue
			}
			plain, err := r.Body(dialect.Edit{Model: r.Model})
			if err != nil {
				t.Fatal(err)
			}
			one := func(what string, e dialect.Edit, replaced int) {
				if e.Model == "" {
					e.Model = r.Model
				}
				out, err := r.Body(e)
				if err != nil {
					return // there is no place for it, and it says so
				}
				if !json.Valid(out) {
					t.Fatalf("%s: %s of %q gives %q", d.Name, what, body, out)
				}
				if same := inCommon(out, plain); same+replaced < len(plain) {
					t.Fatalf("%s: %s of %q gives %q, and has %d of %d bytes in common with %q", d.Name, what, body, out, same, len(plain), plain)
				}
			}
			one("a template", dialect.Edit{Before: dialect.Quote(text)}, len("null"))
			one("a count", dialect.Edit{Usage: r.LacksUsage()}, len("false")+len(plain)*unlike(r))
			quoted, _ := json.Marshal(r.Model)
			one("another model", dialect.Edit{Model: model}, 6*len(quoted)+2)
			e := dialect.Edit{Model: model, Before: dialect.Quote(text), Limit: int64(limit), Usage: r.LacksUsage(), Without: without, Objections: []dialect.Objection{{Answer: text, Text: "o"}}}
			all, err := r.Body(e)
			if err != nil {
				e.Objections, e.Before = nil, dialect.Quoted{}
				if all, err = r.Body(e); err != nil {
					t.Fatal(err)
				}
			}
			again, err := d.ReadRequest(all)
			if err != nil || !json.Valid(all) || r.Model != "" && again.Model != model {
				t.Fatalf("%s: %q became %q: %v", d.Name, body, all, err)
			}
			if again, err = again.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil || len(again.TakenOut) > 0 || len(again.Has(without)) > 0 || limit > 0 && again.Limit(nil).Tokens > int64(limit) {
				t.Fatalf("%s: %q became %q: %q, %q, %+v, %v", d.Name, body, all, again.TakenOut, again.Has(without), again.Limit(nil), err)
			}
			if found := foldingReader(t, d, all, again.Model); found != "" {
				t.Fatalf("%s: %q became %q, in which another reader finds %s", d.Name, body, all, found)
			}
			if e.Before.Size() > 0 && !bytes.Contains(all, []byte(inside(text))) {
				t.Fatalf("%s: %q became %q, without the text", d.Name, body, all)
			}
		}
	})
}

// unlike is 1 where the options of a stream have a value in the place of a count that may be of any length, else 0.
func unlike(r dialect.Request) int {
	if bytes.Contains(r.Bytes(), []byte(`usage`)) || bytes.IndexByte(r.Bytes(), '\\') >= 0 {
		return 1
	}
	return 0
}

// inside is a text between the quotes of a JSON string, without what is not UTF-8.
func inside(text string) string {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(strings.ToValidUTF8(text, "\ufffd")); err != nil {
		panic(err) // a string always has a form
	}
	quoted := bytes.TrimSpace(b.Bytes())
	return string(quoted[1 : len(quoted)-1])
}

// inCommon is how many bytes two texts have in common at their beginning and their end.
func inCommon(a, b []byte) int {
	n, head, tail := min(len(a), len(b)), 0, 0
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// FuzzFilter: of a request that is read, the filter makes one that is read, too, and in which it finds nothing any more.
func FuzzFilter(f *testing.F) {
	for _, r := range refusals() {
		f.Add(`{"model":"m",` + r.members + `}`)
	}
	for _, body := range []string{
		`{"model":"m","tools":[ {"type":"web_search","name":"w"} , {"type":"namespace","name":"n","tools":[{"type":"web_search"}]},{"name":"a"} ],"tool_choice":{"type":"tool","name":"w"},"parallel_tool_calls":true}`,
		`{"tools":[{"type":"web_search"}],"store":null,"model":"m","tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"}]}}`,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"web_search"},1,"x",[]]}],"thread":{"type":"create"}}`,
		"{\"model\":\"m\",\"t\\u006fols\":[{\"t\\u0079pe\":\"web\\u005fsearch\"}],\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"\\\\\\\"\"}]}]}",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, d := range dialect.All() {
			r, err := d.ReadRequest([]byte(body))
			if err != nil {
				continue
			}
			if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
				continue
			}
			out, err := r.Body(dialect.Edit{Model: r.Model})
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.ReadRequest(out)
			if err != nil {
				t.Fatalf("%s: %q became %q: %v", d.Name, body, out, err)
			}
			if again, err = again.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil || len(again.TakenOut) > 0 || again.Tools != r.Tools {
				t.Fatalf("%s: %q became %q, in which are %q: %v", d.Name, body, out, again.TakenOut, err)
			}
			if twice, err := again.Body(dialect.Edit{Model: r.Model}); err != nil || string(twice) != string(out) {
				t.Fatalf("%s: %q became %q and then %q: %v", d.Name, body, out, twice, err)
			}
		}
	})
}

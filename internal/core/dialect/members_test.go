// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

func TestRecast(t *testing.T) {
	for name, tc := range map[string]struct {
		body    string
		without []string
		with    string
		want    string
	}{
		"nothing":           {` {"model":"a" } `, nil, "", ` {"model":"a" } `},
		"another":           {`{"model":"a"}`, nil, `"v":1`, `{"v":1,"model":"a"}`},
		"none left":         {`{"model":"a"}`, []string{"model"}, "", `{}`},
		"one for another":   {`{"model":"a"}`, []string{"model"}, `"v":1`, `{"v":1}`},
		"first":             {`{"model":"a", "x": 1.50 ,"stream":true}`, []string{"model"}, "", `{"x": 1.50,"stream":true}`},
		"last":              {`{"x":[1, {"model":"b"}],"model":"a"}`, []string{"model", "gone"}, "", `{"x":[1, {"model":"b"}]}`},
		"several in a row":  {`{"a":1,"model":"a","stream":true,"b":"\ud83d"}`, []string{"stream", "model"}, `"v":1`, `{"v":1,"a":1,"b":"\ud83d"}`},
		"however escaped":   {`{"mod\u0065l":"a","x":1}`, []string{"model"}, "", `{"x":1}`},
		"a name like it":    {`{"models":"a","Model":"b","x":1}`, []string{"model"}, "", `{"models":"a","Model":"b","x":1}`},
		"not UTF-8, within": {"{\"model\":\"a\",\"x\":\"\xff\"}", []string{"model"}, "", "{\"x\":\"\xff\"}"},
	} {
		if diff := cmp.Diff(tc.want, string(dialect.Recast([]byte(tc.body), tc.without, tc.with))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzRecast: of every request that is read, exactly the named members are gone and exactly the given one has come.
func FuzzRecast(f *testing.F) {
	for _, body := range []string{`{"model":"a"}`, ` { "stream" : true , "model" : "a" , "x":{"model":[1,"model"]}} `, `{"mod\u0065l":"a","messages":[{"role":"user","content":"}{,\""}]}`} {
		f.Add([]byte(body))
	}
	anthropic := find("anthropic")
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := anthropic.ReadRequest(body); err != nil {
			return
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(body, &before) != nil {
			return // JavaScript cuts characters in half
		}
		out := dialect.Recast(body, []string{"model", "stream", "v"}, `"v":1`)
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		for _, name := range []string{"model", "stream"} {
			delete(before, name)
		}
		before["v"] = json.RawMessage("1")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%q (-want +got):\n%s", body, diff)
		}
	})
}

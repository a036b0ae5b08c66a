// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestFilterReadsEscapedAddresses: an address is one however it is escaped, and data stays data.
func TestFilterReadsEscapedAddresses(t *testing.T) {
	const address = `https\u003a\u002f\u002fcollector\u002eexample\u002fa`
	for _, tc := range []struct{ dialect, body string }{
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"DATA"}}]}]}`},
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"DATA"}}]}]}`},
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":[["data:,x"],[["DATA"]]]}]}]}`},
		{"openai-responses", `{"model":"m","store":false,"input":[{"role":"user","content":[{"type":"input_file","file_data":"DATA"}]}]}`},
	} {
		for _, data := range []string{address, `https:\/\/collector.example\/a`, `\u0068ttps:`} {
			_, _, refused := filtered(t, tc.dialect, strings.Replace(tc.body, "DATA", data, 1), dialect.Allowed{})
			if refused == nil || refused.Reason != dialect.ServerTool {
				t.Errorf("%s with %s: %v", tc.body, data, refused)
			}
		}
		if body := strings.Replace(tc.body, "DATA", `data:image/png;base64,aGVs\nbG8\/`, 1); !strings.Contains(tc.body, "image_url") {
			body = strings.Replace(tc.body, "DATA", `aGVs\r\nbG8\/bG\u0038=`, 1)
			if got, _, refused := filtered(t, tc.dialect, body, dialect.Allowed{}); refused != nil || got != body {
				t.Errorf("%s became %s: %v", body, got, refused)
			}
		}
	}
}

// TestFilterFoldsLongNames: some readers leave out what joins words in a name, however much of it there is.
func TestFilterFoldsLongNames(t *testing.T) {
	for _, join := range []string{"_", "-"} {
		join = strings.Repeat(join, 200)
		for body, name := range map[string]string{`{"model":"m","tool` + join + `s":[{"type":"web_search"}]}`: "tool", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","te` + join + `xt":"x"}]}]}`: "te"} {
			_, _, refused := filtered(t, "openai-chat", body, dialect.Allowed{})
			if refused == nil || refused.Reason != dialect.Unclear || !strings.Contains(refused.Path, name+join[:10]) || len(refused.Path) > 300 {
				t.Errorf("%s: %v", body, refused)
			}
		}
		d, _ := dialect.Find("openai-chat")
		r, err := d.ReadRequest([]byte(`{"model":"m","service` + join + `tier":"priority","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
			t.Fatal(err)
		}
		body, err := r.Body(dialect.Edit{Model: "m", Without: []string{"service_tier"}})
		if want := `{"model":"m","messages":[]}`; err != nil || string(body) != want {
			t.Errorf("%s, %v", body, err)
		}
		if has := r.Has([]string{"service_tier"}); len(has) != 1 || len(has[0]) > 64 {
			t.Errorf("%d names", len(has))
		}
	}
	name := strings.Repeat("x", 1<<20) // a name that nobody knows
	if got, _, refused := filtered(t, "openai-chat", `{"model":"m","`+name+`":1}`, dialect.Allowed{}); refused != nil || len(got) < len(name) {
		t.Errorf("%v", refused)
	}
}

// TestFilterIsLinear: lists in lists cost no more than what they have in them. A request of 1 MiB that is looked through once for each of its 9,000
// levels takes minutes.
func TestFilterIsLinear(t *testing.T) {
	const levels = 9000
	deep := strings.Repeat("[", levels) + strings.Repeat("0,", 512<<10) + "0" + strings.Repeat("]", levels)
	for _, tc := range []struct{ dialect, body string }{
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":DEEP}]}]}`},
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","file_url":DEEP}]}]}`},
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":DEEP}}]}]}`},
		{"openai-responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":DEEP}]}]}`},
		{"anthropic", `{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":DEEP}}]}]}`},
		{"gemini", `{"contents":[],"tools":DEEP}`},
	} {
		body := strings.Replace(tc.body, "DEEP", deep, 1)
		d, _ := dialect.Find(tc.dialect)
		r, err := d.ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.Filter(d.Endpoints[0], dialect.Allowed{}) // whether it is refused is for other tests
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it takes longer than 10 s", tc.body)
		}
	}
}

// TestErrorsAreBounded: what is said about a request that cannot be read has no name of it in full.
func TestErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	d, _ := dialect.Find("openai-chat")
	for _, body := range []string{
		`{"` + long + `":1,"` + long + `":1}`, `{"model":"m","a":{"` + long + `":1,"` + long + `":1}}`, `{"model":"m","` + long + `":{"a":1,"a":2}}`, `{"model":"m","` + long + `":[}`, `{"model":"` + long, `{"model":1e` + long + `}`,
	} {
		if _, err := d.ReadRequest([]byte(body)); err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%.40s: %.500v", body, err)
		}
	}
}

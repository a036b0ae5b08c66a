// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"runtime"
	"strconv"
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
		if !strings.Contains(tc.body, "image_url") {
			body := strings.Replace(tc.body, "DATA", `aGVs\r\nbG8\/bG\u0038=`, 1)
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
		body, err := r.Body(dialect.Edit{Model: "m", Without: dialect.Fold("service_tier")})
		if want := `{"model":"m","messages":[]}`; err != nil || string(body) != want {
			t.Errorf("%s, %v", body, err)
		}
		if has := r.Has(dialect.Fold("service_tier")); len(has) != 1 || len(has[0]) > 64 {
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
		case <-time.After(time.Minute):
			t.Fatalf("%s: it takes longer than a minute", tc.body)
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

// TestFilterRefusesTwoSpellings of one member at each depth that is read: a provider takes one of them, and nobody knows which.
func TestFilterRefusesTwoSpellings(t *testing.T) {
	for body, path := range map[string]string{
		`{"contents":[],"generationConfig":{"maxOutputTokens":1},"generation_config":{}}`:                                  "generation_config",
		`{"contents":[],"generationConfig":{"candidateCount":1,"candidate_count":8}}`:                                      "generationConfig.candidate_count",
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"x"},"inline_data":{"data":"y"}}]}]}`:         "contents[0].parts[0].inline_data",
		`{"contents":[],"tools":[{"functionDeclarations":[],"function_declarations":[{"name":"f"}]}]}`:                     "tools[0].function_declarations",
		`{"contents":[],"tool_config":{"functionCallingConfig":{"mode":"NONE"},"function_calling_config":{"mode":"ANY"}}}`: "tool_config.function_calling_config",
	} {
		_, _, refused := filtered(t, "gemini", body, dialect.Allowed{})
		if refused == nil || refused.Reason != dialect.Unclear || refused.Path != path {
			t.Errorf("%s: %v", body, refused)
		}
	}
}

// TestFilterKeepsTheModel: no member chooses another model than the path, or the policy, does.
func TestFilterKeepsTheModel(t *testing.T) {
	for _, body := range []string{
		`{"contents":[],"generationConfig":{"routingConfig":{"manualMode":{"modelName":"dear"}}}}`, `{"contents":[],"generation_config":{"routing_config":{"autoMode":{}}}}`,
		`{"contents":[],"generationConfig":{"modelSelectionConfig":{"featureSelectionPreference":"PRIORITIZE_QUALITY"}}}`,
	} {
		if got, _, refused := filtered(t, "gemini", body, dialect.Allowed{}); refused == nil || refused.Reason != dialect.Unclear {
			t.Errorf("%s became %s: %v", body, got, refused)
		}
	}
}

// TestFilterReadsStream: what some servers take for true and others refuse is not sent on, so that gateway and server agree whether the answer is a
// stream.
func TestFilterReadsStream(t *testing.T) {
	for _, d := range dialect.All() {
		for value, refuses := range map[string]bool{`"true"`: true, `1`: true, `"yes"`: true, `[true]`: true, `{}`: true, `true`: false, `false`: false, `null`: false} {
			_, _, refused := filtered(t, d.Name, `{"model":"m","contents":[],"stream":`+value+`}`, dialect.Allowed{})
			if (refused != nil) != refuses || refuses && (refused.Reason != dialect.Unclear || refused.Path != "stream") {
				t.Errorf("%s, %s: %v", d.Name, value, refused)
			}
		}
	}
}

// TestRequestWithoutContents: something stays of every request, whatever is taken out of it, so that what is put in is followed by it.
func TestRequestWithoutContents(t *testing.T) {
	d, _ := dialect.Find("gemini")
	for _, body := range []string{`{}`, `{ }`, `{"tools":[{"googleSearch":{}}]}`, `{"store":true,"service_tier":"priority"}`} {
		r, err := d.ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err == nil || !strings.Contains(err.Error(), `"contents"`) {
			t.Errorf("%s: %v", body, err)
		}
	}
	r, err := d.ReadRequest([]byte(`{"tools":[{"googleSearch":{}}],"contents":[],"speed":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
		t.Fatal(err)
	}
	out, err := r.Body(dialect.Edit{Before: dialect.Quote("Be kind."), Limit: 5, Without: dialect.Fold("speed")})
	if want := `{"generationConfig":{"maxOutputTokens":5},"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[]}`; err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

// TestRequestsTakeLittleMemory: what is kept to read a request is not many times as large as the request. One of 32 MiB took more than the gateway's
// container has.
func TestRequestsTakeLittleMemory(t *testing.T) {
	const size = 4 << 20
	var list strings.Builder
	for i := 0; list.Len() < size; i++ {
		list.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":0,`)
	}
	members := list.String()
	deep := strings.Repeat("[{\"\\\\\\\"\":", 20) + `{` + members + `"_":0}` + strings.Repeat("}]", 20)
	d, _ := dialect.Find("openai-chat")
	for name, body := range map[string]string{
		"members": `{"model":"m",` + members + `"messages":[]}`, "members of a member": `{"model":"m","messages":[],"x":{` + members + `"_":0}}`, "deep": `{"model":"m","messages":[],"x":` + deep + `}`,
		"a long name": `{"model":"` + strings.Repeat("m", size) + `","messages":[]}`, "a name with escapes": `{"model":"` + strings.Repeat(`\u0041`, size/6) + `","messages":[]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.ReadRequest([]byte(body))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 3*size { // a copy of the body, and some
			t.Errorf("%s: %d MiB were taken for %d", name, taken>>20, size>>20)
		}
	}
	if _, err := d.ReadRequest([]byte(`{"model":"m",` + members[:512<<10] + `,"messages":[]}`)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("members of a small request: %v", err)
	}
	for name, body := range map[string]string{
		"few members of each of many": `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"a:b"},`, size/32) + `{}]}`,
		"one text":                    `{"model":"m","messages":["\\","\":\\\"` + strings.Repeat(`:{[`, size/3) + `"]}`,
		"a name of AWS":               `{"model":"arn:aws:bedrock:` + strings.Repeat("x", 2000) + `","messages":[]}`,
	} {
		if _, err := d.ReadRequest([]byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFilterBoundsWhatItTakesOut: each place where something is taken out is kept, so that a request may have many, and not hundreds of thousands.
func TestFilterBoundsWhatItTakesOut(t *testing.T) {
	for n, refuses := range map[int]bool{1000: false, 20_000: true} {
		body := `{"model":"m","tools":[` + strings.Repeat(`{"type":"web_search"},{"name":"a"},`, n) + `{"name":"b"}]}`
		_, _, refused := filtered(t, "anthropic", body, dialect.Allowed{})
		if (refused != nil) != refuses || refuses && (refused.Reason != dialect.Unclear || !strings.Contains(refused.Message, "places")) {
			t.Errorf("%d places: %v", n, refused)
		}
	}
}

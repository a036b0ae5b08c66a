// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// token looks like one of GitHub's, and is none.
const token = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO"

func TestRedact(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7\n", 8) + "-----END RSA PRIVATE KEY-----"
	quoted, err := json.Marshal("first\n" + token + "\tand \\n \"" + token + "\"")
	if err != nil {
		t.Fatal(err)
	}
	const mark = "[redacted: github-pat]"
	for name, tc := range map[string]struct{ text, want string }{
		"no secret":                {"nothing \\n of the kind", "nothing \\n of the kind"},
		"nothing":                  {"", ""},
		"a token":                  {"use " + token + ".", "use " + mark + "."},
		"the whole text":           {token, mark},
		"two in a line":            {token + " " + token, mark + " " + mark},
		"a key":                    {"a\n" + key + "\nb", "a\n[redacted: private-key]\nb"},
		"a key in JSON":            {strings.ReplaceAll(key, "\n", `\n`), "[redacted: private-key]"},
		"in a JSON string":         {string(quoted), `"first\n` + mark + `\tand \\n \"` + mark + `\""`},
		"assigned":                 {`api_key = "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA"`, `api_key = "[redacted: generic-api-key]"`},
		"assigned in JSON":         {`{"text":"api_key = \"x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA\""}`, `{"text":"api_key = \"[redacted: generic-api-key]\""}`},
		"assigned in JSON of Java": {`{"text":"api_key \u003d \u0027x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA\u0027"}`, `{"text":"api_key \u003d \u0027[redacted: generic-api-key]\u0027"}`},
		"in JSON of JSON of Java":  {`{"a":"{\"b\":\"api_key\\u003D\\u0022x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA\\u0022\"}"}`, `{"a":"{\"b\":\"api_key\\u003D\\u0022[redacted: generic-api-key]\\u0022\"}"}`},
		"a letter that is escaped": {`{"text":"\u0067hp_` + token[4:] + ` \u00"}`, `{"text":"` + mark + ` \u00"}`},
		"no escape":                {`\u`, `\u`},
		"escaped backslash":        {`C:\\nothing`, `C:\\nothing`},
	} {
		got, err := NewRedactor().Redact(t.Context(), Budget, []byte(tc.text))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, tc.want)
		}
	}
}

// TestRedactStreams: a secret that events give in pieces is taken out of all of them, and what comes out is still a stream
// that says the rest.
func TestRedactStreams(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7\n", 8) + "-----END RSA PRIVATE KEY-----"
	said := "Use \"" + token + "\" or\n" + key + "\nand api_key = \"x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA\".\nThat is all."
	const want = "Use \"[redacted: github-pat]\" or\n[redacted: private-key]\nand api_key = \"[redacted: generic-api-key]\".\nThat is all."
	inJSON, err := json.Marshal(map[string]string{"command": said})
	if err != nil {
		t.Fatal(err)
	}
	for name, event := range map[string]string{
		"Anthropic":  `{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`,
		"Responses":  `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":%d,"delta":%s}`,
		"Chat":       `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":%d,"delta":{"content":%s},"finish_reason":null}]}`,
		"index last": `{"a":[{"b":[1,{"c":{"d":%[2]s}}],"index":%[1]d}]}`,
	} {
		for size := 1; size < 40; size += 3 {
			var stream strings.Builder
			// Two texts that take turns: each is whole for itself.
			texts := []string{said, string(inJSON)}
			for rest := true; rest; {
				rest = false
				for index, text := range texts {
					n := min(size, len(text))
					quoted, err := json.Marshal(text[:n])
					if err != nil {
						t.Fatal(err)
					}
					texts[index] = text[n:]
					rest = rest || n > 0
					fmt.Fprintf(&stream, "event: x\ndata: "+event+"\n\n", index, quoted)
				}
			}
			stream.WriteString("data: [DONE]\n\ndata: {\"broken")
			got, err := NewRedactor().Redact(t.Context(), Budget, []byte(stream.String()))
			if err != nil {
				t.Fatal(err)
			}
			texts = []string{"", ""}
			for _, p := range piecesOf(got) {
				text := string(p.text)
				if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
					text = plain
				}
				switch {
				case strings.HasPrefix(text, "Use"):
					texts[0] = text
				case strings.HasPrefix(text, "{"):
					texts[1] = text
				}
			}
			var command map[string]string
			if err := json.Unmarshal([]byte(texts[1]), &command); err != nil || texts[0] != want || command["command"] != want {
				t.Errorf("%s in pieces of %d: %v\n%s\n%s\nof\n%s", name, size, err, texts[0], texts[1], got)
			}
		}
	}
}

// TestEscapesHideNothing: what is found in a text with escapes is what is found in it as it is, and in a text that has what they stand for.
func TestEscapesHideNothing(t *testing.T) {
	parts := []string{
		token, "ghp_", "npm_x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO", "api_key", "token", "secret", "password", "key", "AKIAQYLPMN5HHHFPZAM2", "kind", "-----BEGIN RSA PRIVATE KEY-----",
		"<add key=", "curl -H", "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA", " = ", ":", "'", `"`, ` `, "\n", `\n`, `\\n`, `\r`, `\t`, `\b`, `\f`, `\"`, `\\"`, `\`, `\u0041`, "n", "t", "b",
	}
	random, r, found := rand.New(rand.NewPCG(1, 2)), NewRedactor(), 0
	for round := range 5000 {
		var text []byte
		for range 1 + random.IntN(30) {
			text = append(text, parts[random.IntN(len(parts))]...)
		}
		if round%100 == 0 { // more keywords than are remembered
			text = append(bytes.Repeat([]byte("token key "), 1000), text...)
		}
		meant := withoutEscapes(text)
		if meant == nil {
			continue
		}
		both, _, _, err := r.scanner.Locate(t.Context(), Budget, text, meant)
		if err != nil {
			t.Fatal(err)
		}
		var want []Place
		for _, one := range [][]byte{text, meant} {
			places, _, _, err := r.scanner.Locate(t.Context(), Budget, one, nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, places...)
		}
		if found += len(want); !slices.Equal(both, want) {
			t.Fatalf("%q:\n%v\nwant\n%v", text, both, want)
		}
	}
	if found < 2000 {
		t.Errorf("%d secrets are too few to say anything", found)
	}
}

// TestRedactFindsAll: also more secrets than one search has room for.
func TestRedactFindsAll(t *testing.T) {
	var text strings.Builder
	for i := range 5 * maxPlaces {
		fmt.Fprintf(&text, "%s%03d\n", token[:len(token)-3], i)
	}
	got, err := NewRedactor().Redact(t.Context(), Budget, []byte(text.String()))
	if want := strings.Repeat("[redacted: github-pat]\n", 5*maxPlaces); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestRedactIsBounded: what is too hard is an error, and never passes.
func TestRedactIsBounded(t *testing.T) {
	if got, err := NewRedactor().Redact(t.Context(), 10, []byte(strings.Repeat(token+" ", 100))); !errors.Is(err, ErrTooHard) || got != nil {
		t.Errorf("%v, %s", err, got)
	}
}

// FuzzRedact: a token never comes out, whatever stands around it.
func FuzzRedact(f *testing.F) {
	f.Add("", "")
	f.Add("a = '", "'")
	f.Add(`{"a":"\n`, `\n\\"}`)
	s := NewRedactor()
	f.Fuzz(func(t *testing.T, before, after string) {
		text := []byte(before + " " + token + " " + after)
		got, err := s.Redact(t.Context(), Budget, text)
		if err == nil && bytes.Contains(got, []byte(token)) {
			t.Errorf("%q", got)
		}
		text = []byte(before + ` \u0020` + strings.ReplaceAll(token, "_", `\u005f`) + ` ` + after)
		if got, err = s.Redact(t.Context(), Budget, text); err == nil && bytes.Contains(got, []byte(token[4:])) {
			t.Errorf("%q", got)
		}
	})
}

// BenchmarkRedact an answer in events of some letters each, as models stream it.
func BenchmarkRedact(b *testing.B) {
	for _, size := range []int{40 << 10, 4 << 20} {
		var stream strings.Builder
		for i := 0; stream.Len() < size; i++ {
			fmt.Fprintf(&stream, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word%d\\n\"}}\n\n", i%97)
		}
		text, s := []byte(stream.String()), NewRedactor()
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if got, err := s.Redact(b.Context(), Budget, text); err != nil || len(got) != len(text) {
					b.Fatalf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
}

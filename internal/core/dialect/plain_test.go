// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// blocksOf are blocks of messages as clients write them, and as nobody should. LAST stands for one more member.
var blocksOf = []string{
	`{"type":"text","text":"Plain words."LAST}`,
	`{"type":"text","text":"\ttabs \"quotes\" \\ \u00e9\ud83d\ude00 and é"LAST}`,
	`{"type":"text","text":"half \ud83d of a character"LAST}`,
	"{\"type\":\"text\",\"text\":\"no \xff UTF-8\"LAST}",
	`{"type":"text","text":null,"cache_control":{"type":"ephemeral"}LAST}`,
	`{"type":"text","text":5LAST}`,
	`{"Type":"text","TEXT":"other letters"LAST}`,
	`{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a.go", "n": [1, 2]}LAST}`,
	`{"type":"tool_use","id":"c2","name":"Read","input":nullLAST}`,
	`{"tool_use_id":"c1","type":"tool_result","content":"a result","is_error":falseLAST}`,
	`{"tool_use_id":"c2","type":"tool_result","content":[{"type":"text","text":"in"},{"type":"text","text":"parts"},{"type":"image"}],"is_error":trueLAST}`,
	`{"tool_use_id":"c3","type":"tool_result","content":null,"is_error":nullLAST}`,
	`{"tool_use_id":"c4","type":"tool_result","content":"x","is_error":"yes"LAST}`,
	`{"type":"thinking","thinking":"hm","signature":"s"LAST}`,
	`{"type":"image","source":{"data":"aGk="}LAST}`,
	`{"type":{}LAST}`,
	`{}`, `null`, `"words"`, `[]`, `5`,
}

// TestPlainMessages: a message is read in one pass as it is by the reader that knows every case. That one reads it where a member has a name in
// other letters, which changes nothing when it is null.
func TestPlainMessages(t *testing.T) {
	d, _ := dialect.Find("anthropic")
	random := rand.New(rand.NewPCG(1, 2))
	read := func(entry string) conversation.Message {
		t.Helper()
		r, err := d.ReadRequest([]byte(`{"model":"m","messages":[` + entry + `]}`))
		if err != nil {
			t.Fatalf("%s: %v", entry, err)
		}
		c := r.Conversation()
		e, _, _ := c.Next(0)
		return c.Message(e)
	}
	for _, entry := range []string{`{"ROLE":"user","content":"words"}`, `{"role":"user","Content":[{"type":"text","text":"words"}]}`, `{"role":"user","content":[{"Type":"text","text":"words"}]}`} {
		if m := read(entry); m.Text.Text != "words" || m.Role != conversation.RoleUser {
			t.Errorf("%s is read as %+v", entry, m)
		}
	}
	for n := range 3000 {
		var plain, other []string
		for range random.IntN(4) {
			b := blocksOf[random.IntN(len(blocksOf))]
			plain, other = append(plain, strings.ReplaceAll(b, "LAST", "")), append(other, strings.ReplaceAll(b, "LAST", `,"NAME":null`))
		}
		sep := []string{",", " , ", ",\n"}[n%3]
		content, otherContent := "["+strings.Join(plain, sep)+"]", "["+strings.Join(other, sep)+"]"
		if n%10 == 0 {
			content = []string{`"words"`, `"half \ud83d"`, `null`, `{}`, `5`}[n/10%5]
			otherContent = content
		}
		role := []string{`"user"`, `"assistant"`, `"\u0075ser"`, `null`}[random.IntN(4)]
		const form = `{"role":%s,"content":%s%s}`
		if diff := cmp.Diff(read(fmt.Sprintf(form, role, otherContent, `,"ROLE":null`)), read(fmt.Sprintf(form, role, content, ""))); diff != "" {
			t.Fatalf("%s (-known +plain):\n%s", content, diff)
		}
	}
}

// entriesOf are entries of the other dialects as clients write them, and as nobody should. A word in large letters stands for one more member.
var entriesOf = map[string][]string{
	"openai-chat": {
		`{"role":"user","content":"words"ENTRY}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"a\"}"FUNCTION}CALL}, {"id":"d","type":"custom","custom":{"name":"patch","input":"*** Begin Patch"FUNCTION}CALL}]ENTRY}`,
		`{"role":"assistant","content":"","tool_calls":[ ]ENTRY}`,
		`{"role":"assistant","tool_calls":nullENTRY}`,
		`{"role":"assistant","content":"no list","tool_calls":{"id":"c"}ENTRY}`,
		`{"role":"assistant","content":"strange","tool_calls":[{"id":5CALL}]ENTRY}`,
		`{"role":"assistant","content":"strange","tool_calls":[{"id":"c","function":nullCALL},5]ENTRY}`,
		`{"role":"assistant","content":"strange","tool_calls":[null,{"id":"c","function":{"name":null,"arguments":"half \ud83d"FUNCTION}CALL}]ENTRY}`,
		`{"role":"assistant","content":"cut","tool_calls":[{"id":"c","function":{"name":"Read","arguments":"half \ud83d"FUNCTION}CALL}]ENTRY}`,
		`{"role":"assistant","content":"strange","tool_calls":5ENTRY}`,
		`{"role":"tool","tool_call_id":"c","content":"a \u00e9 result\n"ENTRY}`,
		`{"role":"tool","tool_call_id":null,"content":[{"type":"text","text":"in"},{"type":"image_url"}]ENTRY}`,
		"{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"no \xff UTF-8\"ENTRY}",
		`{"role":5,"content":"words"ENTRY}`, `{"content":5ENTRY}`, `null`, `5`, `[]`, `"words"`, `{}`,
	},
	"openai-responses": {
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"words"}]ENTRY}`,
		`{"role":"assistant","content":"wo\trds"ENTRY}`,
		`{"type":"function_call","call_id":"c","id":"i","name":"Read","arguments":"{\"file_path\":\"a\"}"ENTRY}`,
		`{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin Patch"ENTRY}`,
		`{"type":"local_shell_call","id":"i","action":{"command":["ls"]}ENTRY}`,
		`{"type":"function_call_output","call_id":"c","output":"Wall time: 1 seconds\nOutput:\nx"ENTRY}`,
		`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"}],"status":"failed"ENTRY}`,
		`{"type":"shell_call_output","id":"i","output":{"x":1},"status":nullENTRY}`,
		`{"type":"function_call","call_id":null,"name":5,"arguments":"x"ENTRY}`,
		"{\"type\":\"function_call\",\"call_id\":\"c\",\"arguments\":\"no \xff UTF-8\"ENTRY}",
		`{"type":"function_call","call_id":"c","arguments":"half \ud83d"ENTRY}`,
		`{"type":"message","role":"user","content":nullENTRY}`, `{"type":{}ENTRY}`, `null`, `5`, `[]`, `"words"`, `{}`,
	},
	"gemini": {
		`{"role":"user","parts":[{"text":"words"PART}, {"text":"more\n"PART}]ENTRY}`,
		`{"role":"user","parts":{"text":"no list"PART}ENTRY}`,
		`{"role":"model","parts":[{"text":"hm","thought":truePART},{"text":"So."PART},{"functionCall":{"id":"c","name":"Read","args":{"file_path":"a"}CALL},"thoughtSignature":"s"PART}]ENTRY}`,
		`{"role":"model","parts":[{"functionCall":{"name":"Read"CALL}PART},{"functionCall":{"name":"Read","args":nullCALL}PART},{"functionCall":nullPART},{"functionCall":5PART}]ENTRY}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"Read","response":{"output":"a \u00e9 result"RESPONSE}CALL}PART}]ENTRY}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"","x":1RESPONSE}CALL}PART},{"functionResponse":{"name":"Read","response":{"output":"x","y":1RESPONSE}CALL}PART}]ENTRY}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"error":"bad"}CALL}PART},{"functionResponse":{"name":"Read","response":{"output":5}CALL}PART},{"functionResponse":{"name":"Read","response":[1]CALL}PART},{"functionResponse":{"name":"Read","response":{}CALL}PART}]ENTRY}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"x","error":"bad"}CALL}PART}]ENTRY}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"half \ud83d"RESPONSE}CALL}PART},{"inlineData":{"data":"aGk="}PART},{"executableCode":{"code":"x"}PART}]ENTRY}`,
		"{\"role\":\"user\",\"parts\":[{\"text\":\"no \xff UTF-8\"PART},{\"text\":nullPART},{\"text\":5PART},5,null,[],{}]ENTRY}",
		`{"role":"user","parts":[]ENTRY}`, `{"role":"user","parts":nullENTRY}`, `{"role":"user","parts":5ENTRY}`, `{"role":5,"parts":[]ENTRY}`, `null`, `5`, `[]`, `"words"`, `{}`,
	},
}

// TestPlainEntries: entries of the other dialects are read in one pass as they are by the reader that knows every case.
func TestPlainEntries(t *testing.T) {
	members := map[string]string{"ENTRY": `"ROLE":null`, "CALL": `"ID":null`, "FUNCTION": `"NAME":null`, "PART": `"THOUGHT_SIGNATURE":null`, "RESPONSE": `"Error":null`}
	without := strings.NewReplacer("ENTRY", "", "CALL", "", "FUNCTION", "", "PART", "", "RESPONSE", "")
	for name, entries := range entriesOf {
		d, _ := dialect.Find(name)
		read := func(entry string) conversation.Message {
			t.Helper()
			r, err := d.ReadRequest([]byte(`{"model":"m","` + d.History + `":[0 , ` + entry + ` ]}`))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, entry, err)
			}
			c := r.Conversation()
			_, end, _ := c.Next(0)
			e, _, _ := c.Next(end)
			if string(e) != entry {
				t.Fatalf("%s: the entry %s is read as %s", name, entry, e)
			}
			return c.Message(e)
		}
		for _, entry := range entries {
			plain := read(without.Replace(entry))
			for place, member := range members {
				other := without.Replace(strings.ReplaceAll(entry, place, ","+member))
				known := read(other)
				if known.Other == conversation.Sum([]byte(other)) { // what cannot be read is known by its bytes
					known.Other = conversation.Sum([]byte(without.Replace(entry)))
				}
				if diff := cmp.Diff(known, plain); diff != "" {
					t.Errorf("%s: %s (-known +plain):\n%s", name, other, diff)
				}
			}
		}
	}
}

// TestReplies of Gemini: the output, or the error, and all of a response that has neither.
func TestReplies(t *testing.T) {
	d, _ := dialect.Find("gemini")
	for response, want := range map[string]string{
		`{"output":"x"}`: "x", `{"output":"x","error":"bad"}`: "bad", `{"error":{"code":5}}`: `{"code":5}`, `{"output":""}`: "", `{}`: "{}", `{"output":5}`: `{"output":5}`, `[1]`: "[1]",
	} {
		r, err := d.ReadRequest([]byte(`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"Read","response":` + response + `}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		c := r.Conversation()
		entry, _, _ := c.Next(0)
		if m := c.Message(entry); len(m.Results) != 1 || m.Results[0].Text.Text != want || m.Results[0].Failed != strings.Contains(response, "error") {
			t.Errorf("%s is read as %+v, want %q", response, m.Results, want)
		}
	}
}

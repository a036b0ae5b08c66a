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

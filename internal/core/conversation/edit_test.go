// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestEditOf: an edit is known by its members in any letters, escaped or not, and by a patch, however long the arguments are.
func TestEditOf(t *testing.T) {
	const patch = `*** Begin Patch\n*** Update File: a.go\n-old\n+new\n*** End Patch`
	long := strings.Repeat("x", 4<<10)
	for arguments, edits := range map[string]bool{
		`{"file_path":"a.go","old_string":"a","new_string":"b"}`:    true,
		`{"FILE_PATH":"a.go","OLD_STRING":"a","New_String":"b"}`:    true,
		`{"filePath":"a.go","oldString":"a","newString":"b"}`:       true,
		`{"path":"a.go","\u006fld_string":"a","new_string":"b"}`:    true,
		`{"path":"a.go","old_\u017ftring":"a","new_string":"b"}`:    true,
		`{"path":"` + long + `","old_string":"a","new_string":"b"}`: true,
		`{"old_string":"a"}`:                                false,
		`{"patch":"` + patch + `"}`:                         true,
		`{"PatchText":"` + patch + `"}`:                     true,
		`{"input":"` + patch + `"}`:                         true,
		`{"text":"` + patch + `"}`:                          false,
		strings.ReplaceAll(patch, `\n`, "\n"):               true,
		"diff --git a/a b/a\n--- a/a\n+++ b/a\n-was\n+is\n": true,
		`{"file_path":"a.go","limit":2000}`:                 false,
		`{"command":"cat bold.go"}`:                         false,
		`{"file_path":`:                                     false,
		``:                                                  false,
		`["old_string","new_string"]`:                       false,
		"{\"old_\xc5\xbftring\":\"a\",\"new_string\":\"b\",\"file_path\":\"a.go\"}": true,
	} {
		if e := conversation.EditOf([]byte(arguments)); e.Edits() != edits {
			t.Errorf("%.80s is read as %+v, which is an edit: %t; want %t", arguments, e, e.Edits(), edits)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package redacted

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// TestBounded: each text of a document is bounded, and all of them together as JSON has them; everything else, and the document, stay as they are.
func TestBounded(t *testing.T) {
	type part struct {
		Word string
		At   time.Time
	}
	type document struct {
		Name  string
		Count int
		List  []string
		Part  *part
		Parts []part
		None  *part
	}
	long := strings.Repeat("<", 1<<10)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	had := document{Name: "n", Count: 7, List: []string{"a", long}, Part: &part{long, at}, Parts: []part{{"short", at}, {long, at}}}
	got := Bounded(had, 100, 1<<20)
	cut := plain.CutBytes(long, 100)
	if want := (document{Name: "n", Count: 7, List: []string{"a", cut}, Part: &part{cut, at}, Parts: []part{{"short", at}, {cut, at}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if had.List[1] != long || had.Part.Word != long || had.Parts[1].Word != long {
		t.Error("the document was changed")
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.String(), 0, 32).Draw(t, "list")
		all := rapid.IntRange(0, 200).Draw(t, "all")
		size := 0
		for _, text := range Bounded(list, 50, all) {
			data, err := json.Marshal(text)
			if err != nil || len(text) > 50 {
				t.Fatalf("%q, %v", text, err)
			}
			size += len(data) - 2
		}
		if size > all {
			t.Fatalf("%d bytes, more than %d", size, all)
		}
	})
}

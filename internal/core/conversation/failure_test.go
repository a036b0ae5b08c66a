// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"regexp/syntax"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestMayFail: a text that unmarked finds begins, behind spaces, with a character that may begin one.
func TestMayFail(t *testing.T) {
	tree, err := syntax.Parse(unmarked, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	const spaces = "\t\n\f\r "
	begins := 0
	seen, open := map[uint32]bool{}, []uint32{uint32(program.Start)} //nolint:gosec // a small number
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		switch i := &program.Inst[at]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			open = append(open, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			open = append(open, i.Out)
		case syntax.InstMatch:
			t.Error("an empty text is found")
		case syntax.InstFail:
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for r := range utf8.MaxRune {
				switch is := i.MatchRune(r); {
				case is && strings.ContainsRune(spaces, r):
					open = append(open, i.Out)
				case is:
					begins++
					if !mayFail(spaces + string(r)) {
						t.Errorf("a text that begins with %q is not looked at", r)
					}
				}
			}
		}
	}
	if begins < 30 || mayFail("") || mayFail("  1\tpackage shop") || mayFail("ok") {
		t.Errorf("%d characters begin a text", begins)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"unicode"
	"unicode/utf8"
)

// Visible says whether a character is visible at its place: not a control character, not a mark that changes the direction of text, not
// without a width.
func Visible(r rune) bool { return unicode.IsPrint(r) && !Invisible(r) }

// Invisible says whether a character cannot be seen, or changes how its neighbours appear. Such characters are controls, format characters
// (bidirectional overrides and zero-width ones among them), line separators, fillers, variation selectors. HFS+ leaves some of them out
// when it compares names, which is how ".g\u200cit" once became ".git".
func Invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

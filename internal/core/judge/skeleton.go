// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lookalike are letters that look like letters of ASCII, chosen by eye from the alphabets that people write names in. The
// idea of a skeleton is that of Unicode TR39; its table (confusables.txt) is larger and also maps letters of ASCII to each
// other. What NFKC maps to ASCII (fullwidth and mathematical letters, ligatures) is not in it.
var lookalike = lookalikeOf(
	// Cyrillic.
	"аa", "вb", "сc", "ԁd", "еe", "һh", "іi", "јj", "кk", "ӏl", "мm", "оo", "рp", "ԛq", "гr", "ѕs", "тt", "ѵv", "ԝw", "хx", "уy", "үy",
	"АA", "ВB", "СC", "ЕE", "Ԍg", "НH", "ІI", "ЈJ", "КK", "ӀL", "МM", "ОO", "РP", "ԚQ", "ЅS", "ТT", "ѴV", "ԜW", "ХX", "УY", "ҮY",
	// Greek.
	"αa", "γy", "ιi", "κk", "νv", "οo", "ρp", "σo", "τt", "υu", "χx", "ϳj",
	"ΑA", "ΒB", "ΕE", "ΖZ", "ΗH", "ΙI", "ΚK", "ΜM", "ΝN", "ΟO", "ΡP", "ΤT", "ΥY", "ΧX", "ͿJ",
	// Armenian.
	"աw", "գq", "զq", "հh", "ոn", "ռn", "սu", "օo", "ցg", "ՍU", "ՏS", "ՕO",
	// Cherokee.
	"ᎠD", "ᎡR", "ᎢT", "ᎥI", "ᎩY", "ᎪA", "ᎫJ", "ᎬE", "ᎳW", "ᎷM", "ᎻH", "ᎽY", "ᏀG", "ᏂH", "ᏃZ", "ᏎE", "ᏏB", "ᏒR", "ᏔW", "ᏕS", "ᏙV", "ᏚS", "ᏞL", "ᏟC", "ᏢP", "ᏦK", "ᏧJ",
	// Letters of Latin and its extensions.
	"ɑa", "ɡg", "ıi", "ɩi", "ꜱs", "ʏy", "ᴄc", "ᴏo", "ᴜu", "ᴠv", "ᴡw", "ᴢz",
)

func lookalikeOf(pairs ...string) map[rune]rune {
	m := make(map[rune]rune, len(pairs))
	for _, pair := range pairs {
		letters := []rune(pair)
		m[letters[0]] = letters[1]
	}
	return m
}

// skeleton is the same for names that look alike. It does not tell "l" from "1": readers of code distinguish these every day.
func skeleton(name string) string {
	if visibleASCII(name) {
		return strings.ToLower(name)
	}
	return strings.Map(func(r rune) rune {
		if like, ok := lookalike[r]; ok {
			r = like
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(name))
}

// alphabets of which letters look alike.
var alphabets = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin},
	{"Cyrillic", unicode.Cyrillic},
	{"Greek", unicode.Greek},
	{"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee},
	{"Coptic", unicode.Coptic},
}

// mixedScripts says which scripts one word of a name mixes, or "". Words end at anything but a letter: "café_тест" mixes none.
func mixedScripts(name string) string {
	if visibleASCII(name) {
		return ""
	}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		var in []string
		for _, a := range alphabets {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(a.table, r) }) {
				in = append(in, a.name)
			}
		}
		if len(in) > 1 {
			return fmt.Sprintf("the name %s mixes letters of %s and %s in one word", quoteName(name), in[0], in[1])
		}
	}
	return ""
}

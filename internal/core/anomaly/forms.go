// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"strings"
)

// form of a call: the same for commands that differ in flags, numbers, what is shown of them, additional output and the sleep before. It is
// 0 for a call that is not a command.
func (a arguments) form() sum {
	var words []string
	for part := range strings.FieldsFuncSeq(a.command, func(r rune) bool { return r == ';' || r == '&' || r == '|' || r == '\n' }) {
		list := strings.Fields(part)
		for len(list) > 0 && (strings.Contains(list[0], "=") || oneOf(list[0], "sudo", "env", "time", "nice")) {
			list = list[1:]
		}
		if len(list) == 0 || oneOf(list[0], "cd", "sleep", "echo", "printf", "export", "set", "true", "date", "tail", "head", "tee", "cat", "less", "wc", "grep", "1") {
			if len(words) > 0 || len(list) == 0 || !oneOf(list[0], "tail", "head", "cat", "wc", "grep") { // what looks at a file is what is run
				continue
			}
		}
		for i, w := range list {
			if strings.HasPrefix(w, "-") && i > 0 || strings.ContainsAny(w, "<>") || i > 0 && strings.Contains(list[i-1], ">") {
				continue
			}
			words = append(words, numberless(w))
		}
	}
	if len(words) == 0 {
		return 0
	}
	return mix(textSum(a.call.Name), textSum(strings.Join(words, " ")))
}

func oneOf(word string, words ...string) bool { return slices.Contains(words, word) }

// numberless is the word with one mark for each number.
func numberless(word string) string {
	if strings.IndexFunc(word, func(r rune) bool { return r >= '0' && r <= '9' }) < 0 {
		return word
	}
	var b strings.Builder
	for i := range len(word) {
		if !digit(word[i]) {
			b.WriteByte(word[i])
		} else if i == 0 || !digit(word[i-1]) {
			b.WriteByte('#')
		}
	}
	return b.String()
}

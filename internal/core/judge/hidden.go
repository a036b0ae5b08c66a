// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden are the hidden characters of a text.
type hidden struct {
	// count of them, at most maxHidden.
	count int
	// line and rune of the first one.
	line int
	rune rune
}

const (
	// maxHidden bounds what is counted.
	maxHidden = 10_000
	byteOrder = '\ufeff'
	joiner    = '\u200d'
	nonJoiner = '\u200c'
	blackFlag = '\U0001f3f4'
)

// findHidden looks for characters that make a text read otherwise than it is: characters that turn its direction, characters without a
// width, and tags; but not where writing or emoji need them. It ends early when stop says so.
func findHidden(text []byte, stop func() bool) hidden {
	const part = 1 << 20
	var h hidden
	before := rune(-1) // what stands before
	first := 0
	for i := 0; i < len(text) && h.count < maxHidden; {
		if i >= first+part {
			if first = i; stop() {
				break
			}
		}
		if text[i] < utf8.RuneSelf {
			before = rune(text[i])
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if couldHide(r) {
			next, _ := utf8.DecodeRune(text[i+size:])
			if hides(r, before, next, i == 0) {
				if h.count++; h.count == 1 {
					h.rune, h.line = r, 1+bytes.Count(text[:i], []byte{'\n'})
				}
			}
		}
		before = r
		i += size
	}
	return h
}

// couldHide is true for few characters, including all that hides asks about.
func couldHide(r rune) bool {
	return r >= 0x200b && r <= 0x206f || r == 0x061c || r == 0x180e || r == byteOrder || variation(r) || tag(r)
}

// hides says whether a character hides something between two others.
func hides(r, before, next rune, first bool) bool {
	switch {
	case r == byteOrder:
		return !first
	case r == joiner || r == nonJoiner: // writing of many languages needs them, and emoji do
		return before < utf8.RuneSelf || next < utf8.RuneSelf && r == joiner
	case tag(r): // flags of regions
		return before != blackFlag && !tag(before)
	case variation(r):
		keycap := before >= '0' && before <= '9' || before == '#' || before == '*'
		return !keycap && (before < utf8.RuneSelf || variation(before) || r >= 0xe0100 && !unicode.Is(unicode.Han, before))
	}
	return r == 0x200b || r >= 0x2060 && r <= 0x2064 || r == 0x180e || unicode.Is(unicode.Bidi_Control, r)
}

func variation(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }

func tag(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }

// steering are the names of files that tell agents, editors and builds what to do, and of directories of such files.
var steering = []string{
	"agents.md", "claude.md", "gemini.md", "skill.md", ".cursorrules", ".windsurfrules", "makefile", "dockerfile", "containerfile", "jenkinsfile", "codeowners",
	".claude", ".cursor", ".github", ".gitlab-ci.yml", ".vscode", ".codex", ".gemini", ".qwen", ".opencode", ".mcp.json", ".gitattributes", ".gitmodules",
}

// sources are the extensions of source code and of what configures programs.
var sources = strings.Fields(`
	.bash .bat .bzl .c .cc .cfg .cjs .clj .cmake .conf .cpp .cs .css .cxx .dart .ex .exs .fs .go .gradle .groovy .h .hcl .hh .hpp .hs .htm .html .ini .java .js .json
	.jsx .kt .kts .less .lua .m .mjs .mk .ml .mm .mod .nix .php .pl .pm .proto .ps1 .py .r .rb .rego .rs .sass .scala .scss .sh .sql .swift .tcl .tf .toml .ts .tsx
	.vb .vue .xml .yaml .yml .zig .zsh`)

// readAsCode says whether a file is source code or steers an agent, by its name.
func readAsCode(file string) bool {
	for name := range strings.SplitSeq(strings.ToLower(file), "/") {
		if slices.Contains(steering, name) {
			return true
		}
	}
	return slices.Contains(sources, strings.ToLower(path.Ext(file)))
}

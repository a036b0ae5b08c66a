// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// source is a page, or everything of one kind that is too short for a page.
type source struct {
	name     string
	passages []passage
	// reported sources have figures and places in the output, but the test lets them break rules.
	reported bool
}

// passage is a paragraph, a cell of a table, a description, a message or a comment.
type passage struct {
	place string // file and line of a comment; empty for a text of a page
	text  string
}

// readSources reads the texts in English: pages, descriptions of fields, messages and comments.
func readSources(root string) ([]source, error) {
	var all []source
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(root, page))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, source{name: page, passages: passages("", paragraphs(string(content)))})
	}
	decisions := source{name: "decision records", reported: true}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); strings.HasPrefix(name, "docs/adr/") {
			decisions.passages = append(decisions.passages, passages(name, paragraphs(string(content)))...)
		} else {
			all = append(all, source{name: name, passages: passages("", paragraphs(string(content)))})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	fields, err := descriptions(filepath.Join(root, "config/crd/bases"))
	if err != nil {
		return nil, err
	}
	messages, err := os.ReadFile(filepath.Join(root, "internal/arch/testdata/messages.txt"))
	if err != nil {
		return nil, err
	}
	comments, err := readComments(root)
	return append(all,
		source{name: "descriptions of fields", passages: passages("", fields)},
		source{name: "messages", passages: passages("", messageTexts(string(messages)))},
		source{name: "comments of exported names", passages: comments.exported},
		source{name: "comments of unexported names", passages: comments.unexported, reported: true},
		source{name: "comments in functions", passages: comments.inline, reported: true},
		decisions,
	), err
}

// passages are texts of one place.
func passages(place string, texts []string) []passage {
	all := make([]passage, len(texts))
	for i, text := range texts {
		all[i] = passage{place, text}
	}
	return all
}

var (
	fence = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	// code keeps its place, so that a sentence has as many words. A list of names in code counts as one: nobody reads it as a sentence.
	code    = regexp.MustCompile("`[^`]*`(?:[,;] `[^`]*`)*")
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	item    = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.|#+|>)\s+`)
)

// paragraphs of a Markdown page without its code. Lines of one paragraph are joined; an item of a list and a cell of a table are texts of their own.
func paragraphs(page string) []string {
	page = fence.ReplaceAllString(comment.ReplaceAllString(page, ""), "\n")
	page = link.ReplaceAllString(code.ReplaceAllString(page, "CODE"), "$1")
	var all []string
	var paragraph []string
	end := func() {
		if text := strings.TrimSpace(strings.Join(paragraph, " ")); text != "" {
			all = append(all, text)
		}
		paragraph = nil
	}
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, " \n")
		switch {
		case strings.TrimSpace(line) == "":
			end()
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			end()
			for cell := range strings.SplitSeq(line, "|") {
				paragraph = []string{strings.TrimSpace(cell)}
				end()
			}
		case item.MatchString(line):
			end()
			heading := strings.HasPrefix(line, "#")
			paragraph = []string{item.ReplaceAllString(line, "")}
			if heading {
				end()
			}
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	end()
	return all
}

// descriptions of all fields of the CRDs below a folder, each once.
func descriptions(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []string
	var visit func(value any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				if text, ok := inner.(string); ok && (key == "description" || key == "message") {
					all = append(all, code.ReplaceAllString(text, "CODE"))
				}
				visit(inner)
			}
		case []any:
			for _, inner := range value {
				visit(inner)
			}
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd any
		if err := yaml.Unmarshal(content, &crd); err != nil {
			return nil, err
		}
		visit(crd)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// messageTexts are the indented lines of the golden file of messages; the others name packages.
func messageTexts(golden string) []string {
	var all []string
	for line := range strings.Lines(golden) {
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			all = append(all, code.ReplaceAllString(strings.TrimSpace(text), "CODE"))
		}
	}
	return all
}

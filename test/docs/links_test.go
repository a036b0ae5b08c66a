// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fence   = regexp.MustCompile("(?ms)^[ \t]*````.*?^[ \t]*````[ \t]*$|^[ \t]*```.*?^[ \t]*```[ \t]*$") // a longer fence has shorter ones in it
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
)

// TestLinks: each link to a file of the repository leads to one, and each fragment to a heading of it.
func TestLinks(t *testing.T) {
	all := pages(t)
	count := 0
	for name, text := range all {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			target, fragment, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			count++
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: the link %s leads to nothing", name, match[1])
			} else if page, ok := all[path]; fragment != "" && (!ok || !anchors(page)[fragment]) {
				t.Errorf("%s: the link %s leads to no heading of %s", name, match[1], path)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d links were found", count)
	}
}

// TestPagesAreListed: somebody who begins at docs/README.md finds every page.
func TestPagesAreListed(t *testing.T) {
	all := pages(t)
	index, ok := all["docs/README.md"]
	if !ok {
		t.Fatal("docs/README.md is not there")
	}
	for name := range all {
		path, inDocs := strings.CutPrefix(name, "docs/")
		if inDocs && path != "README.md" && !strings.HasPrefix(path, "adr/") && !strings.Contains(index, "]("+path) {
			t.Errorf("docs/README.md does not list %s", path)
		}
	}
}

// anchors of the headings of a page, as forges make them: in small letters, without punctuation, and with - for each space. The second of one
// name ends in -1.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		var anchor strings.Builder
		for _, r := range strings.ToLower(link.ReplaceAllString(match[1], "]")) {
			switch {
			case r == ' ':
				anchor.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				anchor.WriteRune(r)
			}
		}
		name := anchor.String()
		for n := 1; all[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor.String(), n)
		}
		all[name] = true
	}
	return all
}

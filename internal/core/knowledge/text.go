// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/marks"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// maxTarget is how far the end of a link's target is looked for, in bytes.
const maxTarget = 512

// checkLine says why a line of a document in a folder cannot go to an agent: it hides something, passes for Tidewaiter's own words, or leads out of the
// repository.
func checkLine(line, folder string) error {
	for _, r := range line {
		if r == '\r' {
			return errors.New("it ends with a carriage return: save the document with line feeds only")
		}
		if r != '\t' && plain.Invisible(r) {
			return fmt.Errorf("it has the invisible character %U: remove it", r)
		}
	}
	if mark := marks.Find(line); mark != "" {
		return fmt.Errorf("it has %q, which only Tidewaiter writes to agents: use other words", shown(mark))
	}
	return checkLinks(line, folder)
}

// checkLinks says which link of a line leads out of the repository.
func checkLinks(line, folder string) error {
	lower := strings.ToLower(line)
	for _, address := range []string{"://", "www.", "mailto:"} {
		if strings.Contains(lower, address) {
			return fmt.Errorf("it has an address with %q: a document links only to paths of the repository, remove it", address)
		}
	}
	for _, opening := range []string{"](", "]:", "href=", "src="} {
		for rest := lower; ; {
			_, after, is := strings.Cut(rest, opening)
			if !is {
				break
			}
			if rest = after; opening == "]:" && !strings.HasPrefix(strings.TrimSpace(lower), "[") {
				break // no definition of a link
			}
			if err := checkTarget(after[:min(len(after), maxTarget)], folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTarget says why what a link leads to is not a path of the repository. It stands at the beginning of the text.
func checkTarget(text, folder string) error {
	text = strings.TrimLeft(text, " \t<\"'")
	if end := strings.IndexAny(text, " \t)>\"'#?"); end >= 0 {
		text = text[:end]
	}
	target := path.Join(folder, text)
	if strings.Contains(text, ":") || strings.HasPrefix(text, "/") || strings.Contains(text, `\`) || target == ".." || strings.HasPrefix(target, "../") {
		return fmt.Errorf("it links to %q: a document links only to paths of the repository, write the path relative to the document", shown(text))
	}
	return nil
}

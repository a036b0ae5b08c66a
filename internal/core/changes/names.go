// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes makes what a checkpoint has changed fit to be kept for users: bounded, without secrets, and text that a
// terminal only shows. An agent chose its input.
package changes

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// searches is the work that searching for secrets may take, as a number of files: two seconds. The pod of the Feature pays for it.
const searches = 4

// withheldName stands for a name of which nobody can tell whether it has secrets.
const withheldName = "[withheld: the search for secrets would take too long]"

// Maker makes them. It is not safe for concurrent use.
type Maker struct{ redactor *secrets.Redactor }

// NewMaker makes a Maker, which is expensive: keep it, because it holds compiled rules.
func NewMaker() *Maker { return &Maker{redactor: secrets.NewRedactor()} }

// Names are files in the sequence of a list, up to the bounds.
func (m *Maker) Names(ctx context.Context, list []judge.Change) ([]protocol.FileChange, error) {
	budget, size := int64(searches*secrets.Budget), 0
	var names []protocol.FileChange
	for _, c := range list[:min(len(list), protocol.MaxListed)] {
		name, err := m.name(ctx, &budget, c.Path)
		if err != nil {
			return nil, err
		}
		if size += len(name); size > protocol.MaxNames {
			break
		}
		names = append(names, protocol.FileChange{Type: kindOf(c.Kind), Path: name, Size: c.New.Size, Mode: c.New.Mode})
	}
	return names, nil
}

func kindOf(k judge.Kind) string {
	switch k {
	case judge.Added:
		return protocol.ChangeAdd
	case judge.Deleted:
		return protocol.ChangeUnlink
	case judge.Modified, judge.TypeChanged:
	}
	return protocol.ChangeChange
}

// name without secrets.
func (m *Maker) name(ctx context.Context, budget *int64, path string) (string, error) {
	found, _, err := m.redactor.Places(ctx, budget, []byte(path))
	if err == nil && len(found) > 0 {
		var clean []byte
		clean, err = m.redactor.Redact(ctx, *budget, []byte(path))
		path = string(clean)
	}
	if errors.Is(err, secrets.ErrTooHard) {
		return withheldName, nil
	}
	return shown(path), err
}

// shown is a path of any length as it is where it can be seen, else quoted as in Go.
func shown(path string) string {
	invisible := func(r rune) bool { return r != ' ' && !plain.Visible(r) }
	if utf8.ValidString(path) && strings.IndexFunc(path, invisible) < 0 && !strings.HasPrefix(path, `"`) {
		return path
	}
	return strconv.QuoteToASCII(path)
}

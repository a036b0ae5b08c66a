// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Bounds of one page of a search.
const (
	maxQuery   = 1000
	maxMatches = 200
	// maxMatch is how much of a line is shown, in bytes.
	maxMatch = 300
	// maxScanned bytes are read before the page ends, matches or not.
	maxScanned = 32 << 20
	// maxSearched is the largest file that is searched, in bytes.
	maxSearched = 1 << 20
)

type searchInput struct {
	Query  string `json:"query" jsonschema:"what to look for, within one line"`
	Regexp bool   `json:"regexp,omitempty" jsonschema:"query is an RE2 expression instead of a literal text"`
	Under  string `json:"under,omitempty" jsonschema:"directory or file to search below; the root when absent"`
	After  string `json:"after,omitempty" jsonschema:"next_after of the page before: continue behind this file"`
}

type searchOutput struct {
	Matches []match `json:"matches"`
	// NextAfter continues where this page ends; absent on the last.
	NextAfter string `json:"next_after,omitempty"`
	// Skipped files are too large or no text.
	Skipped int `json:"skipped,omitempty"`
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func (r reader) search(ctx context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, searchOutput, error) {
	out := searchOutput{Matches: []match{}}
	finds, err := finder(in)
	if err != nil {
		return nil, out, err
	}
	tree, err := r.backend.Tree()
	if err != nil {
		return nil, out, err
	}
	under, scanned, reached, last := strings.Trim(in.Under, "/"), int64(0), in.After == "", ""
	tree.Walk(func(path string, e *objects.Entry) bool {
		switch {
		case !reached:
			reached = path == in.After
			return true
		case under != "" && path != under && !strings.HasPrefix(path, under+"/"):
			return true
		case len(out.Matches) >= maxMatches || scanned >= maxScanned:
			out.NextAfter = last
			return false
		}
		last = path
		var size int64
		size, err = r.searchFile(ctx, path, e, finds, &out)
		scanned += size
		return err == nil
	})
	if err == nil && !reached {
		err = errors.New("after names no file of the workspace: begin again without it")
	}
	return nil, out, err
}

// finder is what tells whether a line matches.
func finder(in searchInput) (func(line []byte) bool, error) {
	if in.Query == "" || len(in.Query) > maxQuery {
		return nil, fmt.Errorf("query must have 1 to %d bytes", maxQuery)
	}
	if !in.Regexp {
		return func(line []byte) bool { return bytes.Contains(line, []byte(in.Query)) }, nil
	}
	expression, err := regexp.Compile(in.Query)
	if err != nil {
		return nil, fmt.Errorf("query is no RE2 expression: %w", err)
	}
	return expression.Match, nil
}

// searchFile adds the matches of one file. It may add more than a page has, so that pages end between files.
func (r reader) searchFile(ctx context.Context, path string, e *objects.Entry, finds func([]byte) bool, out *searchOutput) (int64, error) {
	if e.Mode != objects.ModeFile && e.Mode != objects.ModeExecutable || !utf8.ValidString(path) {
		return 0, nil
	}
	if e.Size > maxSearched {
		out.Skipped++
		return 0, nil
	}
	_, content, err := r.repository.Objects().Read(ctx, e.ID, maxSearched)
	if err != nil {
		return 0, err
	}
	if !isText(content) {
		out.Skipped++
		return e.Size, nil
	}
	number, found := 0, 0
	for line := range bytes.Lines(content) {
		number++
		if line = bytes.TrimSuffix(line, []byte{'\n'}); !finds(line) {
			continue
		}
		if found++; found > maxMatches {
			break
		}
		out.Matches = append(out.Matches, match{Path: path, Line: number, Text: strings.ToValidUTF8(string(line[:min(len(line), maxMatch)]), "")})
	}
	return int64(len(content)), nil
}

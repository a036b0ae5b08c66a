// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Bounds of reading.
const (
	// maxPage is the longest page of a file, in bytes.
	maxPage = 64 << 10
	// maxEntries of a directory in one page.
	maxEntries = 1000
	// maxRead is the largest file that is read at all, in bytes.
	maxRead = 8 << 20
	// sniff is how much of a file decides whether it is text, as in Git.
	sniff = 8000
)

// reader reads the tree that the workspace holds. Trees and files are immutable objects: what a tool says belongs
// together, whatever patch is applied meanwhile.
type reader struct {
	backend    Backend
	repository *git.Repository
}

type readInput struct {
	Path   string `json:"path" jsonschema:"path below the root, with /; a directory is listed"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to begin at, or number of entries to skip: next_offset of the page before"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most bytes of a page, at most 65536"`
}

type readOutput struct {
	Path string `json:"path"`
	// Mode as Git stores it.
	Mode string `json:"mode"`
	Size int64  `json:"size"`
	// Binary files have no content here.
	Binary  bool   `json:"binary,omitempty"`
	Content string `json:"content,omitempty"`
	// FirstLine is the number of the line that content begins in.
	FirstLine int `json:"first_line,omitempty"`
	// Entries of a directory; directories end in '/'.
	Entries []string `json:"entries,omitempty"`
	// NextOffset is where the next page begins; absent on the last.
	NextOffset int64 `json:"next_offset,omitempty"`
}

func (r reader) readFile(ctx context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, readOutput, error) {
	tree, err := r.backend.Tree()
	if err != nil {
		return nil, readOutput{}, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return nil, readOutput{}, errors.New("offset and limit must not be negative")
	}
	path := strings.Trim(in.Path, "/")
	if path == "" || path == "." {
		return nil, list(tree, "", in.Offset), nil
	}
	e := tree.Lookup(path)
	if e == nil {
		return nil, readOutput{}, fmt.Errorf("there is no %s", strconv.QuoteToASCII(path))
	}
	switch e.Mode {
	case objects.ModeTree:
		return nil, list(e.Tree, path, in.Offset), nil
	case objects.ModeGitlink:
		return nil, readOutput{}, fmt.Errorf("%s is a submodule: its files are not here", strconv.QuoteToASCII(path))
	}
	out, err := r.page(ctx, e, in)
	out.Path = path
	return nil, out, err
}

func list(tree *objects.Tree, path string, offset int64) readOutput {
	out := readOutput{Path: path, Mode: fmt.Sprintf("%06o", objects.ModeTree), Size: int64(len(tree.Entries))}
	for i := offset; i < out.Size; i++ {
		if len(out.Entries) == maxEntries {
			out.NextOffset = i
			break
		}
		name := strings.ToValidUTF8(tree.Entries[i].Name, "\uFFFD")
		if tree.Entries[i].Mode == objects.ModeTree {
			name += "/"
		}
		out.Entries = append(out.Entries, name)
	}
	return out
}

func (r reader) page(ctx context.Context, e *objects.Entry, in readInput) (readOutput, error) {
	out := readOutput{Mode: fmt.Sprintf("%06o", e.Mode)}
	_, content, err := r.repository.Objects().Read(ctx, e.ID, maxRead)
	if errors.Is(err, git.ErrTooLarge) {
		return out, fmt.Errorf("the file has more than %d bytes, which is too much to read; search it with repo_search if it is text", maxRead)
	}
	if err != nil {
		return out, err
	}
	out.Size = int64(len(content))
	if !isText(content) {
		out.Binary = true
		return out, nil
	}
	if in.Offset > out.Size {
		return out, fmt.Errorf("offset %d is behind the end of the file, which has %d bytes", in.Offset, out.Size)
	}
	size := maxPage
	if in.Limit > 0 {
		size = min(in.Limit, maxPage)
	}
	rest := content[in.Offset:]
	end := min(size, len(rest))
	for end < len(rest) && end > 0 && !utf8.RuneStart(rest[end]) {
		end--
	}
	if end == 0 { // a page smaller than one character
		_, end = utf8.DecodeRune(rest)
	}
	out.Content = string(rest[:end])
	out.FirstLine = 1 + bytes.Count(content[:in.Offset], []byte{'\n'})
	if end < len(rest) {
		out.NextOffset = in.Offset + int64(end)
	}
	return out, nil
}

// isText says whether a file can be shown: JSON has no other text than UTF-8.
func isText(content []byte) bool {
	return bytes.IndexByte(content[:min(sniff, len(content))], 0) < 0 && utf8.Valid(content)
}

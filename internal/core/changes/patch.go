// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

const (
	// MaxFile is the largest size in bytes of a file whose difference is kept.
	MaxFile = 1 << 20
	// maxPart bounds what is kept of one file, so that a list of dependencies does not take the room of everything else.
	maxPart = 256 << 10
	// maxLine bounds a line: one of a program that was made smaller has all of it.
	maxLine = 2 << 10
	// maxRead is how much of a line is looked at.
	maxRead = 64 << 10
	// maxSearched bounds the contents that are searched for secrets.
	maxSearched = 32 << 20
	// note is room for what is said about a part that is cut.
	note = 256
)

// Contents reads a file by its ID, MaxFile bytes at most. ErrTooLarge is wrapped for more.
type Contents func(ctx context.Context, id string) ([]byte, error)

// ErrTooLarge of Contents.
var ErrTooLarge = errors.New("the file is too large")

// Patch is a difference in Git's unified format, with the whole IDs of files, within the bounds. missing says which part is left out; empty
// for none. Patch reads at most a part of one file more than it keeps. It marks secrets; a marked secret does not count as missing.
func (m *Maker) Patch(ctx context.Context, in *bufio.Reader, contents Contents) (text, missing string, err error) {
	p := &patch{maker: m, in: in, contents: contents, budget: searches * secrets.Budget}
	for err == nil && !p.full {
		var line []byte
		var cut bool
		if line, cut, err = p.read(); err == nil {
			err = p.take(ctx, line, cut)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	p.endPart()
	// What the contents of files do not show, such as a name.
	clean, err := m.redactor.Redact(ctx, searches*secrets.Budget, p.out)
	if errors.Is(err, secrets.ErrTooHard) {
		return "", "the diff is withheld, because the search for secrets would take too long", nil
	}
	return plain.CutBytes(string(clean), protocol.MaxPatch), p.missing(), err
}

// patch that is read.
type patch struct {
	maker    *Maker
	in       *bufio.Reader
	contents Contents
	out      []byte
	// budget and searched are for secrets.
	budget   int64
	searched int

	// ids of the file before and after; part is where its part begins in out.
	ids  [2]string
	part int
	// hidden lines of both, once they are looked for.
	hidden [2]*hidden
	// withheld: nothing of the file is shown. dropped counts its lines that are not kept.
	withheld string
	dropped  int
	// left lines of the hunk, and the numbers of the next, before and after.
	left, at [2]int

	full                            bool
	files, large, cutFiles, cutLine int
}

// missing in words.
func (p *patch) missing() string {
	var list []string
	if p.full {
		list = append(list, fmt.Sprintf("the diff is longer than %d KiB", protocol.MaxPatch>>10))
	}
	for _, of := range []struct {
		count int
		what  string
	}{
		{p.large, fmt.Sprintf("files of more than %d KiB", MaxFile>>10)},
		{p.cutFiles, fmt.Sprintf("files with diffs of more than %d KiB, or without a search for secrets", maxPart>>10)},
		{p.cutLine, fmt.Sprintf("lines of more than %d KiB", maxLine>>10)},
	} {
		if of.count > 0 {
			list = append(list, fmt.Sprintf("%d %s", of.count, of.what))
		}
	}
	return strings.Join(list, "; ")
}

// read a line without its end, as much as is looked at.
func (p *patch) read() (line []byte, cut bool, err error) {
	for {
		part, err := p.in.ReadSlice('\n')
		keep := min(len(part), maxRead-len(line))
		line, cut = append(line, part[:keep]...), cut || keep < len(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, false, err
		}
		return bytes.TrimSuffix(line, []byte("\n")), cut, nil
	}
}

// take a line.
func (p *patch) take(ctx context.Context, line []byte, cut bool) error {
	if p.left[0] > 0 || p.left[1] > 0 {
		return p.inHunk(line, cut)
	}
	text := string(line)
	switch {
	case strings.HasPrefix(text, "diff --git "):
		p.endPart()
		p.part, p.ids, p.hidden, p.withheld, p.dropped = len(p.out), [2]string{}, [2]*hidden{}, "", 0
		p.files++
	case strings.HasPrefix(text, "index "):
		ids, _, _ := strings.Cut(strings.TrimPrefix(text, "index "), " ")
		p.ids[0], p.ids[1], _ = strings.Cut(ids, "..")
	case strings.HasPrefix(text, "Binary files "):
		if _, err := p.search(ctx); err != nil {
			return err
		}
	case strings.HasPrefix(text, "@@ "):
		return p.hunk(ctx, text)
	}
	p.put("", line, cut)
	return nil
}

// hunk begins. What Git says behind it is a line of the file that may have secrets.
func (p *patch) hunk(ctx context.Context, text string) error {
	fields := strings.Fields(text)
	if len(fields) < 4 || fields[3] != "@@" {
		return fmt.Errorf("hunk %.100q", text)
	}
	for i, prefix := range []string{"-", "+"} {
		at, left, counted := strings.Cut(strings.TrimPrefix(fields[1+i], prefix), ",")
		var err error
		if p.at[i], err = strconv.Atoi(at); err != nil {
			return fmt.Errorf("hunk %.100q: %w", text, err)
		}
		p.left[i] = 1
		if counted {
			if p.left[i], err = strconv.Atoi(left); err != nil {
				return fmt.Errorf("hunk %.100q: %w", text, err)
			}
		}
	}
	if p.hidden[0] == nil && p.withheld == "" {
		withheld, err := p.search(ctx)
		if err != nil {
			return err
		}
		p.withheld = withheld
	}
	p.put("", []byte(strings.Join(fields[:4], " ")), false)
	return nil
}

// inHunk is a line of a file.
func (p *patch) inHunk(line []byte, cut bool) error {
	if len(line) == 0 {
		return errors.New("an empty line in a hunk")
	}
	in := 1
	switch line[0] {
	case ' ':
		p.left[0]--
		p.at[0]++
	case '-':
		in = 0
	case '+':
	case '\\':
		p.put("", line, cut)
		return nil
	default:
		return fmt.Errorf("line %.20q in a hunk", line)
	}
	number := p.at[in]
	p.left[in]--
	p.at[in]++
	if p.withheld != "" {
		p.dropped++
		return nil
	}
	if shown, is := p.hidden[in].line(number); is {
		p.put(string(line[:1]), []byte(shown), false)
	} else {
		p.put(string(line[:1]), line[1:], cut)
	}
	return nil
}

// put a line that has this before it.
func (p *patch) put(before string, line []byte, cut bool) {
	if p.withheld != "" && before == "" && p.dropped > 0 || len(p.out)-p.part > maxPart {
		p.dropped++
		return
	}
	end := min(len(line), maxLine)
	for end < len(line) && end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	text := plain.Append(nil, line[:end])
	switch {
	case len(text) > maxLine:
		text = []byte(plain.CutBytes(string(text), maxLine))
		p.cutLine++
	case cut || end < len(line):
		text = append(text, plain.CutMark...)
		p.cutLine++
	}
	if len(p.out)+len(before)+len(text)+1 > protocol.MaxPatch-note {
		p.full = true
		return
	}
	p.out = append(append(append(p.out, before...), text...), '\n')
}

// endPart says what is not kept of a file.
func (p *patch) endPart() {
	if p.dropped > 0 {
		p.cutFiles++
		why := "are not kept"
		if p.withheld != "" {
			why = "are withheld: " + p.withheld
		}
		p.out = fmt.Appendf(p.out, "[%d more lines of this file %s]\n", p.dropped, why)
	}
	if p.full {
		p.out = append(p.out, "[more is not kept]\n"...)
	}
	p.dropped = 0
}

// search both contents of a file for secrets; withheld says why that cannot be done.
func (p *patch) search(ctx context.Context) (withheld string, err error) {
	for i, id := range p.ids {
		p.hidden[i] = &hidden{}
		if id == "" || strings.Trim(id, "0") == "" {
			continue
		}
		text, err := p.contents(ctx, id)
		switch {
		case errors.Is(err, ErrTooLarge):
			p.large++
			return "the file is too large to be searched for secrets", nil
		case err != nil:
			return "", err
		}
		if p.searched += len(text); p.searched > maxSearched {
			return "the checkpoint has too much to be searched for secrets", nil
		}
		places, full, err := p.maker.redactor.Places(ctx, &p.budget, text)
		switch {
		case errors.Is(err, secrets.ErrTooHard) || err == nil && full:
			return "the search for secrets would take too long", nil
		case err != nil:
			return "", err
		}
		h := hiddenIn(text, places)
		p.hidden[i] = &h
	}
	return "", nil
}

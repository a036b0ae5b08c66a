// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

const (
	// maxWord bounds names: Kubernetes has 253 characters for its own, and providers less for models.
	maxWord = 512
	// maxViolations, maxKind and maxMessage bound what is stored of violations: 500 turns with them are a list of 20 MB.
	maxViolations, maxKind, maxMessage = 32, 64, 1024
	// searches is the work of searching an answer: as much as for this number of files.
	searches = 4
	// resultWork is the work of searching a text of a result: all texts of a turn take no more than an answer.
	resultWork = searches * secrets.Budget / core.MaxResults
	// maxResults bounds the results of a call as they are stored, in bytes: JSON writes a byte of core.MaxResultTexts, or of a name, as six at most.
	maxResults = 6 * (core.MaxResultTexts + 3*maxWord*core.MaxResults)
	// maxShort bounds texts that are compressed by S2, in bytes. A byte that no text of gzip begins with stands before them.
	maxShort, short = 4 << 10, 'S'
	// withheld replaces a text that may have secrets.
	withheld = "[withheld: the search for secrets would take too long]"
)

// bodies makes texts ready for being stored.
type bodies struct {
	// redactors that are free.
	redactors chan *secrets.Redactor
	gzips     sync.Pool
}

func newBodies() *bodies {
	b := &bodies{redactors: make(chan *secrets.Redactor, runtime.GOMAXPROCS(0)), gzips: sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is right
		return w
	}}}
	for range cap(b.redactors) {
		b.redactors <- nil // made when it is needed
	}
	return b
}

// prepare bounds everything in an interaction, takes out the secrets and compresses the answers.
func (l *Ledger) prepare(ctx context.Context, i core.Interaction) (*settlement, error) {
	if i.At.IsZero() {
		i.At = l.now()
	}
	for _, text := range []*string{
		&i.FeatureUID, &i.Namespace, &i.Feature, &i.Task, &i.Dialect, &i.Backend, &i.Model, &i.Role, &i.RequestDigest, &i.TemplateHash, &i.Reason,
	} {
		*text = word(*text, maxWord)
	}
	i.ID = word(i.ID, maxID)
	asked, err := l.bodies.clean(ctx, []byte(plain.CutBytes(i.ModelAsked, core.MaxSecret)))
	if err != nil {
		return nil, err
	}
	i.ModelAsked = word(string(asked), maxWord)
	detail, err := l.bodies.clean(ctx, []byte(plain.CutBytes(i.Detail, core.MaxSecret)))
	if err != nil {
		return nil, err
	}
	i.Detail = word(strings.Map(printable, string(detail)), core.MaxDetail)
	s := &settlement{entry: i, count: 1, folds: i.Folds(), done: make(chan error, 1)}
	if s.folds {
		s.entry.ID = i.FoldID()
		i.Raw, i.Formatted, i.Results, i.MoreResults = i.Raw[:min(len(i.Raw), core.MaxFolded)], nil, nil, 0
	}
	raw, err := l.bodies.answer(ctx, i.Raw)
	if err != nil {
		return nil, err
	}
	formatted, err := l.bodies.answer(ctx, i.Formatted)
	if err != nil {
		return nil, err
	}
	var list []core.Violation
	for _, v := range plain.CutList(i.Violations, maxViolations) {
		message, err := l.bodies.clean(ctx, []byte(plain.CutBytes(v.Message, core.MaxSecret)))
		if err != nil {
			return nil, err
		}
		list = append(list, core.Violation{Type: word(v.Type, maxKind), Severity: word(v.Severity, maxKind), Message: word(string(message), maxMessage)})
	}
	violations, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	if s.results, err = l.bodies.results(ctx, i); err != nil {
		return nil, err
	}
	s.entry.Raw, s.entry.Formatted, s.entry.Violations, s.entry.Results = nil, nil, nil, nil
	s.raw, s.formatted, s.violations = l.bodies.compress(raw), l.bodies.compress(formatted), string(violations)
	return s, nil
}

// printable is a character as it may be on a terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// word is a text that both engines store: PostgreSQL takes no zero in it, and nothing but UTF-8. It is cut before and after zeros become
// longer: transactions wait for it, so its cost depends on the limit.
func word(text string, limit int) string {
	return plain.CutBytes(strings.ReplaceAll(plain.CutBytes(text, limit), "\x00", "\uFFFD"), limit)
}

// answer without secrets, cut where it is too long.
func (b *bodies) answer(ctx context.Context, text []byte) ([]byte, error) {
	text, err := b.clean(ctx, text[:min(len(text), core.MaxAnswer+core.MaxSecret)])
	if err != nil || len(text) <= core.MaxAnswer {
		return text, err
	}
	end := core.MaxAnswer - len(plain.CutMark)
	for end > core.MaxAnswer-utf8.UTFMax-len(plain.CutMark) && !utf8.RuneStart(text[end]) {
		end--
	}
	return append(bytes.Clone(text[:end]), plain.CutMark...), nil
}

// results is how the results of tools that a call has are stored.
type results struct {
	Results []core.ToolResult `json:"results"`
	More    int64             `json:"more,omitempty"`
}

// results of a call without secrets, cut where they are too long, and compressed; empty for none.
func (b *bodies) results(ctx context.Context, i core.Interaction) ([]byte, error) {
	if len(i.Results) == 0 && i.MoreResults == 0 {
		return b.compress(nil), nil
	}
	list := slices.Clone(plain.CutList(i.Results, core.MaxResults))
	stored := results{list, i.MoreResults + int64(len(i.Results)-len(list))}
	room := core.MaxResultTexts
	for n := range list {
		r := &list[n]
		for _, name := range []*string{&r.Call, &r.Tool} {
			clean, err := b.search(ctx, resultWork, []byte(plain.CutBytes(*name, 2*maxWord)))
			if err != nil {
				return nil, err
			}
			*name = word(strings.Map(printable, string(clean)), maxWord)
		}
		most := min(core.MaxResult, room)
		r.SHA256 = word(r.SHA256, hex.EncodedLen(sha256.Size))
		if most == 0 {
			r.Text = ""
			continue
		}
		searched := []byte(r.Text[:min(len(r.Text), most+core.MaxSecret)])
		text, err := b.search(ctx, resultWork, searched)
		if err != nil {
			return nil, err
		}
		if len(searched) > most {
			text = append(withoutEnd(text, searched, len(searched)-most), plain.CutMark...)
		}
		r.Text = plain.CutBytes(string(text), most)
		room -= len(r.Text)
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	return b.compress(text), nil
}

// withoutEnd is a text from which secrets were taken, without what is left behind the last one, of some bytes at the end of what was searched. A secret
// that is cut off there was not found, and is not to be stored because others before it are gone.
func withoutEnd(clean, searched []byte, most int) []byte {
	same := 0
	for same < min(most, len(clean)) && clean[len(clean)-1-same] == searched[len(searched)-1-same] {
		same++
	}
	return slices.Clip(clean[:len(clean)-same])
}

// resultsOf what results has made.
func resultsOf(packed []byte) (stored results, err error) {
	text, err := decompress(packed, maxResults)
	if err != nil || len(text) == 0 {
		return results{}, err
	}
	err = json.Unmarshal(text, &stored)
	return stored, err
}

// clean takes the secrets out of a text.
func (b *bodies) clean(ctx context.Context, text []byte) ([]byte, error) {
	return b.search(ctx, searches*secrets.Budget, text)
}

// search a text for secrets with so much work, and take them out.
func (b *bodies) search(ctx context.Context, work int64, text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var redactor *secrets.Redactor
	select {
	case redactor = <-b.redactors:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if redactor == nil {
		redactor = secrets.NewRedactor()
	}
	defer func() { b.redactors <- redactor }()
	clean, err := redactor.Redact(ctx, work, text)
	if errors.Is(err, secrets.ErrTooHard) {
		return []byte(withheld), nil
	}
	return clean, err
}

// compress a text; an empty one stays empty. For a short text gzip needs ten times as long for its tables as S2 needs for everything, and
// saves a quarter of the text. The row has as many bytes again for the rest.
func (b *bodies) compress(text []byte) []byte {
	if len(text) == 0 {
		return []byte{}
	}
	if len(text) <= maxShort {
		packed := make([]byte, 1+s2.MaxEncodedLen(len(text)))
		packed[0] = short
		return packed[:1+len(s2.Encode(packed[1:], text))]
	}
	var packed bytes.Buffer
	w := b.gzips.Get().(*gzip.Writer)
	defer b.gzips.Put(w)
	w.Reset(&packed)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// decompress what compress has made; at most limit bytes of it.
func decompress(packed []byte, limit int64) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	if packed[0] == short {
		if n, err := s2.DecodedLen(packed[1:]); err != nil || int64(n) > min(maxShort, limit) {
			return nil, s2.ErrCorrupt
		}
		return s2.Decode(nil, packed[1:])
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit))
}

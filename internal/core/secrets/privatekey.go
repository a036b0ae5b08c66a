// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"regexp"
)

const (
	// privateKeyRegex is what the table says of private keys. They are looked for by hand instead, because they have no
	// greatest length; a test compares.
	privateKeyRegex = `(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----[\s\S-]{64,}?KEY(?: BLOCK)?-----`
	// maxHeader bounds the first line of a key.
	maxHeader = 160
	// minKey is the least that stands between the first line and the last.
	minKey = 64
	// dashes stand before and after what both lines say.
	dashes = "-----"
)

var privateKeyHeader = regexp.MustCompile(`\A(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`)

// keyEnds finds the ends of private keys in a text, for places in the order of the text.
type keyEnds struct {
	// No end begins from `from` until `begin`; the one there ends at `end`, which is 0 where the text has no more.
	from, begin, end int
	used             bool
}

// after gives the end of the first last line that begins at a place or later; 0 where there is none.
func (k *keyEnds) after(text []byte, i int) int {
	if !k.used || i < k.from || i > k.begin {
		k.used, k.from = true, i
		k.begin, k.end = nextKeyEnd(text, i)
	}
	return k.end
}

func nextKeyEnd(text []byte, from int) (begin, end int) {
	for at := from; at < len(text); {
		i := bytes.Index(text[at:], []byte(dashes))
		if i < 0 {
			break
		}
		i += at
		for _, word := range []string{"KEY", "KEY BLOCK"} {
			if begin := i - len(word); begin >= from && bytes.EqualFold(text[begin:i], []byte(word)) {
				return begin, i + len(dashes)
			}
		}
		at = i + 1
	}
	return len(text), 0
}

// privateKey notes the private key that begins with dashes before a place, if one does.
func (f *search) privateKey(i, from int) {
	if !bytes.HasSuffix(f.text[:from], []byte(dashes)) {
		return
	}
	from -= len(dashes)
	header := f.text[from:min(len(f.text), from+maxHeader)]
	if !f.charge(int64(len(header)) * f.rule(i).size / cheap) {
		return
	}
	m := privateKeyHeader.FindIndex(header)
	if m == nil || from+m[1]+minKey > len(f.text) {
		return
	}
	if end := f.ends.after(f.text, from+m[1]+minKey); end > 0 {
		f.ended[i] = end
		f.weigh(i, found{from: from, to: end, matchFrom: from, matchTo: end})
	}
}

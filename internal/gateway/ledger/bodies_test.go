// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// TestCompress: what was compressed comes back, short and long, also what gzip has made of short texts before, and never more than the limit.
func TestCompress(t *testing.T) {
	b := newBodies()
	for _, size := range []int{0, 1, 100, maxShort - 1, maxShort, maxShort + 1, 1 << 20} {
		text := []byte(strings.Repeat("An answer of a model. ", size/22+1)[:size])
		packed := b.compress(text)
		got, err := decompress(packed, int64(size))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
		if size >= 100 && len(packed) > size*2/3 {
			t.Errorf("%d bytes take %d", size, len(packed))
		}
	}
	const before = "1f8b08000000000002034bcc2b2e4f2d0200254addda06000000" // gzip of "answer"
	packed, err := hex.DecodeString(before)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decompress(packed, 6); err != nil || string(got) != "answer" {
		t.Errorf("%q, %v", got, err)
	}
	for name, packed := range map[string]string{
		"nothing follows": "S", "longer than a short text": "S\xff\xff\xff\x7f", "longer than the limit": "S\x08\x1canswer!!", "not whole": "S\x06\x14ans", "neither": "answer",
	} {
		if got, err := decompress([]byte(packed), 7); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxWindow of zstd that is decompressed, in bytes: what its levels for daily use take.
	maxWindow = 8 << 20
	// maxExpanded bounds an answer that a backend compresses, in bytes as it is read.
	maxExpanded = 256 << 20
	// gzipMemory is what a decompressor of gzip holds, in bytes: its window of 32 KiB, and tables. zstdMemory is what one of zstd holds
	// with its window: blocks of 128 KiB that are read and that are written, and tables.
	gzipMemory, zstdMemory = 64 << 10, 1 << 20
)

var (
	// errEncoding is said of an encoding that is not known.
	errEncoding = errors.New("an encoding that is not known")
	// errExpands is said of what is larger than maxExpanded when it is decompressed.
	errExpands = errors.New("it is too large when it is decompressed")
)

// compressed says whether an encoding is one.
func compressed(encoding string) bool { return encoding != "" && encoding != "identity" }

// unencoded makes an answer that a backend has compressed, although it was not asked to, one that can be read. Take has memory taken for that.
func unencoded(answer *http.Response, take func(n int64) *failure) (*failure, error) {
	encoding := answer.Header.Get("Content-Encoding")
	if !compressed(encoding) {
		return nil, nil
	}
	from, window := bufio.NewReaderSize(answer.Body, 4<<10), uint64(0)
	need := int64(gzipMemory)
	if encoding == "zstd" {
		window = windowOf(from)
		need = zstdMemory + int64(window)
	}
	if f := take(need); f != nil {
		return f, nil
	}
	in, err := decompressed(encoding, from, window)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{&expanding{r: in, left: maxExpanded}, answer.Body}
	answer.ContentLength = -1
	return nil, nil
}

// windowOf the first frame of zstd, in bytes, which later frames must not exceed.
func windowOf(r *bufio.Reader) uint64 {
	head, _ := r.Peek(zstd.HeaderMaxSize) // less, where there is no more
	var h zstd.Header
	if h.Decode(head) != nil || h.Skippable {
		return maxWindow
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	return min(max(window, zstd.MinWindowSize), maxWindow)
}

// decompressed reads what has an encoding, zstd with a window of the given bytes.
func decompressed(encoding string, r io.Reader, window uint64) (io.ReadCloser, error) {
	switch encoding {
	case "gzip", "x-gzip":
		in, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		return in, nil
	case "zstd":
		in, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, fmt.Errorf("read zstd: %w", err)
		}
		return in.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%w: %q", errEncoding, encoding)
}

// expanding bounds what comes out of a decompressor, and closes it at its end.
type expanding struct {
	r    io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (e *expanding) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if e.left -= int64(n); e.left < 0 {
		n, err = 0, errExpands
	}
	if err != nil {
		_ = e.r.Close() // it only gives memory back
	}
	return n, err
}

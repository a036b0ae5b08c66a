// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
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
)

var (
	// errEncoding is said of an encoding that is not known.
	errEncoding = errors.New("an encoding that is not known")
	// errExpands is said of what is larger than maxExpanded when it is decompressed.
	errExpands = errors.New("it is too large when it is decompressed")
)

// compressed says whether an encoding is one.
func compressed(encoding string) bool { return encoding != "" && encoding != "identity" }

// plain makes an answer that a backend has compressed, although it was not asked to, one that can be read.
func plain(answer *http.Response) error {
	encoding := answer.Header.Get("Content-Encoding")
	if !compressed(encoding) {
		return nil
	}
	in, err := decompressed(encoding, answer.Body)
	if err != nil {
		return err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{&expanding{r: in, left: maxExpanded}, answer.Body}
	answer.ContentLength = -1
	return nil
}

// decompressed reads what has an encoding.
func decompressed(encoding string, r io.Reader) (io.ReadCloser, error) {
	switch encoding {
	case "gzip", "x-gzip":
		in, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		return in, nil
	case "zstd":
		in, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
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

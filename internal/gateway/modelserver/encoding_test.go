// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

func packed(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCompressedRequests are refused: the watchdog has to hear what is asked.
func TestCompressedRequests(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
	body := scripted(false, "large", "turns: [{text: Done}]")
	for _, encoding := range []string{"gzip", "x-gzip", "zstd", "br", "gzip, identity", "Identity"} {
		sent := body
		if encoding == "gzip" || encoding == "zstd" {
			sent = packed(t, encoding, body)
		}
		answer, text := w.ask("login", http.MethodPost, messages, sent, "Content-Encoding", encoding)
		if answer.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(text, "send it without one") {
			t.Errorf("%s: %d %s", encoding, answer.StatusCode, text)
		}
	}
	if answer, text := w.ask("login", http.MethodPost, messages, body, "Content-Encoding", "identity"); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if got := asked(t, p, 1)[0]; got.Header["Content-Encoding"] != "" {
		t.Errorf("the provider got %v", got.Header)
	}
}

// TestCompressedAnswers of a backend that compresses without being asked are read, checked and recorded as any other.
func TestCompressedAnswers(t *testing.T) {
	encoding := "gzip"
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the backend was asked for %q", r.Header.Get("Accept-Encoding"))
		}
		rw.Header().Set("Content-Encoding", encoding)
		_, _ = io.WriteString(rw, packed(t, encoding, wholeAnswer))
	}), quick())
	for i, e := range []string{"gzip", "zstd"} {
		encoding = e
		answer, text := w.ask("login", http.MethodPost, messages, plainRequest)
		if answer.StatusCode != http.StatusOK || text != wholeAnswer || answer.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v %s", e, answer.StatusCode, answer.Header, text)
		}
		w.last(i + 1)
		if turn := w.recorded()[i]; string(turn.Raw) != wholeAnswer || turn.Tokens.Output != 100 {
			t.Errorf("%s: recorded %+v", e, turn)
		}
	}
	encoding = "br"
	if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusBadGateway || !strings.Contains(text, "cannot read") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

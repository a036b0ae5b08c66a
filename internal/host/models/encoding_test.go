// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tidewaiter/tidewaiter/internal/host/models"
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

// TestCompressedRequests: the provider gets them as they were, and what expands too much is refused.
func TestCompressedRequests(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
	body := scripted(false, "large", "turns: [{text: Done}]")
	for i, encoding := range []string{"gzip", "zstd", "identity"} {
		sent := body
		if encoding != "identity" {
			sent = packed(t, encoding, body)
		}
		if answer, text := w.ask("login", http.MethodPost, messages, sent, "Content-Encoding", encoding); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", encoding, answer.StatusCode, text)
		}
		if got := asked(t, p, i+1)[i]; got.Body != body || got.Header["Content-Encoding"] != "" {
			t.Errorf("%s: the provider got %v %s", encoding, got.Header, got.Body)
		}
	}
	bomb := strings.Repeat("x", models.MaxBody+1)
	for name, tc := range map[string]struct {
		encoding, body string
		want           int
	}{
		"gzip bomb": {"gzip", packed(t, "gzip", bomb), http.StatusRequestEntityTooLarge}, "zstd bomb": {"zstd", packed(t, "zstd", bomb), http.StatusRequestEntityTooLarge},
		"no gzip": {"gzip", body, http.StatusBadRequest}, "no zstd": {"zstd", body, http.StatusBadRequest},
		"cut gzip": {"gzip", packed(t, "gzip", body)[:40], http.StatusBadRequest}, "unknown": {"br", body, http.StatusUnsupportedMediaType}, "two": {"gzip, zstd", body, http.StatusUnsupportedMediaType},
	} {
		if answer, text := w.ask("login", http.MethodPost, messages, tc.body, "Content-Encoding", tc.encoding); answer.StatusCode != tc.want || !strings.Contains(text, "tidewaiter: ") {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
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
	if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusBadGateway || !strings.Contains(text, "cannot be read") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

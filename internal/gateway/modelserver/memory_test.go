// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
)

// TestWaitingForMemoryHoldsNoPlace: a call that waits for memory for what the backend gets keeps nobody from a backend that takes one call at a time.
func TestWaitingForMemoryHoldsNoPlace(t *testing.T) {
	limits := quick()
	// Of its share, 9 MiB and some, the request would take 5 when it is there, and 5 more for the backend.
	limits.Memory, limits.Wait, limits.PerFeature = 19<<20+256<<10, 5*time.Second, 4
	w := newWorld(t, http.HandlerFunc(answering), limits)
	large := strings.Replace(plainRequest, "{", `{"x":"`+strings.Repeat("x", 5<<20)+`",`, 1)
	waits := w.begin("alone", strings.NewReader(large))
	time.Sleep(500 * time.Millisecond) // until it has been read, and waits
	if answer, text := w.ask("beside", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK {
		t.Errorf("another Feature: %d %s", answer.StatusCode, text)
	}
	select {
	case answer := <-waits:
		t.Errorf("the call that waits had an answer before: %v", answer)
	default:
	}
	<-waits // which may not see its answer, because it has not sent all of the request
	if r := w.last(2); r.Reason != "MemoryShare" {
		t.Errorf("the call that waits: %+v", r)
	}
}

// TestLargeRequestsDoNotWaitForOneAnother: of requests that come at the same time and need more than there is together, each is answered in its turn.
func TestLargeRequestsDoNotWaitForOneAnother(t *testing.T) {
	limits := quick()
	limits.Memory, limits.Wait = 64<<20, 30*time.Second
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answering(rw, r)
	}), limits)
	large := strings.Replace(plainRequest, "{", `{"x":"`+strings.Repeat("x", 12<<20)+`",`, 1)
	var answered []<-chan *http.Response
	for n := range 8 {
		answered = append(answered, w.begin(fmt.Sprint("feature-", n), strings.NewReader(large)))
	}
	for n := range answered {
		if answer := <-answered[n]; answer == nil || answer.StatusCode != http.StatusOK {
			t.Errorf("request %d: %v", n, answer)
		}
	}
}

// TestDecompressorsAreInTheAccount: what decompresses answers is memory of the Feature that gets them.
func TestDecompressorsAreInTheAccount(t *testing.T) {
	limits := quick()
	limits.Memory, limits.Wait, limits.PerFeature = 24<<20, 2*time.Second, 4 // the agent sees the end of an answer before its memory is given back
	begun, release := make(chan struct{}, 4), make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		var b bytes.Buffer
		out, err := zstd.NewWriter(&b, zstd.WithWindowSize(8<<20))
		if err != nil {
			t.Error(err)
			return
		}
		rw.Header().Set("Content-Encoding", "zstd")
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(out, streamStart)
		_ = out.Flush()
		_, _ = rw.Write(b.Bytes())
		_ = http.NewResponseController(rw).Flush()
		b.Reset()
		begun <- struct{}{}
		<-release
		_, _ = io.WriteString(out, streamEnd)
		_ = out.Close()
		_, _ = rw.Write(b.Bytes())
	}), limits)
	first := <-w.begin("login", strings.NewReader(plainRequest))
	<-begun
	if first == nil || first.StatusCode != http.StatusOK {
		t.Fatalf("%v", first)
	}
	if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.Header.Get("Tidewaiter-Reason") != "MemoryShare" {
		t.Errorf("two windows of 8 MiB in a share of 12: %d %.100s", answer.StatusCode, text)
	}
	close(release)
	if text, err := io.ReadAll(first.Body); err != nil || string(text) != streamStart+streamEnd {
		t.Errorf("%v %s", err, text)
	}
	if answer, text := w.ask("login", http.MethodPost, messages, plainRequest); answer.StatusCode != http.StatusOK {
		t.Errorf("after that: %d %s", answer.StatusCode, text)
	}
}

// TestReplacedTextIsInTheAccount: an answer that becomes another one is memory of its Feature, too.
func TestReplacedTextIsInTheAccount(t *testing.T) {
	for streamed, kind := range map[bool]string{true: "text/event-stream", false: "application/json"} {
		for memory, want := range map[int64]int{32 << 20: http.StatusServiceUnavailable, 120 << 20: http.StatusOK} {
			limits := quick()
			limits.Memory, limits.Wait = memory, 50*time.Millisecond
			pad := strings.Repeat(" ", 4<<20)
			body := strings.Replace(wholeAnswer, `{"type"`, `{`+pad+`"type"`, 1)
			if streamed {
				block := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
				start := strings.Replace(streamStart, "event: content_block_delta", block+"event: content_block_delta", 1)
				start = strings.Replace(start, `"type":"content_block_delta","delta"`, `"type":"content_block_delta","index":0,"delta"`, 1)
				body = start + strings.Repeat(": "+pad[:1<<10]+"\n\n", 4<<10) + streamEnd
			}
			w := newWorld(t, saying(kind, body), limits)
			w.answers = answers.Rules{Formats: []string{"<<{{OUTPUT}}>>"}}
			answer, text := w.ask("login", http.MethodPost, messages, conversationRequest)
			if got := fmt.Sprint(answer.StatusCode, strings.Contains(text, "<<Done.>>"), strings.Contains(text, "hold all memory")); got != fmt.Sprint(want, want == http.StatusOK, want != http.StatusOK) && !streamed {
				t.Errorf("%s, %d MiB: %s", kind, memory>>20, got)
			}
			if streamed && strings.Contains(text, "Done.") != (want == http.StatusOK) {
				t.Errorf("%s, %d MiB: %d, %.300q", kind, memory>>20, answer.StatusCode, text)
			}
		}
	}
}

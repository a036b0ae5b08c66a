// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// oneDesk is a server in which one large body is worked on at a time, as on two processors.
func oneDesk() *Server {
	s := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	s.desks = callers.NewShares(1, 1)
	return s
}

// called is a call of a Feature with a body of so many bytes.
func (s *Server) called(t *testing.T, feature string, size int) *call {
	t.Helper()
	d, e, _, found := dialect.Serve(http.MethodPost, "/anthropic/v1/messages")
	if !found {
		t.Fatal("the path is not served")
	}
	head, tail := `{"model":"any","max_tokens":10,"messages":[{"role":"user","content":"`, `"}]}`
	body := head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	w := httptest.NewRecorder()
	c := &call{server: s, dialect: d, endpoint: e, w: w, r: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), caller: Caller{Feature: feature}, reply: reply{w: w}}
	c.asking = holding{server: s, feature: feature}
	return c
}

// TestDesks: of many large bodies as many are worked on at once as there are desks, Features take turns, and a small body waits for none of them.
func TestDesks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := oneDesk()
		var at, most int
		var served []string
		step := make(chan struct{})
		begin := func(feature string, size int) {
			c := s.called(t, feature, size)
			go func() {
				if f := c.work(t.Context(), size, func() {
					if served = append(served, feature); size < heavy {
						return
					}
					at++
					most = max(most, at)
					<-step
					at--
				}); f != nil {
					t.Error(f)
				}
			}()
			synctest.Wait()
		}
		for range 5 {
			begin("hostile", heavy)
		}
		begin("healthy", heavy)
		begin("small", heavy-1)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if f := s.called(t, "gone", heavy).work(gone, heavy, func() { t.Error("nobody waits for it") }); f == nil || f.reason != reasonGone {
			t.Errorf("of a call that was given up: %v", f)
		}
		for range 6 {
			step <- struct{}{}
			synctest.Wait()
		}
		if want := []string{"hostile", "small", "healthy", "hostile", "hostile", "hostile", "hostile"}; most != 1 || !slices.Equal(served, want) {
			t.Errorf("%d at once, served %v, want %v", most, served, want)
		}
	})
}

// TestLargeBodiesNeedDesks: while all desks are taken, nothing large is read, filtered, digested, looked through for results of tools, written or given another text, and small bodies are.
func TestLargeBodiesNeedDesks(t *testing.T) {
	read := func(t *testing.T, c *call) {
		t.Helper()
		if f := c.read(); f != nil {
			t.Error(f)
		}
	}
	for name, step := range map[string]struct{ before, do func(t *testing.T, c *call) }{
		"read": {nil, read},
		"filter": {read, func(t *testing.T, c *call) {
			t.Helper()
			if f := c.filter(); f != nil || len(c.digest) != 64 {
				t.Errorf("%q %v", c.digest, f)
			}
		}},
		"results of tools": {read, func(t *testing.T, c *call) {
			t.Helper()
			c.always, c.caller.ToolResults = holding{server: c.server, feature: c.caller.Feature}, policy.ToolResultsDigest
			if f := c.results.read(c); f != nil || len(c.results.list) > 0 || c.always.amount != 0 {
				t.Errorf("%d results, %d bytes are held: %v", len(c.results.list), c.always.amount, f)
			}
		}},
		"compose": {read, func(t *testing.T, c *call) {
			t.Helper()
			if f := c.compose(); f != nil || !strings.Contains(string(c.body), `"large"`) {
				t.Errorf("%.100s %v", c.body, f)
			}
		}},
		"an answer that gets another text": {nil, func(t *testing.T, c *call) {
			t.Helper()
			var text strings.Builder
			for _, event := range []string{
				`{"type":"message_start","message":{"model":"large","usage":{"input_tokens":1}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`,
			} {
				text.WriteString("data: " + event + "\n\n")
			}
			stream := ": " + strings.Repeat(" ", int(c.r.ContentLength)) + "\n\n" + text.String()
			c.turn = &turn{call: c, streamed: true, recorded: true, raw: []byte(stream), received: int64(len(stream)), held: c.asking, reader: conversation.NewReader(c.dialect.Answer(), true)}
			c.turn.reader.Write(c.turn.raw)
			c.passage, c.record.Status, c.caller.Answers = &passage{told: true}, http.StatusOK, answers.Rules{Formats: []string{"<<{{OUTPUT}}>>"}}
			if f := (&relay{call: c, checks: true}).judge(); f != nil || !strings.Contains(string(c.turn.entry.Formatted), "<<Done.>>") {
				t.Errorf("%v %.300s", f, c.turn.entry.Formatted)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := oneDesk()
				done := map[int]bool{}
				begin := func(size int) {
					c := s.called(t, "login", size)
					c.route = models.Route{Model: models.Model{Name: "large"}}
					if step.before != nil {
						step.before(t, c)
					}
					if err := s.desks.Try("beside", 1); err != nil {
						t.Fatal(err)
					}
					go func() {
						step.do(t, c)
						done[size] = true
					}()
					synctest.Wait()
				}
				begin(1 << 10)
				if !done[1<<10] {
					t.Error("a small body has waited")
				}
				s.desks.Give("beside", 1)
				begin(4 * heavy)
				if done[4*heavy] {
					t.Error("a large body has not waited")
				}
				s.desks.Give("beside", 1)
				synctest.Wait()
				if !done[4*heavy] {
					t.Error("it waits on")
				}
			})
		})
	}
}

// TestWaitingForADeskHoldsNoPlace: a call whose large request waits to be worked on keeps nobody from a backend that takes one call at a time.
func TestWaitingForADeskHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := oneDesk()
		table, err := NewTable(models.Config{Backends: []models.Backend{{
			Name: "main", Dialects: []string{"anthropic"}, BaseURL: "http://127.0.0.1:1", Models: []models.Model{{Name: "large"}}, Concurrency: 1,
		}}}, nil, backends.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		ready := func(feature string, size int) *call {
			c := s.called(t, feature, size)
			c.caller.Silence = time.Minute
			if f := c.read(); f != nil {
				t.Fatal(f)
			}
			if f := c.choose(table); f != nil {
				t.Fatal(f)
			}
			if f := c.filter(); f != nil {
				t.Fatal(f)
			}
			return c
		}
		waits, other := ready("hostile", 4*heavy), ready("healthy", 1<<10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waits.r = waits.r.WithContext(ctx)
		if err := s.desks.Try("beside", 1); err != nil {
			t.Fatal(err)
		}
		ended := make(chan *failure, 1)
		go func() { ended <- waits.once() }()
		synctest.Wait()
		p, f := s.doors.enter(other)
		if f != nil {
			t.Fatalf("another Feature waits for the call: %v", f)
		}
		p.leave()
		cancel()
		if f := <-ended; f == nil || f.reason != reasonGone {
			t.Errorf("the call that waits: %v", f)
		}
	})
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is a model provider that plays scripts: it speaks the wire formats of the real ones, and answers each
// turn of a conversation as the script in its first message says. It keeps nothing of a conversation, so requests may come repeatedly and
// in any sequence.
package provider

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxBody of a request, in bytes.
	maxBody = 64 << 20
	// maxRecorded requests are kept.
	maxRecorded = 500
)

// dialect is a wire format.
type dialect interface {
	// serves says whether a request is one of this dialect.
	serves(r *http.Request) bool
	// key that the request carries.
	key(r *http.Request) string
	// read a request's body; a nil conversation asks for no answer of a model, and is answered with other.
	read(r *http.Request, body []byte) (c *conversation, other any, err error)
	// answer a conversation.
	answer(w *stream, c *conversation, t Turn)
	// fail with a status.
	fail(w http.ResponseWriter, status int, message string)
}

// dialects that are spoken. A new one is an entry here.
func dialects() []dialect { return []dialect{anthropic{}, responses{}, gemini{}, chat{}} }

// conversation is what all dialects have in common.
type conversation struct {
	// id of what the model answers now: no two answers have one, whatever was left out of the conversation.
	id    string
	model string
	// texts of all messages and tool results, in order; system texts first.
	texts []string
	// calls of tools and results in the conversation, by their IDs.
	calls, results []string
	// turns that the model has answered, in the whole conversation.
	turns int
	// tools that are offered, bare where none of them may be called, and forced where the only one has to be.
	tools    []string
	bare     bool
	forced   bool
	streamed bool
	// thinks says that the request lets the model show what it thinks, single that no two tools are called at once.
	thinks, single bool
	// choices that are asked for, and whether the end of a stream has the usage, in dialects where that is asked for.
	choices int
	counted bool
	// uncommented says that no provider of the dialect sends comments, and that its clients take none.
	uncommented bool
	// most tokens of an answer; 0 where the request does not say.
	most int
	// size of the request in bytes.
	size int
}

// Recorded is a request that came.
type Recorded struct {
	Time   time.Time         `json:"time"`
	Proto  string            `json:"proto"`
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
	// From is the address of the client, without the port.
	From string `json:"from"`
	// Status of the answer; 0 while it is in progress.
	Status int `json:"status"`
}

// Server is the provider.
type Server struct {
	key string

	mu       sync.Mutex
	recorded []*Recorded
	// failed counts the failures of each turn.
	failed map[string]int
}

// New provider that takes one key; an empty one takes any.
func New(key string) *Server { return &Server{key: key, failed: map[string]int{}} }

// Recorded are the last requests.
func (s *Server) Recorded() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Recorded, 0, len(s.recorded))
	for _, r := range s.recorded {
		all = append(all, *r)
	}
	return all
}

// ServeRecorded returns the last requests as a JSON list: those whose bodies have the text of the parameter about, or all.
func (s *Server) ServeRecorded(w http.ResponseWriter, r *http.Request) {
	about := r.URL.Query().Get("about")
	recorded := slices.DeleteFunc(s.Recorded(), func(r Recorded) bool { return !strings.Contains(r.Body, about) })
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(recorded))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	out := &stream{ResponseWriter: w, status: http.StatusOK}
	ended := s.record(r, body)
	defer func() { ended(out.status) }()
	s.serve(out, r, body)
}

func (s *Server) serve(w *stream, r *http.Request, body []byte) {
	for _, d := range dialects() {
		if !d.serves(r) {
			continue
		}
		if s.key != "" && subtle.ConstantTimeCompare([]byte(d.key(r)), []byte(s.key)) == 0 {
			d.fail(w, http.StatusUnauthorized, "invalid key")
			return
		}
		c, other, err := d.read(r, body)
		switch {
		case err != nil:
			d.fail(w, http.StatusBadRequest, err.Error())
		case c == nil:
			w.json(http.StatusOK, other)
		default:
			s.play(w, r, d, c)
		}
		return
	}
	http.Error(w, fmt.Sprintf("no dialect serves %s %s", r.Method, r.URL.Path), http.StatusNotFound)
}

// check that each call of a tool has a result, and each result a call: no real provider takes anything else.
func (c *conversation) check() error {
	for _, call := range c.calls {
		if !slices.Contains(c.results, call) {
			return fmt.Errorf("the call %s has no result", call)
		}
	}
	for _, result := range c.results {
		if !slices.Contains(c.calls, result) {
			return fmt.Errorf("the result %s has no call", result)
		}
	}
	return nil
}

// play the turn that a conversation has come to.
func (s *Server) play(w *stream, r *http.Request, d dialect, c *conversation) {
	script, id, err := find(c)
	if err = errors.Join(err, c.check()); err != nil {
		d.fail(w, http.StatusBadRequest, err.Error())
		return
	}
	turn := id + r.URL.Path + strconv.Itoa(c.turns)
	t := script.turn(c).mannered(id, script.Plain, c)
	if f := t.Fail; f != nil && s.fails(turn, f.Times) {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		d.fail(w, f.Status, "the script says so")
		return
	}
	if t.Cut != "" && s.fails(turn, 1) {
		w.cut = t.Cut
	}
	if t.Slow == 0 || s.fails("slow "+turn, t.Slow) {
		select {
		case <-time.After(time.Duration(t.Delay)):
		case <-r.Context().Done():
			return
		}
	}
	w.turn, w.done = t, r.Context().Done()
	d.answer(w, c, t)
}

// fails says whether a turn fails once more.
func (s *Server) fails(turn string, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[turn]++
	return s.failed[turn] <= max(times, 1)
}

// record a request; ended is called with the status of its answer.
func (s *Server) record(r *http.Request, body []byte) (ended func(status int)) {
	header := map[string]string{}
	for name := range r.Header {
		header[name] = r.Header.Get(name)
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr) // none in a test without a connection
	one := &Recorded{Time: time.Now(), Proto: r.Proto, Method: r.Method, Path: r.URL.RequestURI(), Header: header, Body: string(body), From: from}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, one)
	s.recorded = s.recorded[max(0, len(s.recorded)-maxRecorded):]
	return func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.Status = status
	}
}

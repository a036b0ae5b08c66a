// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// maxAnswerHead bounds the first line of an answer: JSON may write a character of the message as six bytes.
const maxAnswerHead = 8 * protocol.MaxAnswerMessage

// errElsewhere says that nobody waits for this answer here.
var errElsewhere = errors.New("no one waits for this answer at this replica: try another connection")

// Answer to an inquiry, while it is being received.
type Answer struct {
	Head protocol.AnswerHead
	// Body is the content. Reading it fails if the answer breaks off, and ends early if Reason says so.
	Body io.Reader
	// Reason says, after the end of the body, why it is not complete; empty when it is.
	Reason func() string

	done chan struct{}
	once sync.Once
}

// close lets go of the pod that answers.
func (a *Answer) close() { a.once.Do(func() { close(a.done) }) }

// waiting is an inquiry that waits for its answer.
type waiting struct {
	// admit says whether the pod that a token is bound to may answer.
	admit func(ctx context.Context, token string) error
	// answer takes one.
	answer chan *Answer
	taken  sync.Once
}

// inquiries of this replica that wait for answers, by their ids.
type inquiries struct {
	options Options
	// draining is closed when this replica is about to end.
	draining chan struct{}

	mu   sync.Mutex
	open map[string]*waiting
}

func (i *inquiries) add(id string, w *waiting) (remove func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open == nil {
		i.open = map[string]*waiting{}
	}
	i.open[id] = w
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.open, id)
	}
}

func (i *inquiries) find(id string) *waiting {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open[id]
}

// postAnswer receives the answer to an inquiry, for as long as the one who asked reads it.
func (s *Server) postAnswer(w http.ResponseWriter, r *http.Request) {
	inquiry := s.inquiries.find(r.PathValue("id"))
	if inquiry == nil {
		s.fail(w, r, errElsewhere)
		return
	}
	token, err := bearer(r)
	if err == nil {
		err = inquiry.admit(r.Context(), token)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	first := false
	inquiry.taken.Do(func() { first = true })
	if !first {
		s.fail(w, r, &runstatus.Refusal{Reason: "this inquiry has an answer already"})
		return
	}
	// The server's own timeouts bound this as long as the inquiry lasts; what is open then ends with it.
	body := bufio.NewReaderSize(http.MaxBytesReader(w, r.Body, protocol.MaxAnswerBytes+2*maxAnswerHead), maxAnswerHead)
	answer := &Answer{Body: body, done: make(chan struct{}), Reason: func() string {
		return runstatus.Clean(r.Trailer.Get(protocol.AnswerErrorTrailer), maxProblem)
	}}
	if answer.Head, err = readHead(body); err != nil {
		// The one who asked is told as well: nothing else will come.
		answer.Head = protocol.AnswerHead{Code: http.StatusBadGateway, Message: "cannot read the pod's answer: " + err.Error()}
	}
	select {
	case inquiry.answer <- answer:
	case <-r.Context().Done():
		return
	}
	select {
	case <-answer.done:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// readHead reads the first line of an answer.
func readHead(body *bufio.Reader) (protocol.AnswerHead, error) {
	var head protocol.AnswerHead
	line, err := body.ReadSlice('\n')
	if err != nil {
		return head, fmt.Errorf("read its first line: %w", err)
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return head, fmt.Errorf("read its first line: %w", err)
	}
	if head.Code != http.StatusOK && (head.Code < http.StatusBadRequest || head.Code >= 600) {
		return head, fmt.Errorf("its code is %d", head.Code)
	}
	head.Message = runstatus.Clean(head.Message, maxProblem)
	return head, nil
}

// bearer is the token of a request.
func bearer(r *http.Request) (string, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", fmt.Errorf("no bearer token: %w", identity.ErrUnauthenticated)
	}
	return token, nil
}

// admitAttempt lets the pod of a Feature's current attempt answer.
func (i *inquiries) admitAttempt(feature types.UID) func(context.Context, string) error {
	return func(ctx context.Context, token string) error {
		caller, err := i.options.Authenticator.Authenticate(ctx, token)
		if err == nil && caller.Feature.UID != feature {
			err = fmt.Errorf("the inquiry is about another Feature: %w", identity.ErrForbidden)
		}
		return err
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
)

// answer asks, and passes the answer on as it comes. Where there is none it does instead what is given, if anything is.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, key types.NamespacedName, q protocol.Inquiry, instead func()) {
	release, refused := s.streams.take(whoAsks(r).GetName())
	if refused != "" {
		fail(w, apierrors.NewTooManyRequests(refused, 1))
		return
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), protocol.InquiryTime)
	defer cancel()
	s.options.Logger.Info("Answering an inquiry", "feature", key, "kind", q.Kind, "user", whoAsks(r).GetName())
	answer, done, err := s.options.Asker.Ask(ctx, key, q)
	if err != nil {
		if instead == nil || r.Context().Err() != nil {
			s.refuse(w, r, key, err)
			return
		}
		instead()
		return
	}
	defer done()
	switch {
	case answer.Head.Code == http.StatusOK:
	case instead != nil:
		instead()
		return
	default:
		fail(w, failure(answer.Head.Code, answer.Head.Message))
		return
	}
	asText(w)
	if q.JSON {
		w.Header().Set("Content-Type", "application/json")
	}
	_, err = io.Copy(w, answer.Body)
	reason := answer.Reason()
	if err != nil {
		reason = "it broke off: ask again"
	}
	if reason == "" {
		return
	}
	if !q.JSON {
		_, _ = fmt.Fprintf(w, "\ntidewaiter: this answer is not complete: %s\n", reason)
	}
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) // the one who asks must not take a part for the whole
}

// refuse says why there is no answer.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, key types.NamespacedName, err error) {
	switch {
	case errors.Is(err, intake.ErrBusy):
		err = apierrors.NewTooManyRequests(err.Error(), 1)
	case errors.Is(err, intake.ErrNothing):
		err = failure(http.StatusNotFound, err.Error())
	case errors.Is(err, intake.ErrGone):
		err = failure(http.StatusGone, err.Error())
	case errors.Is(err, intake.ErrUnanswered):
		err = failure(http.StatusServiceUnavailable, err.Error())
	case apierrors.IsNotFound(err):
		err = notFound(err, "features", key.Name)
	default:
		if r.Context().Err() == nil {
			s.options.Logger.Error(err, "Cannot answer an inquiry", "feature", key)
		}
	}
	fail(w, err)
}

// failure is an error of a code with the reason that the API has for it.
func failure(code int, message string) error {
	reasons := map[int]metav1.StatusReason{
		http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusGone: metav1.StatusReasonGone, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	reason, known := reasons[code]
	if !known {
		code, reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}} //nolint:gosec // an HTTP status
}

// fail answers with a Status, as every API of Kubernetes does.
func fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: "the answer is not available: see the log of the manager",
		}}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	if err := json.NewEncoder(w).Encode(status); err != nil {
		return // a caller that hung up asks again
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// paramReviewer is the name of a reviewer.
const paramReviewer = "reviewer"

// featureReview shows the question that a model got for a reviewer at its last review, as the ledger has it. The manager does not have the repository, so
// it cannot make the next question.
func (s *Server) featureReview(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get(paramReviewer)
	if _, custom := protocol.CustomName(name); !custom && !slices.Contains(protocol.Reviewers(), name) {
		fail(w, apierrors.NewBadRequest(fmt.Sprintf("%s is %.64q: use %s, or custom/ with the name of a reviewer that a policy defines", paramReviewer, name, strings.Join(protocol.Reviewers(), ", "))))
		return
	}
	s.list(w, r, nil, []string{paramReviewer}, func(ctx context.Context, key types.NamespacedName, ask url.Values, asJSON bool) error {
		entries, err := s.options.Ledger.History(ctx, ask)
		switch {
		case err == nil:
			writeHistory(w, entries, true, asJSON)
		case errors.Is(err, ErrNotRecorded):
			err = failure(http.StatusNotFound, fmt.Sprintf("the ledger has no question for the reviewer %s of the Feature %s: it has not reviewed the work yet, or retention.ledgerPeriod is over", ask.Get(paramReviewer), key.Name))
		}
		return err
	})
}

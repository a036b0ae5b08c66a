// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Query parameters.
const (
	// paramTo and paramFrom are checkpoints, by number or name; paramFrom may be fromBase.
	paramTo   = "to"
	paramFrom = "from"
	fromBase  = "base"
	// paramPatch and paramFiles are true or false.
	paramPatch = "patch"
	paramFiles = "files"
	// paramGate is the name of a gate.
	paramGate = "gate"
	// paramCommit is the commit that a Checkpoint object names.
	paramCommit = "commit"
	// paramOutput is json or text.
	paramOutput = "output"
)

var commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// parameters of a request, each once, and no other than those that are known.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	if len(r.URL.RawQuery) > protocol.MaxInquiryHeader {
		return nil, fmt.Errorf("the query has more than %d characters", protocol.MaxInquiryHeader)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("cannot read the query: %w", err)
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is not known here: use %s", name, strings.Join(known, ", "))
		}
		if len(query[name]) > 1 {
			return nil, fmt.Errorf("%q is there more than once", name)
		}
	}
	return query, nil
}

// checkpointOf reads the number of a Feature's checkpoint: "7" or "add-login-7"; 0 for nothing.
func checkpointOf(feature, parameter, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if n, ok := naming.Sequence(feature, text); ok {
		return n, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%s: %q is not a checkpoint of %s: give its number, or its name such as %s", parameter, text, feature, naming.Checkpoint(feature, 7))
}

func flag(query url.Values, name string) (bool, error) {
	switch text := query.Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s is true or false, not %q", name, text)
	}
}

// diffOf reads what a diff is compared with, and how it is to be written.
func diffOf(feature string, query url.Values) (protocol.Inquiry, error) {
	q := protocol.Inquiry{Kind: protocol.InquiryDiff}
	var err error
	if q.To, err = checkpointOf(feature, paramTo, query.Get(paramTo)); err != nil {
		return q, err
	}
	if q.Base = query.Get(paramFrom) == fromBase; !q.Base {
		if q.From, err = checkpointOf(feature, paramFrom, query.Get(paramFrom)); err != nil {
			return q, err
		}
	}
	q.Patch, err = flag(query, paramPatch)
	return q, err
}

func (s *Server) featureDiff(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramFrom, paramTo, paramPatch)
	var q protocol.Inquiry
	if err == nil {
		q, err = diffOf(r.PathValue("name"), query)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.diff(w, r, feature(r), q)
}

func (s *Server) featureLog(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramFiles)
	q := protocol.Inquiry{Kind: protocol.InquiryLog}
	if err == nil {
		q.Files, err = flag(query, paramFiles)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.answer(w, r, feature(r), q, nil)
}

// maxName bounds the name of a task, milestone and all, and of a gate.
const maxName = 2*63 + 1

func (s *Server) featureGates(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramTask, paramGate)
	q := protocol.Inquiry{Kind: protocol.InquiryGates, Task: query.Get(paramTask), Gate: query.Get(paramGate)}
	if err == nil && (len(q.Task) > maxName || len(q.Gate) > maxName) {
		err = fmt.Errorf("%s and %s have at most %d characters", paramTask, paramGate, maxName)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.answer(w, r, feature(r), q, nil)
}

func (s *Server) featureVerify(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramCommit, paramOutput)
	q := protocol.Inquiry{Kind: protocol.InquiryVerify}
	if err == nil {
		q.Commit = query.Get(paramCommit)
		q.JSON, err = wantsJSON(query.Get(paramOutput), r.Header.Get("Accept"))
	}
	if err == nil && q.Commit != "" && !commitID.MatchString(q.Commit) {
		err = fmt.Errorf("%s is a commit of 40 hexadecimal digits, not %q", paramCommit, q.Commit)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.answer(w, r, feature(r), q, nil)
}

// wantsJSON unless text is asked for, by parameter or by type.
func wantsJSON(output, accept string) (bool, error) {
	switch output {
	case "json":
		return true, nil
	case "text":
		return false, nil
	case "":
		return !strings.HasPrefix(strings.TrimSpace(accept), "text/plain"), nil
	default:
		return false, fmt.Errorf("%s is json or text, not %q", paramOutput, output)
	}
}

func (s *Server) checkpointDiff(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramFrom, paramPatch)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	key := feature(r)
	checkpoint := &v1alpha1.Checkpoint{}
	if err := s.options.Live.Get(r.Context(), key, checkpoint); err != nil {
		fail(w, notFound(err, "checkpoints", key.Name))
		return
	}
	key.Name = checkpoint.Spec.FeatureName
	q, err := diffOf(key.Name, query)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	q.To = checkpoint.Spec.Sequence
	s.diff(w, r, key, q)
}

// feature is the object that a path names.
func feature(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// notFound says of which kind an object is missing; other errors stay what they are.
func notFound(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: kind}, name)
	}
	return err
}

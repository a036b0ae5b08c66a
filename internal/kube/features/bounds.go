// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Bounds of what goes into a status. A status that the API server refuses is never written, and with it nothing that
// the controller has to say: so that everything that comes from people, pods and policies is cut here, in one place,
// whatever was made of it before.
const (
	// maxLocks and maxSources are what the API has room for. Neither is bounded where it comes from: a plan may name other
	// contracts while its attempt holds the earlier ones, and a project may have any number of policies.
	maxLocks, maxSources = 256, 64
	// maxSource bounds a source: namespace, slash, name.
	maxSource = 320
	// maxResults bounds the results of requests.
	maxResults = 256
	// maxResult, shortResult and shortestResult bound the message of a result, in characters; the API takes maxResult.
	maxResult, shortResult, shortestResult = 1024, 256, 64
	// maxConditionMessage bounds the message of a condition, in bytes; the API takes 32 KiB, people read less.
	maxConditionMessage = 2000
	// maxReason bounds the reason of a condition; the API takes 1,024 characters.
	maxReason = 128
	// maxName bounds the name of an object, maxBranch that of a branch, maxHash a commit, maxPolicyHash a policy's hash,
	// maxJob the name of a Job, maxUID a uid, in characters.
	maxName, maxBranch, maxHash, maxPolicyHash, maxJob, maxUID = 253, 200, 40, 128, 63, 64
	// maxStatusBytes bounds the JSON of the controller's part. etcd stores 1.5 MiB of an object: that is enough for the
	// largest spec (128 Ki characters of up to 6 bytes each), for annotations (256 KiB, as the API server has it), for what
	// intake writes (256 KiB), for this, and for 64 KiB of managed fields.
	maxStatusBytes = 192 << 10
	// shortConditionMessage bounds messages of a status that is too large.
	shortConditionMessage = 512
)

// bound cuts a status to what the API server takes, whatever it was made of.
func bound(s *v1alpha1.FeatureStatus) {
	s.Branch, s.Head = plain.CutRunes(s.Branch, maxBranch), plain.CutRunes(s.Head, maxHash)
	s.LastCheckpoint, s.LastValidCheckpoint = plain.CutRunes(s.LastCheckpoint, maxName), plain.CutRunes(s.LastValidCheckpoint, maxName)
	s.Locks = plain.CutList(s.Locks, maxLocks)
	if j := s.Job; j != nil {
		j.Name, j.PodName, j.PodUID = plain.CutRunes(j.Name, maxJob), plain.CutRunes(j.PodName, maxName), plain.CutRunes(j.PodUID, maxUID)
	}
	if p := s.Policy; p != nil {
		p.Hash, p.Sources = plain.CutRunes(p.Hash, maxPolicyHash), clipAll(plain.CutList(p.Sources, maxSources), maxSource)
	}
	boundDeliveries(s)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.Reason, c.Message = reason(c.Reason), plain.CutBytes(c.Message, maxConditionMessage)
	}
	// The newest results are what somebody waits for.
	s.ObservedRequests = s.ObservedRequests[max(0, len(s.ObservedRequests)-maxResults):]
	shortenResults(s.ObservedRequests, maxResult)
	for _, limit := range []int{shortResult, shortestResult} {
		if size(s) > maxStatusBytes {
			shortenResults(s.ObservedRequests, limit)
		}
	}
	for i := 0; i < len(s.Conditions) && size(s) > maxStatusBytes; i++ {
		s.Conditions[i].Message = plain.CutBytes(s.Conditions[i].Message, shortConditionMessage)
	}
	for i := 0; i < len(s.Deliveries) && size(s) > maxStatusBytes; i++ { // how many paths there are stays
		s.Deliveries[i].Paths = nil
	}
}

// reasonFormat is what the API server takes as a reason (metav1.Condition).
var reasonFormat = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// reason is a reason that the API server takes. It may come from a pod, and has no room for a mark that says that it
// was cut.
func reason(text string) string {
	if len(text) > maxReason {
		text = strings.TrimRight(text[:maxReason], ",:")
	}
	if !reasonFormat.MatchString(text) {
		return v1alpha1.ReasonInternalError
	}
	return text
}

func shortenResults(list []v1alpha1.ObservedRequest, limit int) {
	for i := range list {
		list[i].Message = plain.CutRunes(list[i].Message, limit)
	}
}

func clipAll(list []string, limit int) []string {
	var short []string
	for _, text := range list {
		short = append(short, plain.CutRunes(text, limit))
	}
	return short
}

// size of a status as it is sent, in bytes.
func size(s *v1alpha1.FeatureStatus) int {
	text, err := json.Marshal(s)
	if err != nil {
		return 0 // plain strings and numbers: it cannot happen
	}
	return len(text)
}

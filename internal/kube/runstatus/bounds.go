// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/clip"
)

const (
	// maxRunBytes bounds the JSON of a run; the tasks of the largest plan take two thirds of it. See maxStatusBytes of
	// kube/translate for the sum.
	maxRunBytes = 256 << 10
	// maxObject bounds names of objects, maxHash commits, maxReason the reason of a checkpoint, in characters, as the API
	// does.
	maxObject, maxHash, maxReason = 253, 40, 64
	// shortMessage and shortestMessage bound the messages of a run that is too large.
	shortMessage, shortestMessage = 256, 64
)

// Bound cuts a run to what the API server takes, whatever it was made of: a run that is refused is never written, and
// no report after it. It changes nothing that it is given.
func Bound(run v1alpha1.RunStatus) v1alpha1.RunStatus {
	next := *run.DeepCopy()
	next.Replica, next.LastValidCheckpoint = clip.Runes(next.Replica, maxObject), clip.Runes(next.LastValidCheckpoint, maxObject)
	if c := next.LastCheckpoint; c != nil {
		c.Name, c.Reason, c.Message = clip.Runes(c.Name, maxObject), clip.Runes(c.Reason, maxReason), clip.Runes(c.Message, maxMessage)
	}
	if b := next.Rollbacks; b != nil {
		b.Last.Before, b.Last.To, b.Last.Reason = clip.Runes(b.Last.Before, maxObject), clip.Runes(b.Last.To, maxObject), clip.Runes(b.Last.Reason, maxText)
	}
	boundStatus(&next)
	if f := next.Final; f != nil {
		f.Reason, f.Head = clip.Runes(f.Reason, maxName), clip.Runes(f.Head, maxHash)
		f.Paths = deliveredPaths(f.Paths)
	}
	next.Requests = next.Requests[max(0, len(next.Requests)-maxRequests):]
	shortenMessages(&next, maxMessage)
	for _, limit := range []int{shortMessage, shortestMessage} {
		if runSize(next) > maxRunBytes {
			shortenMessages(&next, limit)
		}
	}
	for runSize(next) > maxRunBytes && len(next.Tasks) > 0 {
		next.Tasks = clip.List(next.Tasks, len(next.Tasks)/2)
	}
	return next
}

func shortenMessages(run *v1alpha1.RunStatus, limit int) {
	for i := range run.Requests {
		run.Requests[i].Message = clip.Runes(run.Requests[i].Message, limit)
	}
	for i := range run.Directives {
		run.Directives[i].Message = clip.Runes(run.Directives[i].Message, limit)
	}
	if run.Fault != nil {
		run.Fault.Message = clip.Runes(run.Fault.Message, limit)
	}
	if run.Final != nil {
		run.Final.Message = clip.Runes(run.Final.Message, limit)
	}
	if run.Question != nil {
		run.Question.Text = clip.Runes(run.Question.Text, limit)
	}
}

// runSize is the size of a run as it is sent, in bytes.
func runSize(run v1alpha1.RunStatus) int {
	text, err := json.Marshal(run)
	if err != nil {
		return 0 // plain strings and numbers: it cannot happen
	}
	return len(text)
}

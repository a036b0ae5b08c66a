// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxRunBytes bounds the JSON of a run; the tasks of the largest plan take two thirds of it. See maxStatusBytes of
	// kube/features for the sum.
	maxRunBytes = 256 << 10
	// maxObject bounds names of objects, maxHash commits, maxReason the reason of a checkpoint, in characters, as the API
	// does.
	maxObject, maxHash, maxReason = 253, 40, 64
	// shortMessage and shortestMessage bound the messages of a run that is too large.
	shortMessage, shortestMessage = 256, 64
)

// Bound cuts a run to what the API server accepts, whatever its source: intake could never write a refused run, nor any report after it. It
// does not change its argument.
func Bound(run v1alpha1.RunStatus) v1alpha1.RunStatus {
	next := *run.DeepCopy()
	next.Replica, next.LastValidCheckpoint = plain.CutRunes(next.Replica, maxObject), plain.CutRunes(next.LastValidCheckpoint, maxObject)
	if c := next.LastCheckpoint; c != nil {
		c.Name, c.Reason, c.Message = plain.CutRunes(c.Name, maxObject), plain.CutRunes(c.Reason, maxReason), plain.CutRunes(c.Message, maxMessage)
	}
	if b := next.Rollbacks; b != nil {
		b.Last.Before, b.Last.To, b.Last.Reason = plain.CutRunes(b.Last.Before, maxObject), plain.CutRunes(b.Last.To, maxObject), plain.CutRunes(b.Last.Reason, maxText)
	}
	boundStatus(&next)
	if f := next.Final; f != nil {
		f.Reason, f.Head = plain.CutRunes(f.Reason, maxName), plain.CutRunes(f.Head, maxHash)
		f.Paths = deliveredPaths(f.Paths)
	}
	next.Requests = next.Requests[max(0, len(next.Requests)-maxRequests):]
	shortenMessages(&next, maxMessage)
	for _, all := range []bool{false, true} {
		if runSize(next) > maxRunBytes {
			withoutTexts(&next, all)
		}
	}
	for _, limit := range []int{shortMessage, shortestMessage} {
		if runSize(next) > maxRunBytes {
			shortenMessages(&next, limit)
		}
	}
	for runSize(next) > maxRunBytes && len(next.Tasks) > 0 {
		next.Tasks = plain.CutList(next.Tasks, len(next.Tasks)/2)
	}
	return next
}

func shortenMessages(run *v1alpha1.RunStatus, limit int) {
	for i := range run.Requests {
		run.Requests[i].Message = plain.CutRunes(run.Requests[i].Message, limit)
	}
	for i := range run.Directives {
		run.Directives[i].Message = plain.CutRunes(run.Directives[i].Message, limit)
	}
	for i := range run.Reviews {
		run.Reviews[i].Summary = plain.CutRunes(run.Reviews[i].Summary, limit)
	}
	for i := range run.Tasks {
		run.Tasks[i].Message = plain.CutRunes(run.Tasks[i].Message, min(limit, protocol.MaxTaskMessage))
	}
	if run.Fault != nil {
		run.Fault.Message = plain.CutRunes(run.Fault.Message, limit)
	}
	if run.Final != nil {
		run.Final.Message = plain.CutRunes(run.Final.Message, limit)
	}
	if run.Question != nil {
		run.Question.Text = plain.CutRunes(run.Question.Text, limit)
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

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions sets conditions, derives the root one, renders them for server-side apply, and does nothing else.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Writer sets conditions of one object at one time.
type Writer struct {
	// List of the object's conditions.
	List *[]metav1.Condition
	// Generation of the object that the conditions are about.
	Generation int64
	// Now becomes the time of a transition.
	Now time.Time
}

// maxMessage bounds a message in bytes: the API takes 32 KiB, people read less, and a status that is refused says nothing.
const maxMessage = 2000

// Set adds or changes a condition. The time of its last transition only moves with its status. Set cuts a long message, because it may
// quote users and policies.
func (w Writer) Set(name string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(w.List, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: plain.CutBytes(message, maxMessage),
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(w.Now),
	})
}

// Summarize derives the root condition: it copies the first part that is not True, in the given sequence, so that the message cannot flap.
// If all are True, it is True and copies the last part.
func (w Writer) Summarize(root string, parts ...string) {
	var last *metav1.Condition
	for _, name := range parts {
		c := meta.FindStatusCondition(*w.List, name)
		if c == nil {
			w.Set(root, metav1.ConditionUnknown, "NotYetReported", "Condition "+name+" is not known yet.")
			return
		}
		if c.Status != metav1.ConditionTrue {
			w.Set(root, c.Status, c.Reason, c.Message)
			return
		}
		last = c
	}
	if last != nil {
		w.Set(root, metav1.ConditionTrue, last.Reason, last.Message)
	}
}

// Configs are conditions as server-side apply takes them.
func Configs(list []metav1.Condition) []*metav1ac.ConditionApplyConfiguration {
	var configs []*metav1ac.ConditionApplyConfiguration
	for _, c := range list {
		configs = append(configs, metav1ac.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	return configs
}

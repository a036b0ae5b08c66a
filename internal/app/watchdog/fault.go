// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/spool"
)

// maxFault bounds the message of a fault, in bytes: it becomes the message of a condition.
const maxFault = 1024

// credentialsError: the Secret that the Feature names, or a key of it, is not there.
type credentialsError struct{ message string }

// Error says what is missing and where.
func (e *credentialsError) Error() string { return e.message }

// hostError: the Secret that the Feature names may not be sent to the repository's host.
type hostError struct{ message string }

// Error says which host was asked for, and which are listed where.
func (e *hostError) Error() string { return e.message }

// faultOf says in the words of the contract what an error keeps from going on; other is the reason of an error that is
// none of those that have a name.
func faultOf(err error, other string) contract.Fault {
	reason := other
	var credentials *credentialsError
	var host *hostError
	switch {
	case errors.As(err, &host):
		reason = contract.ReasonHostNotListed
	case errors.As(err, &credentials):
		reason = contract.ReasonCredentialsMissing
	case errors.Is(err, git.ErrAuthFailed):
		reason = contract.ReasonAuthenticationFailed
	case errors.Is(err, git.ErrNotFound):
		reason = contract.ReasonRepositoryNotFound
	case errors.Is(err, git.ErrRevisionNotFound):
		reason = contract.ReasonRevisionNotFound
	case errors.Is(err, git.ErrUnreachable), errors.Is(err, git.ErrObjectFormat):
		reason = contract.ReasonRepositoryUnreachable
	case errors.Is(err, git.ErrEgressDenied):
		reason = contract.ReasonEgressDenied
	case errors.Is(err, git.ErrRejected):
		reason = contract.ReasonPushFailed
	case errors.Is(objects.WrapFull(err), git.ErrFull):
		reason = contract.ReasonVolumeFull
	case errors.Is(err, git.ErrCorrupt), errors.Is(err, errCorrupt), errors.Is(err, spool.ErrCorrupt):
		reason = contract.ReasonVolumeCorrupt
	case errors.Is(err, errFenced):
		reason = contract.ReasonVolumeFenced
	}
	return contract.Fault{Reason: reason, Message: clip(oneLine(err), maxFault)}
}

// oneLine is the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

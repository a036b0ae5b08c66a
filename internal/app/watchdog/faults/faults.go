// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults turns errors that keep a run from continuing into faults of the protocol.
package faults

import (
	"errors"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/remote"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// MaxMessage bounds the message of a fault, in bytes: it becomes the message of a condition.
const MaxMessage = 1024

// Of returns the fault of an error; other is the reason for an error without a reason of its own.
func Of(err error, other string) protocol.Fault {
	reason := other
	var credentials *remote.CredentialsError
	var host *remote.HostError
	switch {
	case errors.As(err, &host):
		reason = protocol.ReasonHostNotListed
	case errors.As(err, &credentials):
		reason = protocol.ReasonCredentialsMissing
	case errors.Is(err, git.ErrAuthFailed):
		reason = protocol.ReasonAuthenticationFailed
	case errors.Is(err, git.ErrNotFound):
		reason = protocol.ReasonRepositoryNotFound
	case errors.Is(err, git.ErrRevisionNotFound):
		reason = protocol.ReasonRevisionNotFound
	case errors.Is(err, git.ErrObjectFormat):
		reason = protocol.ReasonObjectFormatUnsupported
	case errors.Is(err, git.ErrDamaged):
		reason = protocol.ReasonRepositoryDamaged
	case errors.Is(err, git.ErrUnreachable):
		reason = protocol.ReasonRepositoryUnreachable
	case errors.Is(err, git.ErrEgressDenied):
		reason = protocol.ReasonEgressDenied
	case errors.Is(err, git.ErrRejected):
		reason = protocol.ReasonPushRejected
	case errors.Is(err, git.ErrConflict):
		reason = protocol.ReasonPushConflict
	case errors.Is(err, git.ErrNotTaken):
		reason = protocol.ReasonPushFailed
	case errors.Is(objects.WrapFull(err), git.ErrFull):
		reason = protocol.ReasonVolumeFull
	case errors.Is(err, git.ErrCorrupt), errors.Is(err, git.ErrNoObject), errors.Is(err, trusted.ErrCorrupt), errors.Is(err, spool.ErrCorrupt):
		reason = protocol.ReasonVolumeCorrupt
	case errors.Is(err, trusted.ErrLater):
		reason = protocol.ReasonVolumeVersionUnsupported
	case errors.Is(err, trusted.ErrFenced):
		reason = protocol.ReasonVolumeFenced
	}
	return protocol.Fault{Reason: reason, Message: plain.CutBytes(OneLine(err), MaxMessage)}
}

// OneLine is the text of an error without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

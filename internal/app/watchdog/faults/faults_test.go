// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/remote"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

func TestOf(t *testing.T) {
	for err, want := range map[error]string{
		&remote.HostError{}: protocol.ReasonHostNotListed, &remote.CredentialsError{}: protocol.ReasonCredentialsMissing,
		git.ErrAuthFailed: protocol.ReasonAuthenticationFailed, git.ErrNotFound: protocol.ReasonRepositoryNotFound,
		git.ErrRevisionNotFound: protocol.ReasonRevisionNotFound, git.ErrUnreachable: protocol.ReasonRepositoryUnreachable,
		git.ErrObjectFormat: protocol.ReasonObjectFormatUnsupported, git.ErrDamaged: protocol.ReasonRepositoryDamaged, git.ErrEgressDenied: protocol.ReasonEgressDenied,
		git.ErrRejected: protocol.ReasonPushRejected, git.ErrConflict: protocol.ReasonPushConflict,
		git.ErrNotTaken: protocol.ReasonPushFailed, git.ErrFull: protocol.ReasonVolumeFull, syscall.ENOSPC: protocol.ReasonVolumeFull,
		git.ErrCorrupt: protocol.ReasonVolumeCorrupt, trusted.ErrCorrupt: protocol.ReasonVolumeCorrupt, trusted.ErrLater: protocol.ReasonVolumeVersionUnsupported, spool.ErrCorrupt: protocol.ReasonVolumeCorrupt,
		git.ErrNoObject:   protocol.ReasonVolumeCorrupt,
		trusted.ErrFenced: protocol.ReasonVolumeFenced, errors.New("something else"): "Other",
	} {
		if got := faults.Of(fmt.Errorf("in the\nmiddle: %w", err), "Other"); got.Reason != want || !strings.HasPrefix(got.Message, "in the middle:") {
			t.Errorf("Of(%v) = %+v, want the reason %s", err, got, want)
		}
	}
	if got := faults.Of(errors.New(strings.Repeat("x", 5000)), "Other"); len(got.Message) > faults.MaxMessage {
		t.Errorf("a message of %d bytes", len(got.Message))
	}
}

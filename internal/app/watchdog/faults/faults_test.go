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
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/spool"
	"github.com/tidewaiter/tidewaiter/internal/host/trusted"
)

func TestOf(t *testing.T) {
	for err, want := range map[error]string{
		&remote.HostError{}: contract.ReasonHostNotListed, &remote.CredentialsError{}: contract.ReasonCredentialsMissing,
		git.ErrAuthFailed: contract.ReasonAuthenticationFailed, git.ErrNotFound: contract.ReasonRepositoryNotFound,
		git.ErrRevisionNotFound: contract.ReasonRevisionNotFound, git.ErrUnreachable: contract.ReasonRepositoryUnreachable,
		git.ErrObjectFormat: contract.ReasonRepositoryUnreachable, git.ErrEgressDenied: contract.ReasonEgressDenied,
		git.ErrRejected: contract.ReasonPushFailed, git.ErrFull: contract.ReasonVolumeFull, syscall.ENOSPC: contract.ReasonVolumeFull,
		git.ErrCorrupt: contract.ReasonVolumeCorrupt, trusted.ErrCorrupt: contract.ReasonVolumeCorrupt, spool.ErrCorrupt: contract.ReasonVolumeCorrupt,
		trusted.ErrFenced: contract.ReasonVolumeFenced, errors.New("something else"): "Other",
	} {
		if got := faults.Of(fmt.Errorf("in the\nmiddle: %w", err), "Other"); got.Reason != want || !strings.HasPrefix(got.Message, "in the middle:") {
			t.Errorf("Of(%v) = %+v, want the reason %s", err, got, want)
		}
	}
	if got := faults.Of(errors.New(strings.Repeat("x", 5000)), "Other"); len(got.Message) > faults.MaxMessage {
		t.Errorf("a message of %d bytes", len(got.Message))
	}
}

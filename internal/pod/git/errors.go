// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Causes of failed git operations; errors.Is finds them in the errors of this package, whose text says what to do.
var (
	// ErrNotFound: the remote has no such repository, or hides it from this user.
	ErrNotFound = errors.New("repository not found")
	// ErrRevisionNotFound: the remote has no such branch, tag or commit.
	ErrRevisionNotFound = errors.New("revision not found")
	// ErrAuthFailed: the remote refused the credentials, or wants some.
	ErrAuthFailed = errors.New("authentication failed")
	// ErrUnreachable: the remote or the proxy did not answer as a Git server.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrEgressDenied: the proxy does not let this host pass.
	ErrEgressDenied = errors.New("egress denied")
	// ErrConflict: the remote branch has commits that the push does not have.
	ErrConflict = errors.New("push conflict")
	// ErrRejected: the remote refused the push by a rule of its own (protected branch, hook, quota).
	ErrRejected = errors.New("push rejected by the remote")
	// ErrNotTaken: the remote could not move the branch, and may be able to later.
	ErrNotTaken = errors.New("push not taken by the remote")
	// ErrRefMoved: a ref did not have the value that the update expected.
	ErrRefMoved = errors.New("ref has moved")
	// ErrCorrupt: the trusted repository lacks an object or holds a damaged one.
	ErrCorrupt = errors.New("trusted repository is damaged")
	// ErrObjectFormat: the remote's repository uses SHA-256 object names.
	ErrObjectFormat = errors.New("object format not supported")
	// ErrDamaged: the remote's history lacks an object, or holds one that Git's checks refuse.
	ErrDamaged = errors.New("repository is damaged")
	// ErrNoObject: the object is not in the trusted repository.
	ErrNoObject = errors.New("object not found")
	// ErrTooLarge: the object exceeds the bound given to a read.
	ErrTooLarge = errors.New("object exceeds the bound")
	// ErrFull: the trusted volume has no room left.
	ErrFull = objects.ErrFull
)

// Definite reports whether a push failed in a way that another try does not change: a user has to act.
func Definite(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrRejected) || errors.Is(err, ErrAuthFailed)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrFull is wrapped by errors that say that the volume or its quota has no room left.
var ErrFull = errors.New("no space left on the volume")

// ErrWrite is wrapped by errors of writing a pack, to distinguish them from errors of reading its content.
var ErrWrite = errors.New("write pack")

// WrapFull marks errors that come from a full volume, so that errors.Is finds ErrFull; others pass through.
func WrapFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

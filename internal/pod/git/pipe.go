// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// pipe runs git and lets read consume what it prints, of any length.
func (r runner) pipe(ctx context.Context, c call, read func(*bufio.Reader) error) error {
	in, out := io.Pipe()
	c.stdout = out
	done := make(chan error, 1)
	go func() {
		_, err := r.run(ctx, c)
		out.CloseWithError(err)
		done <- err
	}()
	err := read(bufio.NewReaderSize(in, 64<<10))
	// Nobody reads any more: git must not wait for it.
	in.CloseWithError(err)
	failed := <-done
	if failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

// lockPause between two tries to lock a volume that another pod still holds.
const lockPause = 500 * time.Millisecond

// Volume is the trusted volume, owned by this process. A lock protects it against processes of the same node, and the attempt's number
// against everybody else, because ReadWriteOnce does not fence.
type Volume struct {
	lock  *os.File
	path  string
	epoch int64
}

// Claim waits for the lock and takes the volume over for an attempt, unless a newer attempt has: the error is ErrFenced
// then. What a process that was killed has left half written is removed.
func Claim(ctx context.Context, d Dir, epoch int64, log *slog.Logger) (*Volume, error) {
	lock, err := os.OpenFile(d.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of the trusted volume: %w", err)
	}
	v := &Volume{lock: lock, path: d.epoch(), epoch: epoch}
	if err := v.acquire(ctx, log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	owner, err := v.owner()
	if err == nil && owner > epoch {
		err = fmt.Errorf("%w: attempt %d, and this is attempt %d", ErrFenced, owner, epoch)
	}
	if err == nil && owner < epoch {
		err = durable.Replace(v.path, []byte(strconv.FormatInt(epoch, 10)+"\n"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim the trusted volume: %w", err), lock.Close())
	}
	if err := sweep(d.Repository()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return v, nil
}

func (v *Volume) acquire(ctx context.Context, log *slog.Logger) error {
	for tries := 0; ; tries++ {
		err := syscall.Flock(int(v.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock the trusted volume: %w", err)
		}
		if tries == 0 {
			log.WarnContext(ctx, "Another process holds the trusted volume; waiting for it to end")
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return fmt.Errorf("wait for the lock of the trusted volume: %w", ctx.Err())
		}
	}
}

// owner is the newest attempt that has claimed the volume; 0 for none.
func (v *Volume) owner() (int64, error) {
	data, err := os.ReadFile(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the volume's epoch: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the volume's epoch is %q", ErrCorrupt, data)
	}
	return n, nil
}

// Guard fails with ErrFenced when a newer attempt has claimed the volume meanwhile.
func (v *Volume) Guard() error {
	owner, err := v.owner()
	if err == nil && owner != v.epoch {
		err = fmt.Errorf("%w: attempt %d", ErrFenced, owner)
	}
	return err
}

// sweep removes from the trusted repository the locks that a killed git has left, and what it or this program had half
// written. The processes that made them are gone, since this process owns the volume, and git would wait for locks for ever.
func sweep(repository string) error {
	refs := filepath.Join(repository, "refs")
	objects := filepath.Join(repository, "objects")
	for _, dir := range []string{repository, refs, objects, filepath.Join(objects, "pack")} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case e.IsDir() && path != dir && dir != refs:
				return fs.SkipDir
			case !e.IsDir() && leftover(path):
				return os.Remove(path)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("remove what a killed git left: %w", err)
		}
	}
	return nil
}

// leftover tells whether a file is a lock of git, an object or pack that was never finished, or a pack without the index by
// which it would be found.
func leftover(path string) bool {
	name := filepath.Base(path)
	if pack, found := strings.CutSuffix(path, ".pack"); found {
		_, err := os.Stat(pack + ".idx")
		return errors.Is(err, fs.ErrNotExist)
	}
	return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
}

// Close releases the lock.
func (v *Volume) Close() error { return v.lock.Close() }

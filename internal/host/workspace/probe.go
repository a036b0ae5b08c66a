// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// probeName is the file that the volume is tested with; it exists for a few milliseconds, before the agent does.
const probeName = ".tidewaiter-probe"

// probe tests what captures rely on, on the volume itself.
func probe(ctx context.Context, root dir) (Assumptions, error) {
	// What a crash left behind is in the way.
	if err := remove(root, probeName); err != nil {
		return Assumptions{}, err
	}
	fd, err := root.open(probeName, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return Assumptions{}, fmt.Errorf("openat2 is needed to read a hostile workspace safely (Linux 5.6, and a seccomp profile that allows it): %w", err)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS) {
		// A full or read-only volume cannot be tested: nothing is assumed.
		return Assumptions{Openat2: true, Notes: []string{"the volume could not be tested: " + err.Error()}}, nil
	}
	if err != nil {
		return Assumptions{}, err
	}
	defer dir{fd}.close()
	defer func() { _ = unix.Unlinkat(root.fd, probeName, 0) }()
	a := Assumptions{Openat2: true}
	a.test(&a.Leases, "leases do not work: every capture freezes the agent", func() (bool, error) { return probeLease(root) })
	a.test(&a.ChangeTime, "ctime does not advance: every capture reads everything", func() (bool, error) {
		return probeChange(ctx, fd, func() error {
			_, err := unix.Pwrite(fd, []byte("x"), 0)
			return err
		})
	})
	a.test(&a.MappedWrites, "mapped writes do not change ctime: every capture reads everything", func() (bool, error) {
		return probeMapping(ctx, fd)
	})
	a.test(&a.Watches, "inotify does not work: the workspace is scanned", probeWatch)
	return a, nil
}

// test records one assumption, and notes what to expect when it fails.
func (a *Assumptions) test(holds *bool, note string, probe func() (bool, error)) {
	ok, err := probe()
	*holds = ok && err == nil
	if *holds {
		return
	}
	if err != nil {
		note += " (" + err.Error() + ")"
	}
	a.Notes = append(a.Notes, note)
}

// probeLease expects the writer that there is to be found.
func probeLease(root dir) (bool, error) {
	fd, err := root.open(probeName, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer dir{fd}.close()
	found, ok := hasWriter(fd)
	return found && ok, nil
}

// probeChange expects two writes, a clock tick apart, to bear different ctimes.
func probeChange(ctx context.Context, fd int, change func() error) (bool, error) {
	if err := change(); err != nil {
		return false, err
	}
	before, err := fstat(fd)
	if err != nil {
		return false, err
	}
	// Longer than the tick of the slowest kernel, 10 ms at 100 Hz.
	timer := time.NewTimer(12 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C:
	}
	if err := change(); err != nil {
		return false, err
	}
	after, err := fstat(fd)
	return after.ctime > before.ctime, err
}

// probeMapping expects the first write to a clean page of a mapping to change the ctime.
func probeMapping(ctx context.Context, fd int) (bool, error) {
	return probeChange(ctx, fd, func() error {
		m, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		m[0]++
		return errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m))
	})
}

func probeWatch() (bool, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return false, err
	}
	dir{fd}.close()
	return true, nil
}

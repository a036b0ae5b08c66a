// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// probeName is the file that the volume is tested with; it exists for a few milliseconds, before the agent does.
const probeName = ".tidewaiter-probe"

// Probe tests what captures rely on, on the volume of a directory, and leaves nothing behind. An error says that no workspace can be there.
func Probe(ctx context.Context, path string) (Assumptions, error) {
	root, err := openRoot(path)
	if err != nil {
		return Assumptions{}, err
	}
	defer root.close()
	return probe(ctx, root)
}

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
	if untestable(err) {
		return nothingAssumed(err), nil
	}
	if err != nil {
		return Assumptions{}, err
	}
	defer dir{fd}.close()
	defer func() { _ = unix.Unlinkat(root.fd, probeName, 0) }()
	// The page that is mapped later must be on the volume: to touch one that the volume has no room for is a fatal signal.
	if err := writePage(fd); untestable(err) {
		return nothingAssumed(err), nil
	} else if err != nil {
		return Assumptions{}, fmt.Errorf("write a page: %w", err)
	}
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
	if a.untested != nil {
		return nothingAssumed(a.untested), nil
	}
	return a, nil
}

// test records one assumption, and notes what to expect when it fails.
func (a *Assumptions) test(holds *bool, note string, probe func() (bool, error)) {
	ok, err := probe()
	if untestable(err) {
		a.untested = err
	}
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
		return errors.Join(touch(m), unix.Msync(m, unix.MS_SYNC), unix.Munmap(m))
	})
}

// touch changes the first byte of a mapping. A page that is gone (the volume is full, or the file was cut short) is an
// error and does not end the process.
func touch(m []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("mapped page: %v", fault)
		}
	}()
	m[0]++
	return nil
}

// writePage gives the file a page of its own, on the disk.
func writePage(fd int) error {
	page := make([]byte, os.Getpagesize())
	n, err := unix.Pwrite(fd, page, 0)
	if err == nil && n < len(page) {
		err = unix.ENOSPC
	}
	if err != nil {
		return err
	}
	return unix.Fsync(fd)
}

// untestable says that a volume is full or read-only.
func untestable(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}

// nothingAssumed is what is known of a volume that could not be tested: every capture reads everything.
func nothingAssumed(err error) Assumptions {
	return Assumptions{
		Openat2: true, Full: !errors.Is(err, unix.EROFS),
		Notes: []string{"the volume could not be tested, so nothing is assumed and every capture reads everything: " + err.Error()},
	}
}

func probeWatch() (bool, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return false, err
	}
	dir{fd}.close()
	return true, nil
}

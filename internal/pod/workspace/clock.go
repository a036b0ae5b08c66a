// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "golang.org/x/sys/unix"

// moment is one moment as the two clocks show it that file systems take ctime from. A change after it bears at least the
// coarse time. A change before it bears less than the fine time; it may bear the coarse time or more, because the coarse
// clock stands still for some milliseconds, and because Linux since 6.13 takes the fine one where somebody has looked at
// the file since its last change.
type moment struct{ coarse, fine int64 }

func now() moment {
	// The coarse clock first: it may not be later.
	return moment{coarse: coarseClock(), fine: clock(unix.CLOCK_REALTIME)}
}

// coarseClock is the clock that file systems take ctime from: a later change bears at least this time.
func coarseClock() int64 { return clock(unix.CLOCK_REALTIME_COARSE) }

func clock(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		// Cannot fail on Linux. Zero makes every file racy, which is slow and safe.
		return 0
	}
	return ts.Nano()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied is a system call that the agent's processes may not make. PID 1 runs under the same uid, so the kernel permits all
// of these by itself.
type denied struct {
	call uintptr
	// when any of these holds; with none the call is denied whatever its arguments.
	when []argument
	why  string
}

// argument is a condition on one argument of a system call. Only its lower 32 bits count, as in the kernel: all of these
// arguments are of type int.
type argument struct {
	index uint32
	// mask selects the bits that are compared.
	mask uint32
	// not reverses the comparison.
	not   bool
	value uint32
}

// another is true when an argument names another process, or thread, than the caller. The threads of PID 1 have numbers
// that differ from its own, so every number but 0 counts, also the caller's own.
func another(index uint32) argument {
	return argument{index: index, mask: math.MaxUint32, not: true}
}

func equal(index, value uint32) argument {
	return argument{index: index, mask: math.MaxUint32, value: value}
}

// command is true for a command of ioctl(2), by type and number. Size and direction are left out: they differ between
// versions of a structure.
func command(kind byte, number uint32) argument {
	return argument{index: 1, mask: math.MaxUint16, value: uint32(kind)<<8 | number}
}

// ioprioWhoUser is IOPRIO_WHO_USER of linux/ioprio.h.
const ioprioWhoUser = 3

// filter lists what the agent's processes may not do, each call once. docs/security/agent-processes.md tells it to users.
func filter() []denied {
	return []denied{
		{unix.SYS_PRLIMIT64, []argument{another(0)}, "a runner that may open no file, or use no processor time, cannot see what runs"},
		{unix.SYS_SCHED_SETSCHEDULER, []argument{another(0)}, "a runner with an idle scheduler waits for the agent"},
		{unix.SYS_SCHED_SETPARAM, []argument{another(0)}, "the same"},
		{unix.SYS_SCHED_SETATTR, []argument{another(0)}, "the same"},
		{unix.SYS_SCHED_SETAFFINITY, []argument{another(0)}, "a runner that is bound to a busy processor waits for the agent"},
		{unix.SYS_SETPRIORITY, []argument{another(1), equal(0, unix.PRIO_USER)}, "a runner with a low priority waits for the agent; a user's priority is also the runner's"},
		{unix.SYS_IOPRIO_SET, []argument{another(1), equal(0, ioprioWhoUser)}, "the same for disks"},
		{unix.SYS_MIGRATE_PAGES, []argument{another(0)}, "it slows down the memory of the runner"},
		{unix.SYS_MOVE_PAGES, []argument{another(0)}, "the same"},
		{unix.SYS_KILL, []argument{equal(0, 1)}, "a runner that gets a signal to end takes its pod with it, as if the cluster had stopped it"},
		{unix.SYS_TKILL, []argument{equal(0, 1)}, "the same"},
		{unix.SYS_TGKILL, []argument{equal(0, 1)}, "the same"},
		{unix.SYS_RT_SIGQUEUEINFO, nil, "the same, and a queued signal loses its sender when the queue is full; threads of PID 1 have numbers that no filter knows"},
		{unix.SYS_RT_TGSIGQUEUEINFO, []argument{equal(0, 1)}, "the same"},
		{unix.SYS_PIDFD_OPEN, []argument{equal(0, 1)}, "the same, by a handle"},
		{unix.SYS_PIDFD_SEND_SIGNAL, nil, "the same: the directory of a process in /proc is a handle, too"},
		{unix.SYS_FCNTL, []argument{equal(1, unix.F_SETSIG)}, "the same: the owner of a file is sent the signal that it is given, and PID 1 can be made its owner"},
		{unix.SYS_PROCESS_MADVISE, nil, "it drops pages of another process"},
		{unix.SYS_PROCESS_MRELEASE, nil, "the same"},
		{unix.SYS_KCMP, nil, "it compares kernel objects of other processes"},
		{unix.SYS_PIDFD_GETFD, nil, "it takes descriptors of other processes, such as the connection with the watchdog"},
		{unix.SYS_IO_URING_SETUP, nil, "its writes into pinned memory change a file on memory without a change of its times"},
		{unix.SYS_IO_URING_ENTER, nil, "the same"},
		{unix.SYS_IO_URING_REGISTER, nil, "the same"},
		{unix.SYS_IOCTL, []argument{
			command('f', 15), command('f', 17), // EXT4_IOC_MOVE_EXT, EXT4_IOC_SWAP_BOOT
			command('X', 109), command('X', 129), command('X', 131), // XFS_IOC_SWAPEXT, _EXCHANGE_RANGE, _COMMIT_RANGE
			command(0xf5, 9), // F2FS_IOC_MOVE_RANGE
		}, "they exchange the contents of two files without a change of their times"},
		{unix.SYS_IOCTL, []argument{
			command('f', 2), command('X', 32), // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
			command('f', 19), command('f', 23), command('f', 24), // FS_IOC_SET_ENCRYPTION_POLICY, _ADD_ and _REMOVE_ENCRYPTION_KEY
			command('f', 133),                   // FS_IOC_ENABLE_VERITY
			command(0x94, 1), command(0x94, 23), // BTRFS_IOC_SNAP_CREATE, _SNAP_CREATE_V2
			command(0x94, 14), command(0x94, 24), command(0x94, 26), // BTRFS_IOC_SUBVOL_CREATE, _CREATE_V2, _SETFLAGS
		}, "they make files and folders that the watchdog cannot write or remove when it restores a workspace"},
	}
}

// Offsets in struct seccomp_data of linux/seccomp.h.
const (
	offsetCall      = 0
	offsetArch      = 4
	offsetArguments = 16
	sizeWord        = 4
	sizeArgument    = 8
)

// foreignCalls is the bit by which a program of the x32 ABI marks its calls on amd64. No other architecture has calls with
// such numbers.
const foreignCalls = 0x40000000

// instructions is the filter as the kernel takes it: one call after the other, and what none of them denies is permitted.
func instructions() []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: sizeWord},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		// A program for another architecture gives the calls other numbers. It ends: with an error at each of its calls it
		// could not even say why.
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetCall, Size: sizeWord},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreignCalls, SkipTrue: 1},
		refuse,
	}
	for _, d := range filter() {
		p = append(p, d.instructions()...)
	}
	return append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

var refuse = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}

func (d denied) instructions() []bpf.Instruction {
	conditions := []bpf.Instruction{refuse}
	if len(d.when) > 0 {
		conditions = nil
	}
	for _, a := range d.when {
		differs := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: a.value, SkipTrue: 1}
		if a.not {
			differs.Cond = bpf.JumpEqual
		}
		conditions = append(conditions,
			bpf.LoadAbsolute{Off: offsetArguments + a.index*sizeArgument, Size: sizeWord}, // its lower half: all are little-endian
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: a.mask}, differs, refuse)
	}
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetCall, Size: sizeWord},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(d.call), SkipTrue: uint8(len(conditions))},
	}, conditions...)
}

// confine installs the filter on the calling thread, for whatever it executes and starts from now on. The thread must be
// locked to its goroutine.
func confine() error {
	raw, err := bpf.Assemble(instructions())
	if err != nil {
		return fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// Without SPEC_ALLOW older kernels slow the whole program down, to keep it from guessing secrets that it does not have.
	// gVisor knows no such flag.
	err = seccomp(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter)
	if errors.Is(err, unix.EINVAL) {
		err = seccomp(0, &filter)
	}
	if err != nil {
		return fmt.Errorf("the kernel refuses the filter of system calls, without which no agent is started: seccomp: %w", err)
	}
	return nil
}

func seccomp(flags uintptr, filter *unix.SockFprog) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(filter)))
	if errno != 0 {
		return errno
	}
	return nil
}

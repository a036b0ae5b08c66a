// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// callsEnv makes the test binary a program that makes system calls and writes which of them were not permitted to the file
// that it names.
const callsEnv = "TIDEWAITER_TEST_CALLS"

// systemCall is one that an agent may make.
type systemCall struct {
	name string
	// denied is what the filter makes of it.
	denied bool
	number uintptr
	args   [6]uintptr
}

// lowWord is an argument of which the kernel takes the lower half only.
const lowWord = 1 << 32

// pointer is an address for the kernel; the test's calls keep nothing behind.
func pointer[T any](value *T) uintptr { return uintptr(unsafe.Pointer(value)) }

func systemCalls() []systemCall {
	limit, mask, param, attr := new(unix.Rlimit), new(unix.CPUSet), new(int32), new(unix.SchedAttr)
	_ = unix.SchedGetaffinity(0, mask)
	*limit = unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}
	_ = unix.Getrlimit(unix.RLIMIT_CORE, limit)
	attr.Size = unix.SizeofSchedAttr
	bytes, words := unsafe.Sizeof(*mask), new([64]uint64)
	info := &[32]int32{2: -1} // struct siginfo with SI_QUEUE
	tty := func(command uintptr) [6]uintptr { return [6]uintptr{0, command, pointer(words)} }
	return []systemCall{
		{"a limit of PID 1", true, unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_CORE, pointer(limit), 0}},
		{"to read a limit of PID 1", true, unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_CORE, 0, pointer(limit)}},
		{"a limit of its own", false, unix.SYS_PRLIMIT64, [6]uintptr{0, unix.RLIMIT_CORE, pointer(limit), 0}},
		{"a limit of its own, setrlimit", false, unix.SYS_SETRLIMIT, [6]uintptr{unix.RLIMIT_CORE, pointer(limit)}},
		{"the scheduler of PID 1", true, unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{1, 0, pointer(param)}},
		{"its own scheduler", false, unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{0, 0, pointer(param)}},
		{"a scheduling parameter of PID 1", true, unix.SYS_SCHED_SETPARAM, [6]uintptr{1, pointer(param)}},
		{"its own scheduling parameter", false, unix.SYS_SCHED_SETPARAM, [6]uintptr{0, pointer(param)}},
		{"a scheduling attribute of PID 1", true, unix.SYS_SCHED_SETATTR, [6]uintptr{1, pointer(attr), 0}},
		{"its own scheduling attribute", false, unix.SYS_SCHED_SETATTR, [6]uintptr{0, pointer(attr), 0}},
		{"the affinity of PID 1", true, unix.SYS_SCHED_SETAFFINITY, [6]uintptr{1, bytes, pointer(mask)}},
		{"its own affinity", false, unix.SYS_SCHED_SETAFFINITY, [6]uintptr{0, bytes, pointer(mask)}},
		{"to read the affinity of PID 1", false, unix.SYS_SCHED_GETAFFINITY, [6]uintptr{1, bytes, pointer(mask)}},
		{"the priority of PID 1", true, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PROCESS, 1, 19}},
		{"the priority of the group of PID 1", true, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PGRP, 1, 19}},
		{"the priority of the user", true, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER, 0, 19}},
		{"the priority of the user, by number", true, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER | lowWord, 0, 19}},
		{"its own priority", false, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PROCESS, 0, 19}},
		{"the priority of its own group", false, unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PGRP, 0, 19}},
		{"the IO priority of PID 1", true, unix.SYS_IOPRIO_SET, [6]uintptr{1, 1, 3 << 13}},
		{"the IO priority of the user", true, unix.SYS_IOPRIO_SET, [6]uintptr{3, 0, 3 << 13}},
		{"its own IO priority", false, unix.SYS_IOPRIO_SET, [6]uintptr{1, 0, 2<<13 | 4}},
		{"the pages of PID 1", true, unix.SYS_MIGRATE_PAGES, [6]uintptr{1, 1, pointer(words), pointer(words)}},
		{"pages of PID 1", true, unix.SYS_MOVE_PAGES, [6]uintptr{1}},
		{"advice for another process", true, unix.SYS_PROCESS_MADVISE, [6]uintptr{0, 0, 0, 4}},
		{"the memory of another process", true, unix.SYS_PROCESS_MRELEASE, [6]uintptr{}},
		{"to compare processes", true, unix.SYS_KCMP, [6]uintptr{1, 1}},
		{"a descriptor of another process", true, unix.SYS_PIDFD_GETFD, [6]uintptr{}},
		{"io_uring", true, unix.SYS_IO_URING_SETUP, [6]uintptr{1, pointer(words)}},
		{"io_uring, enter", true, unix.SYS_IO_URING_ENTER, [6]uintptr{}},
		{"io_uring, register", true, unix.SYS_IO_URING_REGISTER, [6]uintptr{}},
		{"a signal to PID 1", true, unix.SYS_KILL, [6]uintptr{1, 0}},
		{"a signal to all but PID 1", false, unix.SYS_KILL, [6]uintptr{lowWord | 0xffffffff, 0}},
		{"a signal to itself", false, unix.SYS_KILL, [6]uintptr{uintptr(os.Getpid()), 0}},
		{"a signal to its own group", false, unix.SYS_KILL, [6]uintptr{0, 0}},
		{"a signal to the first thread of PID 1", true, unix.SYS_TKILL, [6]uintptr{1, 0}},
		{"a signal to the first thread of PID 1, tgkill", true, unix.SYS_TGKILL, [6]uintptr{1, 1, 0}},
		{"a signal to its own thread", false, unix.SYS_TGKILL, [6]uintptr{uintptr(os.Getpid()), uintptr(os.Getpid()), 0}},
		{"a signal by a handle", true, unix.SYS_PIDFD_SEND_SIGNAL, [6]uintptr{^uintptr(0), 0}},
		{"the signal of a file", true, unix.SYS_FCNTL, [6]uintptr{0, unix.F_SETSIG, uintptr(unix.SIGTERM)}},
		{"the owner of a file", false, unix.SYS_FCNTL, [6]uintptr{0, unix.F_SETOWN, 0}},
		{"a signal with a value to itself", true, unix.SYS_RT_SIGQUEUEINFO, [6]uintptr{uintptr(os.Getpid()), 0, pointer(info)}},
		{"a signal with a value to PID 1", true, unix.SYS_RT_SIGQUEUEINFO, [6]uintptr{1, 0, pointer(info)}},
		{"a signal with a value to a thread of PID 1", true, unix.SYS_RT_TGSIGQUEUEINFO, [6]uintptr{1, 1, 0, pointer(info)}},
		{"a handle of PID 1", true, unix.SYS_PIDFD_OPEN, [6]uintptr{1, 0}},
		{"a handle of itself", false, unix.SYS_PIDFD_OPEN, [6]uintptr{uintptr(os.Getpid()), 0}},
		{"EXT4_IOC_MOVE_EXT", true, unix.SYS_IOCTL, tty(0xc028660f)},
		{"EXT4_IOC_MOVE_EXT with more bits", true, unix.SYS_IOCTL, tty(0xc028660f | lowWord)},
		{"EXT4_IOC_MOVE_EXT with the sign", true, unix.SYS_IOCTL, tty(0xffffffffc028660f)},
		{"EXT4_IOC_SWAP_BOOT", true, unix.SYS_IOCTL, tty(0x6611)},
		{"XFS_IOC_SWAPEXT", true, unix.SYS_IOCTL, tty(0xc0c0586d)},
		{"XFS_IOC_EXCHANGE_RANGE", true, unix.SYS_IOCTL, tty(0x40285881)},
		{"FS_IOC_SETFLAGS", true, unix.SYS_IOCTL, tty(0x40086602)},
		{"FS_IOC_GETFLAGS", false, unix.SYS_IOCTL, tty(0x80086601)},
		{"FS_IOC_FSSETXATTR", true, unix.SYS_IOCTL, tty(0x401c5820)},
		{"FS_IOC_SET_ENCRYPTION_POLICY", true, unix.SYS_IOCTL, tty(0x800c6613)},
		{"FS_IOC_ENABLE_VERITY", true, unix.SYS_IOCTL, tty(0x40806685)},
		{"BTRFS_IOC_SUBVOL_SETFLAGS", true, unix.SYS_IOCTL, tty(0x4008941a)},
		{"BTRFS_IOC_SNAP_CREATE_V2", true, unix.SYS_IOCTL, tty(0x50009417)},
		{"FICLONE", false, unix.SYS_IOCTL, [6]uintptr{0, unix.FICLONE, ^uintptr(0)}},
		{"TCGETS", false, unix.SYS_IOCTL, tty(unix.TCGETS)},
		{"getpid", false, unix.SYS_GETPID, [6]uintptr{}},
	}
}

// makeCalls makes each call and says whether it was permitted, whatever else came of it.
func makeCalls(path string) error {
	var report strings.Builder
	for _, call := range systemCalls() {
		_, _, errno := unix.RawSyscall6(call.number, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5])
		fmt.Fprintf(&report, "%s: denied=%v\n", call.name, errno == unix.EPERM)
	}
	return os.WriteFile(path, []byte(report.String()), 0o644)
}

func TestFilter(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		dir := container.TempDir(t)
		if err := container.BecomeUser(); err != nil {
			t.Fatal(err)
		}
		want := func(name string, filtered bool) {
			t.Helper()
			var expected strings.Builder
			for _, call := range systemCalls() {
				fmt.Fprintf(&expected, "%s: denied=%v\n", call.name, filtered && call.denied)
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected.String(), string(text)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
		unconfined(t, callsEnv+"="+filepath.Join(dir, "control"))
		want("control", false) // or the calls would prove nothing
		c := newTestContainer(t)
		if got := await(t, start(t, c, []string{callsEnv + "=" + filepath.Join(dir, "filtered")}, os.Args[0])); got.Code != 0 {
			t.Fatalf("exit = %+v", got)
		}
		want("filtered", true)
		// A program of the agent's program is held to the same.
		if got := await(t, start(t, c, []string{callsEnv + "=" + filepath.Join(dir, "grandchild")}, "/bin/sh", "-c", os.Args[0]+"; exit $?")); got.Code != 0 {
			t.Fatalf("exit = %+v", got)
		}
		want("grandchild", true)
	})
}

// fault of a launch that the kernel does not let confine itself.
func TestNoFilterNoStart(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		runtime.LockOSThread() // children of this thread alone inherit what is forbidden to it
		forbid(t, unix.SYS_SECCOMP)
		_, err := c.Start(Command{Argv: []string{"/bin/sh", "-c", "exit 0"}, Env: os.Environ(), Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), "the kernel refuses the filter of system calls") {
			t.Errorf("start: %v, want that the kernel refuses", err)
		}
		if left := pids(t); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// forbid denies one system call to this thread and to its children, as a container runtime may.
func forbid(t *testing.T, call uint32) {
	t.Helper()
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offsetCall},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := seccomp(0, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}); err != nil {
		t.Fatal(err)
	}
}

// TestFilterOfForeignPrograms runs the filter as the kernel does on calls that no program of this machine can make.
func TestFilterOfForeignPrograms(t *testing.T) {
	vm, err := bpf.NewVM(instructions())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arch, call uint32
		args       [6]uint64
		want       uint32
	}{
		"native":                    {arch: nativeArch, call: unix.SYS_GETPID, want: unix.SECCOMP_RET_ALLOW},
		"native, denied":            {arch: nativeArch, call: unix.SYS_KCMP, want: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		"native, another process":   {arch: nativeArch, call: unix.SYS_PRLIMIT64, args: [6]uint64{7}, want: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		"native, itself, and noise": {arch: nativeArch, call: unix.SYS_PRLIMIT64, args: [6]uint64{lowWord}, want: unix.SECCOMP_RET_ALLOW},
		"i386":                      {arch: unix.AUDIT_ARCH_I386, call: 20, want: unix.SECCOMP_RET_KILL_PROCESS},
		"arm":                       {arch: unix.AUDIT_ARCH_ARM, call: 20, want: unix.SECCOMP_RET_KILL_PROCESS},
		"x32":                       {arch: nativeArch, call: foreignCalls | unix.SYS_PRLIMIT64, want: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	} {
		// The machine of the library reads big-endian words, and the lower half of an argument comes first here.
		data := make([]byte, offsetArguments+len(test.args)*sizeArgument)
		binary.BigEndian.PutUint32(data[offsetCall:], test.call)
		binary.BigEndian.PutUint32(data[offsetArch:], test.arch)
		for i, arg := range test.args {
			binary.BigEndian.PutUint32(data[offsetArguments+i*sizeArgument:], uint32(arg))
			binary.BigEndian.PutUint32(data[offsetArguments+i*sizeArgument+sizeWord:], uint32(arg>>32))
		}
		if got, err := vm.Run(data); err != nil || uint32(got) != test.want {
			t.Errorf("%s: verdict %#x, %v, want %#x", name, got, err, test.want)
		}
	}
}

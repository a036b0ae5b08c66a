// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addresses gives tests addresses that stay theirs while nothing listens there, such as the address of a server that a test kills
// and starts again. A port that was free a moment ago does not: the kernel gives it to the next listener or outgoing connection, of any
// process.
package addresses

import (
	"net/netip"
	"os"
	"sync/atomic"
)

// firstPort is below those that the kernel gives away by itself (32768 and up: ip_local_port_range of ip(7)) and above
// those of well-known services.
const firstPort = 20_000

var last atomic.Uint32

// Free is a TCP address of this machine's loopback interface that no other process of a test uses, and no other test of this one. The
// process's ID determines the host, and a counter the port.
func Free() string {
	// Linux gives an ID 22 bits (PID_MAX_LIMIT), so the second byte is between 64 and 127 and never 127.0.0.1's.
	pid := os.Getpid() & (1<<22 - 1)
	host := netip.AddrFrom4([4]byte{127, byte(64 + pid>>16), byte(pid >> 8), byte(pid)})
	return netip.AddrPortFrom(host, firstPort+uint16(last.Add(1))).String()
}

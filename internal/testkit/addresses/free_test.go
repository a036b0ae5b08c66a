// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"net"
	"net/netip"
	"testing"
)

// TestFree: each address is another one, can be listened on and reached, and is on no port that the kernel gives away.
func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		address := Free()
		if seen[address] {
			t.Fatalf("%s twice", address)
		}
		seen[address] = true
		if at := netip.MustParseAddrPort(address); !at.Addr().IsLoopback() || at.Port() >= 32768 {
			t.Fatalf("address %s", address)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
}

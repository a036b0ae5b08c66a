// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAddresses(t *testing.T) {
	never := []string{
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.0.1", "100.100.100.200", "168.63.129.16",
		"192.0.0.192", "192.0.2.1", "192.88.99.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "fe80::1", "febf::1", "fec0::1", "ff02::1", "fd00:ec2::254", "fd20:ce::254", "100::1", "2001:db8::1", "2001::1", "3fff::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
		"64:ff9b:1::7f00:1", "2002:7f00:1::1", "2002:a9fe:a9fe::1", "4000::1", "8000::1", "5f00::1",
	}
	inside := []string{
		"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255",
		"fc00::1", "fd12:3456::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1",
	}
	outside := []string{
		"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "172.15.255.255", "172.32.0.0", "192.167.255.255",
		"2606:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1",
	}
	check := func(list []string, grant Grant, want Reason) {
		for _, text := range list {
			address := netip.MustParseAddr(text)
			got, err := Addresses(Target{Host: "h", Port: 443}, grant, FieldGit, []netip.Addr{address})
			var refusal *Refusal
			switch {
			case want == "" && (err != nil || !slices.Equal(got, []netip.Addr{address.Unmap()})):
				t.Errorf("%s with %+v: %v, %v; want it allowed", text, grant, got, err)
			case want != "" && (!errors.As(err, &refusal) || refusal.Reason != want):
				t.Errorf("%s with %+v: %v, %v; want %s", text, grant, got, err, want)
			}
		}
	}
	for _, private := range []bool{false, true} {
		check(never, Grant{AllowPrivate: private}, ReasonForbiddenAddress)
		check(outside, Grant{AllowPrivate: private}, "")
	}
	check(inside, Grant{}, ReasonPrivateAddress)
	check(inside, Grant{AllowPrivate: true}, "")
}

func TestAddressesLeavesOutWhatMayNotBeDialled(t *testing.T) {
	resolved := []netip.Addr{
		netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:8.8.8.8"), {},
	}
	got, err := Addresses(Target{Host: "h", Port: 443}, Grant{}, FieldGit, resolved)
	want := []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("8.8.8.8")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// TestEmbeddedAddressesAreNoWayAround says that an IPv4 address is judged alike in each of its disguises.
func TestEmbeddedAddressesAreNoWayAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		four := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		plain := netip.AddrFrom4(four)
		disguises := []netip.Addr{netip.AddrFrom16(plain.As16())}
		for _, e := range embedding4 {
			bytes := e.prefix.Addr().As16()
			copy(bytes[e.at:], four[:])
			disguises = append(disguises, netip.AddrFrom16(bytes))
		}
		for _, disguise := range disguises {
			if got, want := classify(disguise), classify(plain); got != want {
				t.Fatalf("%s is class %d, %s is class %d", disguise, got, plain, want)
			}
		}
	})
}

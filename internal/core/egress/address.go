// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/netip"
)

// class of an address, from harmless to never.
type class int

const (
	public class = iota
	private
	forbidden
)

// block is a row of the IANA special-purpose address registries, or an address that a cloud gives a meaning.
type block struct {
	prefix string
	class  class
}

// blocks4 is searched from the top: particular rows come before the rows that contain them.
// https://www.iana.org/assignments/iana-ipv4-special-registry
var blocks4 = parse([]block{
	{"0.0.0.0/8", forbidden},          // this network; Linux connects 0.0.0.0 to itself
	{"100.100.100.200/32", forbidden}, // metadata of Alibaba Cloud
	{"168.63.129.16/32", forbidden},   // wire server of Azure
	{"10.0.0.0/8", private},
	{"100.64.0.0/10", private}, // shared address space; some clusters number their pods from it
	{"127.0.0.0/8", forbidden},
	{"169.254.0.0/16", forbidden}, // link-local, metadata of most clouds
	{"172.16.0.0/12", private},
	{"192.0.0.0/24", forbidden}, // IETF protocols, metadata of Oracle Cloud
	{"192.0.2.0/24", forbidden}, // documentation
	{"192.88.99.0/24", forbidden},
	{"192.168.0.0/16", private},
	{"198.18.0.0/15", private},     // benchmarks; some clusters number from it
	{"198.51.100.0/24", forbidden}, // documentation
	{"203.0.113.0/24", forbidden},  // documentation
	{"224.0.0.0/4", forbidden},     // multicast
	{"240.0.0.0/4", forbidden},     // reserved, broadcast
	{"0.0.0.0/0", public},
})

// blocks6 is the same for IPv6. Nothing outside of 2000::/3 is public.
// https://www.iana.org/assignments/iana-ipv6-special-registry
var blocks6 = parse([]block{
	{"fd00:ec2::/32", forbidden},    // metadata and other services of AWS
	{"fd20:ce::254/128", forbidden}, // metadata of Google Cloud
	{"fc00::/7", private},
	{"2001::/32", forbidden},     // Teredo: an IPv4 address in disguise
	{"2001:db8::/32", forbidden}, // documentation
	{"3fff::/20", forbidden},     // documentation
	{"2000::/3", public},
	{"::/0", forbidden}, // unspecified, loopback, link-local, site-local, multicast, discard
})

// embedding4 are the blocks whose addresses carry an IPv4 address, which is checked instead, and the byte at
// which it starts.
var embedding4 = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated, RFC 2765
}

type parsedBlock struct {
	prefix netip.Prefix
	class  class
}

func parse(blocks []block) []parsedBlock {
	parsed := make([]parsedBlock, 0, len(blocks))
	for _, b := range blocks {
		parsed = append(parsed, parsedBlock{netip.MustParsePrefix(b.prefix), b.class})
	}
	return parsed
}

func classify(address netip.Addr) class {
	address = address.Unmap()
	if !address.IsValid() || address.Zone() != "" {
		return forbidden
	}
	blocks := blocks4
	if address.Is6() {
		for _, e := range embedding4 {
			if e.prefix.Contains(address) {
				bytes := address.As16()
				return classify(netip.AddrFrom4([4]byte(bytes[e.at : e.at+4])))
			}
		}
		blocks = blocks6
	}
	for _, b := range blocks {
		if b.prefix.Contains(address) {
			return b.class
		}
	}
	return forbidden
}

// Addresses returns the resolved addresses that the proxy may dial, in the same sequence. It excludes loopback, link-local, metadata,
// multicast and reserved addresses, and private ones unless the grant allows them. The error is a Refusal if none is left.
func Addresses(target Target, grant Grant, field Field, resolved []netip.Addr) ([]netip.Addr, error) {
	var allowed []netip.Addr
	anyPrivate := false
	for _, address := range resolved {
		switch classify(address) {
		case public:
			allowed = append(allowed, address.Unmap())
		case private:
			anyPrivate = true
			if grant.AllowPrivate {
				allowed = append(allowed, address.Unmap())
			}
		case forbidden:
		}
	}
	switch {
	case len(allowed) > 0:
		return allowed, nil
	case anyPrivate:
		return nil, &Refusal{Reason: ReasonPrivateAddress, Message: fmt.Sprintf(
			"%s has private addresses only: set allowPrivate of its entry in %s of the SupervisorPolicy if it is a server of yours", target, field)}
	default:
		return nil, &Refusal{Reason: ReasonForbiddenAddress, Message: fmt.Sprintf(
			"%s has only addresses that the gateway never connects to (loopback, link-local, metadata or reserved)", target)}
	}
}

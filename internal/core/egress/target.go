// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress decides which hosts agents reach through the gateway. It decides by name and port, by the addresses of the name, and by
// the name in the TLS handshake. It sees only values; internal/gateway/egressproxy resolves, dials and copies.
package egress

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// maxName bounds a host name in bytes (RFC 1035, without the final dot).
	maxName = 253
	// maxLabel bounds one label of it.
	maxLabel = 63
	// maxAuthority is a host name in its longest form, ":" and a port.
	maxAuthority = maxName + len(":65535")
)

// Target is the host and port of a requested connection.
type Target struct {
	// Host is a lower-case DNS name, or an IP address in its canonical form.
	Host string
	// Address is set when Host is an IP address.
	Address netip.Addr
	// Port is 1 to 65535.
	Port int
}

// String returns host:port.
func (t Target) String() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// ParseTarget reads the request target of CONNECT. It takes one spelling of each host: names of letters, digits and
// hyphens, dotted IPv4 and bracketed IPv6 addresses. It accepts no user, no final dot, and none of the other forms of an IPv4
// address (127.1, 0x7f000001, 2130706433), which resolvers read in their own ways.
func ParseTarget(authority string) (Target, error) {
	if len(authority) > maxAuthority {
		return Target{}, &Refusal{Reason: ReasonBadTarget, Message: "the target is longer than any host name and port"}
	}
	bad := func(what string) (Target, error) {
		return Target{}, &Refusal{Reason: ReasonBadTarget, Message: strconv.QuoteToASCII(authority) + " " + what}
	}
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		return bad("is not host:port")
	}
	number, ok := parsePort(port)
	if !ok {
		return bad("has no port from 1 to 65535")
	}
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || address.Is4() != !strings.HasPrefix(authority, "[") {
			return bad("is not an IP address and port")
		}
		return Target{Host: address.String(), Address: address, Port: number}, nil
	}
	host = lower(host)
	if !isName(host) || strings.HasPrefix(authority, "[") {
		return bad("is not a host name and port")
	}
	return Target{Host: host, Port: number}, nil
}

func parsePort(text string) (int, bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	return int(number), err == nil && number > 0 && text[0] != '0'
}

// isName takes lower-case DNS names whose last label cannot be read as a number.
func isName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return false
		}
		last = label
	}
	// The WHATWG URL standard's test: a host that ends in a number is an IPv4 address.
	return strings.Trim(last, "0123456789") != "" && !isHexNumber(last)
}

func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func isHexNumber(label string) bool {
	digits, found := strings.CutPrefix(label, "0x")
	return found && strings.Trim(digits, "0123456789abcdef") == ""
}

// lower changes ASCII letters only: a host name has no others.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

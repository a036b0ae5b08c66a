// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// MaxSecretHosts bounds the list of hosts in a Secret, in bytes; a name has at most 253.
	MaxSecretHosts = 16 << 10
	// httpsPort is the port of a host that names none.
	httpsPort = "443"
)

// SecretHosts reads the list of the only hosts that a Secret may be sent to: names, names with a port, or *.example.com for
// every name below it, separated by spaces, commas or line breaks. The error names an unreadable part of the list; an empty list has no host.
func SecretHosts(text string) ([]policy.Host, error) {
	if len(text) > MaxSecretHosts {
		return nil, fmt.Errorf("the list of hosts has %d bytes, and there may be %d", len(text), MaxSecretHosts)
	}
	hosts := []policy.Host{}
	for entry := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }) {
		name, wildcard := strings.CutPrefix(entry, "*.")
		target, err := hostTarget(name)
		if err != nil || wildcard && target.Address.IsValid() {
			return nil, fmt.Errorf("%q is not a host, like git.example.com, git.example.com:8443 or *.example.com", clipped(entry))
		}
		if wildcard {
			target.Host = "*." + target.Host
		}
		hosts = append(hosts, policy.Host{Name: target.Host, Port: target.Port})
	}
	return hosts, nil
}

// clipped keeps a message short.
func clipped(entry string) string { return entry[:min(len(entry), 64)] }

// MaySend reports whether a Secret with such a list may be sent to the host of a URL, and names that host and its port. Only https is
// allowed: without it the identity of the server is unknown.
func MaySend(hosts []policy.Host, repository string) (host string, may bool) {
	u, err := url.Parse(repository)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return "an address that is not https://host/path", false
	}
	target, err := hostTarget(u.Host)
	if err != nil {
		return "an address without a host", false
	}
	return target.String(), slices.ContainsFunc(hosts, func(h policy.Host) bool { return h.Port == target.Port && matches(h.Name, target) })
}

// hostTarget reads a host with or without a port.
func hostTarget(text string) (Target, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Is6() {
		return ParseTarget(net.JoinHostPort(text, httpsPort))
	}
	if _, _, err := net.SplitHostPort(text); err != nil {
		text += ":" + httpsPort
	}
	return ParseTarget(text)
}

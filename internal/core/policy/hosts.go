// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// defaultPort of hosts without one: that of TLS.
const defaultPort = 443

// normalHosts sorts a list of hosts, each once. Of a host that is listed twice, private addresses are allowed only if
// both say so.
func normalHosts(list []Host) []Host {
	normal := make([]Host, 0, len(list))
	for _, h := range list {
		h.Name = strings.ToLower(h.Name)
		if h.Port == 0 {
			h.Port = defaultPort
		}
		normal = append(normal, h)
	}
	slices.SortFunc(normal, func(a, b Host) int {
		if c := compareHosts(a, b); c != 0 || a.AllowPrivate == b.AllowPrivate {
			return c
		}
		if a.AllowPrivate {
			return 1
		}
		return -1
	})
	return slices.CompactFunc(normal, func(a, b Host) bool { return compareHosts(a, b) == 0 })
}

// commonHosts are the hosts that two normal lists have both.
func commonHosts(a, b []Host) []Host {
	common := []Host{}
	for _, h := range a {
		if i, ok := slices.BinarySearchFunc(b, h, compareHosts); ok {
			h.AllowPrivate = h.AllowPrivate && b[i].AllowPrivate
			common = append(common, h)
		}
	}
	return common
}

func compareHosts(a, b Host) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
}

func validHosts(name string, list []Host) error {
	var errs []error
	for _, h := range list {
		if h.Name == "" || h.Port < 0 || h.Port > 65535 {
			errs = append(errs, fmt.Errorf("%s: host %q with port %d: a name and a port from 1 to 65535 are needed", name, h.Name, h.Port))
		}
	}
	return errors.Join(errs...)
}

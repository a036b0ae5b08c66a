// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
)

// Link is the network link between machine and node.
type Link struct {
	Host, Node  string // names of its two ends
	HostAddress string // the machine's address, with prefix length
	Gateway     string // the node's address
	Routes      []string
}

// Connect makes the link to the network namespace of a process, and the routes to the networks behind it.
func (l Link) Connect(pid int) error {
	if err := l.check(); err != nil {
		return err
	}
	commands := [][]string{
		{"link", "add", l.Host, "type", "veth", "peer", "name", l.Node, "netns", strconv.Itoa(pid)},
		{"address", "add", l.HostAddress, "dev", l.Host},
		{"link", "set", l.Host, "up"},
	}
	for _, route := range l.Routes {
		commands = append(commands, []string{"route", "add", route, "via", l.Gateway, "dev", l.Host})
	}
	for _, arguments := range commands {
		if output, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

// Disconnect removes the link and with it the routes. The node's end would follow the node's namespace anyway, but
// only some time later.
func (l Link) Disconnect() error {
	if _, err := net.InterfaceByName(l.Host); err != nil {
		return nil // no such link
	}
	output, err := exec.Command("ip", "link", "delete", l.Host).CombinedOutput()
	if err != nil && !strings.Contains(string(output), "Cannot find device") {
		return fmt.Errorf("ip link delete %s: %w: %s", l.Host, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// check refuses to take addresses away from a network that the machine is in already.
func (l Link) check() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("addresses of the machine: %w", err)
	}
	var used []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			used = append(used, prefix.Masked())
		}
	}
	return overlaps(append([]string{l.HostAddress}, l.Routes...), used)
}

func overlaps(wanted []string, used []netip.Prefix) error {
	var errs []error
	for _, want := range wanted {
		prefix, err := netip.ParsePrefix(want)
		if err != nil {
			return fmt.Errorf("network %q: %w", want, err)
		}
		for _, u := range used {
			if u.Overlaps(prefix) {
				errs = append(errs, fmt.Errorf("the cluster's network %s overlaps with %s, which this machine is in: another local cluster runs, or this machine cannot run one", prefix.Masked(), u))
			}
		}
	}
	return errors.Join(errs...)
}

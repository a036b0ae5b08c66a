// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// queueNumber is the netfilter queue of the packets to judge, the number that kube-network-policies uses too.
const queueNumber = 100

// installRules puts the first packet of each connection from or to a pod into the queue, after Services have been
// resolved to their endpoints and before any source address is rewritten. Without `--queue-bypass` the kernel drops
// what nobody judges. What the node itself sends (probes, the API server's calls) is not subject to policies.
func installRules(ctx context.Context, pods netip.Prefix) error {
	command := exec.CommandContext(ctx, "iptables-restore", "--noflush", "--wait", "5")
	command.Stdin = strings.NewReader(ruleset(pods))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("iptables-restore: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// ruleset is the input of iptables-restore. The named chains are the node's own (it has a network namespace of its
// own), so flushing them makes a restart idempotent.
func ruleset(pods netip.Prefix) string {
	return fmt.Sprintf(`*mangle
:INPUT ACCEPT
:POSTROUTING ACCEPT
-F INPUT
-F POSTROUTING
-A INPUT ! -i lo -s %[1]s -m conntrack --ctstate NEW -j NFQUEUE --queue-num %[2]d
-A POSTROUTING -m addrtype --src-type LOCAL -j RETURN
-A POSTROUTING -s %[1]s -m conntrack --ctstate NEW -j NFQUEUE --queue-num %[2]d
-A POSTROUTING -d %[1]s -m conntrack --ctstate NEW -j NFQUEUE --queue-num %[2]d
COMMIT
`, pods, queueNumber)
}

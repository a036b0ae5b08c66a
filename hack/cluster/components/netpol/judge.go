// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/florianl/go-nfqueue/v2"
	"github.com/mdlayher/netlink"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/network"
)

const (
	// A pod may send before its status names its address. Its packets wait this long for that, then they are dropped
	// (and sent again by TCP); accepting them would give every pod a moment without policies.
	unknownPodPatience = 5 * time.Second
	unknownPodInterval = 20 * time.Millisecond

	// Only headers are looked at.
	packetBytes = 128
	queueLength = 4096
)

// evaluator is what the gate needs of the policy engine.
type evaluator interface {
	EvaluatePacket(ctx context.Context, packet *network.Packet) (bool, error)
}

// gate decides about one packet.
type gate struct {
	engine evaluator
	known  func(netip.Addr) bool
	pods   netip.Prefix
	// denials limits how often one is logged: a pod could fill the disk with them.
	denials rate.Sometimes
}

// allows judges the packet, waiting for its pods to become known. Whatever cannot be judged is not allowed.
func (g *gate) allows(ctx context.Context, payload []byte) bool {
	packet, err := parse(payload)
	if err != nil {
		klog.ErrorS(err, "Dropped a packet that cannot be read")
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, unknownPodPatience)
	defer cancel()
	if !g.awaitKnown(ctx, packet.SrcIP) || !g.awaitKnown(ctx, packet.DstIP) {
		klog.InfoS("Dropped a packet of an unknown pod", "source", packet.SrcIP, "destination", packet.DstIP)
		return false
	}
	allowed, err := g.engine.EvaluatePacket(ctx, &packet)
	if err != nil {
		klog.ErrorS(err, "Dropped a packet that could not be judged")
		return false
	}
	if !allowed {
		g.denials.Do(func() {
			klog.InfoS("Denied", "source", packet.SrcIP, "destination", packet.DstIP, "port", packet.DstPort, "protocol", packet.Proto)
		})
	}
	return allowed
}

// parse reads the headers. It exists because ParsePacket indexes beyond the end of a packet that is cut off, and one
// pod must not be able to end the judge of all.
func parse(payload []byte) (packet network.Packet, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("cut off: %v", fault)
		}
	}()
	return network.ParsePacket(payload)
}

// awaitKnown reports whether the address is no pod's, or a pod's that is known before ctx ends.
func (g *gate) awaitKnown(ctx context.Context, ip net.IP) bool {
	address, ok := netip.AddrFromSlice(ip)
	if !ok {
		return false
	}
	address = address.Unmap()
	if !g.pods.Contains(address) {
		return true
	}
	for !g.known(address) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(unknownPodInterval):
		}
	}
	return true
}

// judge answers the queue until ctx ends. It calls ready once packets are being judged.
func judge(ctx context.Context, g *gate, ready func() error) error {
	queue, err := nfqueue.Open(&nfqueue.Config{
		NfQueue:      queueNumber,
		Flags:        nfqueue.NfQaCfgFlagGSO, // headers are enough, so the kernel need not split large packets for us
		MaxPacketLen: packetBytes,
		MaxQueueLen:  queueLength,
		Copymode:     nfqueue.NfQnlCopyPacket,
		WriteTimeout: 100 * time.Millisecond,
	})
	if err != nil {
		return fmt.Errorf("netfilter queue: %w", err)
	}
	defer queue.Close() //nolint:errcheck // the process ends with it

	// Each packet has a goroutine of its own, so that one that waits for its pod does not hold up the others.
	answer := func(a nfqueue.Attribute) int {
		go func() {
			verdict := nfqueue.NfDrop
			if a.Payload != nil && g.allows(ctx, *a.Payload) {
				verdict = nfqueue.NfAccept
			}
			if err := queue.SetVerdict(*a.PacketID, verdict); err != nil {
				klog.ErrorS(err, "Verdict not set")
			}
		}()
		return 0
	}
	if err := queue.RegisterWithErrorFunc(ctx, answer, onReadError); err != nil {
		return fmt.Errorf("netfilter queue: %w", err)
	}
	if err := ready(); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	<-ctx.Done()
	return ctx.Err()
}

// onReadError keeps reading: a lost packet is a dropped packet, which its sender repeats.
func onReadError(err error) int {
	var operation *netlink.OpError
	if !errors.As(err, &operation) || !(operation.Timeout() || operation.Temporary()) {
		klog.ErrorS(err, "Read from the netfilter queue")
	}
	return 0
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netpol enforces NetworkPolicy on the node. netfilter queues the first packet of each connection from or to a pod, and the engine
// of kube-network-policies decides about it. That project's own data plane needs nftables' queue expression, which not every kernel has;
// iptables' NFQUEUE target does the same here.
package netpol

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

// denialInterval is how often at most a denied packet is logged.
const denialInterval = 100 * time.Millisecond

// options are the program's flags.
type options struct {
	kubeconfig string
	node       string
	pods       string // CIDR that all pods' addresses are of
	ready      string // file that is created once packets are being judged
}

// Main runs the program until it is signalled, and returns its exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	var o options
	flags := flag.NewFlagSet("netpol", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&o.node, "node", "", "name of this node")
	flags.StringVar(&o.pods, "pod-cidr", "", "addresses of the pods")
	flags.StringVar(&o.ready, "ready-file", "", "file to create once policies are enforced")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		klog.ErrorS(err, "Network policies are not enforced")
		return 1
	}
	return 0
}

func run(ctx context.Context, o options) error {
	pods, err := netip.ParsePrefix(o.pods)
	if err != nil {
		return fmt.Errorf("--pod-cidr: %w", err)
	}
	// The rules come first: until someone reads the queue, no pod gets a new connection at all.
	if err := installRules(ctx, pods); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	engine, known := newEngine(ctx, client, o.node)
	return judge(ctx, &gate{engine: engine, known: known, pods: pods, denials: rate.Sometimes{First: 10, Interval: denialInterval}}, func() error {
		return os.WriteFile(o.ready, nil, 0o600)
	})
}

// newEngine returns the policy engine, once it has seen every pod, namespace and policy, and a function that says
// whether the engine knows which pod has an address.
func newEngine(ctx context.Context, client kubernetes.Interface, node string) (*networkpolicy.PolicyEngine, func(netip.Addr) bool) {
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces := factory.Core().V1().Namespaces()
	pods := factory.Core().V1().Pods()
	policies := factory.Networking().V1().NetworkPolicies()

	resolver := newResolver(pods.Informer())
	provider := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{resolver})
	standard := networkpolicy.NewStandardNetworkPolicy(node, namespaces, pods, policies)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	known := func(address netip.Addr) bool {
		_, ok := resolver.LookupPod(address.String())
		return ok
	}
	return networkpolicy.NewPolicyEngine(provider, []api.PolicyEvaluator{standard}), known
}

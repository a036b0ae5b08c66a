// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube is every Kubernetes program of the local cluster in one binary, chosen by the name of its call (a symbolic link). It has a
// third of the size of separate programs, and one link step instead of nine.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and a machine may have no database of them

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins that a kubeconfig may name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of every daemon
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/tidewaiter/tidewaiter/hack/cluster/components/netpol"
	"github.com/tidewaiter/tidewaiter/hack/cluster/components/volumes"
)

// program runs one of the programs with os.Args and returns its exit code.
type program func() int

// programs are the names that this binary answers to.
func programs() map[string]program {
	return map[string]program{
		"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(controllers.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
		"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
		"kubectl":                 runKubectl,
		"netpol":                  func() int { return netpol.Main(os.Args[1:]) },
		"volumes":                 func() int { return volumes.Main(os.Args[1:]) },
	}
}

func main() {
	all := programs()
	name := filepath.Base(os.Args[0])
	run, ok := all[name]
	if !ok && len(os.Args) > 1 {
		// Also as `kube NAME ARGUMENTS…`, for a person who looks around.
		run, ok = all[os.Args[1]]
		os.Args = os.Args[1:]
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: call it by one of these names: %s\n", strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func runKubectl() int {
	// A bad level is reported by kubectl's own parsing.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog is the process next to the agent: it prepares the workspace, supervises the agent, takes checkpoints, delivers what they
// promoted, and reports. Packages of core decide; this package carries out the effects, and journals each before it happens.
package watchdog

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

const (
	// maxPacks is where git itself begins to put packs together (gc.autoPackLimit): each look for an object may go through
	// all of them.
	maxPacks = 50
	// pruneAbove is a size that is worth a minute of a new attempt, in bytes.
	pruneAbove = 256 << 20
)

// Options of a watchdog.
type Options struct {
	// Namespace, Feature and Attempt that the pod is for; everything else comes with the orders.
	Namespace string
	Feature   string
	Attempt   int64
	// Intake as a URL, and the name that its certificate has.
	Intake     string
	IntakeName string
	// Gateway as a URL, and the name in its certificate if that is not the host of the URL. Git goes through its proxy; without a
	// URL Git goes straight to the server.
	Gateway     string
	GatewayName string
	// Ledger is the URL that takes what checkpoints have changed: that of the gateway, but in tests. Without a URL nothing is handed
	// over.
	Ledger string
	// Models, Tools and Proxy are the loopback addresses that these are served to the agent at.
	Models string
	Tools  string
	Proxy  string
	// Window is the context window of the agent's model in tokens; 0 if it is unknown.
	Window int64
	// Gate identifies the gate that the pod is for (gates.Sum); empty for every other pod.
	Gate string
	// Paths of the pod.
	Paths Paths
	// Grace that an agent has between SIGTERM and SIGKILL.
	Grace time.Duration
	// BudgetPause is how long the proxy may take to notice a raised budget; 0 means its default.
	BudgetPause time.Duration
	// Handover is how long the end of an attempt waits for the gateway's ledger to take the last diffs. Everybody knows by then how the attempt ended,
	// and the next one hands over what is left.
	Handover time.Duration
	// Linger is how long a finished watchdog waits for the pod to end it: a sidecar that ends by itself is started again.
	Linger time.Duration
	// MaxPacks of the trusted repository: beyond it, the watchdog puts packs together. PruneAbove is the number of bytes that checkpoints may
	// add before a new attempt drops what no ref reaches.
	MaxPacks int
	// FoldAbove is the size of the journal in bytes above which its records go into a segment.
	FoldAbove  int64
	PruneAbove int64
	// Runtimes of agents: the runtimes of this version, except in tests.
	Runtimes []runtimes.Runtime
	// Now is the clock.
	Now func() time.Time
	// Log takes what happens.
	Log *slog.Logger
	// Probe is called after each step that a crash may follow; its error ends the process at once. A nil Probe never does.
	Probe steps.Probe
}

// adapter of a runtime; nil where this version has none.
func (o Options) adapter(runtime string) runtimes.Adapter {
	for _, r := range o.Runtimes {
		if r.Name == runtime {
			return r.Adapter
		}
	}
	return nil
}

// sessions says whether the agents of a runtime can be started again in their session.
func sessions(known []runtimes.Runtime, runtime string) bool {
	return slices.ContainsFunc(known, func(r runtimes.Runtime) bool { return r.Name == runtime && r.Sessions })
}

// compaction is where the client of a runtime makes room in its context by itself; zero for one that is not known.
func compaction(known []runtimes.Runtime, runtime string) anomaly.Compaction {
	if i := slices.IndexFunc(known, func(r runtimes.Runtime) bool { return r.Name == runtime }); i >= 0 {
		return known[i].Compaction()
	}
	return anomaly.Compaction{}
}

// Paths of the pod; DefaultPaths but in tests.
type Paths struct {
	Trusted   string
	Workspace string
	Home      string
	Run       string
	Token     string
	CA        string
	GitSecret string
	// Runner is the binary that prepare copies into Run.
	Runner string
}

// DefaultPaths are the paths of the protocol, and the runner in the folder of this program.
func DefaultPaths() Paths {
	p := Paths{
		Trusted: protocol.TrustedDir, Workspace: protocol.WorkspaceDir, Home: protocol.HomeDir, Run: protocol.RunDir,
		Token: protocol.TokenPath, CA: protocol.CAPath, GitSecret: protocol.GitSecretDir, Runner: "/usr/local/bin/runner",
	}
	if self, err := os.Executable(); err == nil {
		p.Runner = filepath.Join(filepath.Dir(self), "runner")
	}
	return p
}

func (p Paths) trusted() trusted.Dir { return trusted.Dir(p.Trusted) }
func (p Paths) socket() string       { return filepath.Join(p.Run, filepath.Base(protocol.SocketPath)) }
func (p Paths) runner() string       { return filepath.Join(p.Run, filepath.Base(protocol.RunnerPath)) }

// parse reads the flags of a subcommand.
func parse(name string, args []string, output io.Writer) (Options, error) {
	o := Options{Paths: DefaultPaths(), Grace: 5 * time.Second, Handover: 10 * time.Second, Linger: 20 * time.Second, MaxPacks: maxPacks, FoldAbove: trusted.FoldAbove, PruneAbove: pruneAbove,
		Runtimes: runtimes.All(), Now: time.Now,
		Models: net.JoinHostPort("127.0.0.1", strconv.Itoa(protocol.ModelsPort)), Tools: net.JoinHostPort("127.0.0.1", strconv.Itoa(protocol.MCPPort)),
		Proxy: net.JoinHostPort("127.0.0.1", strconv.Itoa(protocol.AgentProxyPort))}
	flags := flag.NewFlagSet("watchdog "+name, flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.Namespace, "namespace", "", "namespace of the Feature")
	flags.StringVar(&o.Feature, "feature", "", "name of the Feature")
	flags.Int64Var(&o.Attempt, "attempt", 0, "number of the attempt, from 1")
	flags.StringVar(&o.Intake, "intake", "", "URL of intake, https://ADDRESS:8443")
	flags.StringVar(&o.IntakeName, "intake-name", "", "name that intake's certificate has")
	flags.StringVar(&o.Gateway, "gateway", "", "URL of the gateway, https://ADDRESS:8444")
	flags.StringVar(&o.GatewayName, "gateway-name", "", "name that the gateway's certificate has in addition to its address")
	flags.Int64Var(&o.Window, "context-window", 0, "context window of the agent's model in tokens; 0 is unknown")
	flags.StringVar(&o.Gate, "gate", "", "gate that the pod is for, as the SHA-256 of its definition (prove)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.Ledger = o.Gateway
	var missing []error
	for _, f := range []string{"namespace", "feature", "attempt", "intake", "intake-name", "gateway"} {
		if v := flags.Lookup(f).Value.String(); v == "" || v == "0" {
			missing = append(missing, fmt.Errorf("--%s is missing", f))
		}
	}
	if (o.Gate != "") != (name == "prove") {
		missing = append(missing, errors.New("--gate belongs to prove, which needs it"))
	}
	if flags.NArg() > 0 {
		missing = append(missing, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	return o, errors.Join(missing...)
}

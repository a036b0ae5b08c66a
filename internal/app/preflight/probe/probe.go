// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe is what the pods of a preflight run: it tries one thing, and writes what it saw to the termination message of its container.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Kinds of probes, by which a container's command names them.
const (
	// Serve accepts connections at both ports until a signal ends it.
	Serve = "serve"
	// Connect connects to its first address, as soon as somebody listens there, and then tries the second.
	Connect = "connect"
	// Refused tries to connect to its addresses, and to the API server, from the first moment on.
	Refused = "refused"
	// Users looks at the user namespace, and writes to a directory.
	Users = "users"
	// Volume tests the volume of a directory.
	Volume = "volume"
	// Processes does what the programs of a Feature's pod do at their start.
	Processes = "processes"
	// Reach asks servers for an answer.
	Reach = "reach"
	// sleep is the process that Processes stops and ends.
	sleep = "sleep"
)

// Ports that Serve listens at: a policy of the preflight allows the first.
const (
	AllowedPort = 8080
	OtherPort   = 8081
)

// reportFile is the termination message of the container.
const reportFile = "/dev/termination-log"

// limit of a probe; the pod's own deadline is longer.
const limit = 45 * time.Second

// Main runs the probe that the arguments name. The error is nil if it could write what it saw, whatever that is.
func Main(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("probe: the preflight runs this in pods of its own")
	}
	switch args[0] {
	case Serve:
		return serve(ctx)
	case sleep:
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var report preflight.Report
	err := look(ctx, args[0], args[1:], &report)
	if err != nil {
		report.Error = brief(err)
	}
	report.Time = time.Now()
	text, err := json.Marshal(report)
	if err == nil && len(text) > preflight.MaxReport {
		text, err = json.Marshal(preflight.Report{Time: report.Time, Error: "the report of the probe is too long"})
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	// The kubelet has made the file.
	file, err := os.OpenFile(reportFile, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// look does what a kind of probe does.
func look(ctx context.Context, kind string, args []string, report *preflight.Report) error {
	dir := func() (string, error) {
		if len(args) != 1 {
			return "", fmt.Errorf("probe %s: name a directory", kind)
		}
		return args[0], nil
	}
	switch kind {
	case Connect:
		if len(args) != 2 {
			return errors.New("probe connect: name two addresses")
		}
		report.Connections = connect(ctx, args[0], args[1])
	case Refused:
		report.Connections = refused(ctx, append(args, apiServer()...))
	case Users:
		at, err := dir()
		if err != nil {
			return err
		}
		text, err := os.ReadFile("/proc/self/uid_map")
		if err != nil {
			return err
		}
		report.UIDMap = strings.Join(strings.Fields(string(text)), " ")
		return os.WriteFile(at+"/written", []byte("by the preflight"), 0o600)
	case Volume:
		at, err := dir()
		if err != nil {
			return err
		}
		assumptions, err := workspace.Probe(ctx, at)
		report.Notes = assumptions.Notes
		return err
	case Processes:
		at, err := dir()
		if err != nil {
			return err
		}
		report.Steps = processes(ctx, at)
	case Reach:
		if len(args) != 1 {
			return errors.New("probe reach: name what to reach, in JSON")
		}
		var all []Wanted
		if err := json.Unmarshal([]byte(args[0]), &all); err != nil {
			return fmt.Errorf("probe reach: %w", err)
		}
		report.Targets = make([]preflight.Target, len(all))
		var asked sync.WaitGroup
		for i, w := range all {
			asked.Go(func() { report.Targets[i] = w.reach(ctx) })
		}
		asked.Wait()
	default:
		return fmt.Errorf("there is no probe %q", kind)
	}
	return nil
}

// maxError bounds an error in a report, in bytes: a report has several.
const maxError = 160

func brief(err error) string {
	text := err.Error()
	return text[:min(len(text), maxError)]
}

// serve accepts connections, and closes them.
func serve(ctx context.Context) error {
	for _, port := range []int{AllowedPort, OtherPort} {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				_ = connection.Close()
			}
		}()
	}
	<-ctx.Done()
	return nil
}

const (
	// dialTimeout is how long a connection in the cluster may take: what a policy drops takes all of it.
	dialTimeout = 1500 * time.Millisecond
	// rounds of tries against a policy, a round each second and a half at most: a policy that is enforced late is then enforced in the last ones.
	rounds = 5
	// patience is how long the server may take until it listens.
	patience = 20 * time.Second
)

// dial tries to connect.
func dial(ctx context.Context, to string) preflight.Connection {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", to)
	if err != nil {
		return preflight.Connection{To: to, Error: brief(err)}
	}
	_ = connection.Close()
	return preflight.Connection{To: to, Through: true}
}

func connect(ctx context.Context, allowed, elsewhere string) []preflight.Connection {
	first := dial(ctx, allowed)
	for until := time.Now().Add(patience); !first.Through && ctx.Err() == nil && time.Now().Before(until); {
		rest(ctx, time.Second)
		first = dial(ctx, allowed)
	}
	return []preflight.Connection{first, dial(ctx, elsewhere)}
}

func refused(ctx context.Context, targets []string) []preflight.Connection {
	var all []preflight.Connection
	for range rounds {
		begin, tries := time.Now(), make(chan preflight.Connection, len(targets))
		for _, to := range targets {
			go func() { tries <- dial(ctx, to) }()
		}
		for range targets {
			all = append(all, <-tries)
		}
		rest(ctx, dialTimeout-time.Since(begin))
	}
	return all
}

// apiServer is the address of the API server's Service, which the kubelet gives to every container.
func apiServer() []string {
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		return []string{net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))}
	}
	return nil
}

// rest waits.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

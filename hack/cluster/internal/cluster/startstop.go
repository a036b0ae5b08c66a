// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/config"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/host"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/pki"
)

// NodeCommand is the driver's command that is the first process of the node. Its argument is the plan's path.
const NodeCommand = "node"

func link() host.Link {
	return host.Link{
		Host: config.HostLink, Node: config.NodeLink,
		HostAddress: config.HostIP + "/30", Gateway: config.NodeIP,
		Routes: []string{config.PodCIDR, config.ServiceCIDR},
	}
}

// start starts the node. It is recorded before anything of the machine's is changed for it, so that `down` knows.
func (c *Cluster) start(conf config.Cluster, version string) error {
	if err := os.MkdirAll(conf.State, 0o711); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := pki.Write(conf.State, conf.PKI(), time.Now()); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(conf.State, "ready")); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := conf.Write(); err != nil {
		return err
	}
	plan := filepath.Join(conf.State, "conf", "plan.json")
	if err := conf.Plan().Save(plan); err != nil {
		return err
	}
	// The running driver may be a file that is removed or written anew while the node lives.
	binary := filepath.Join(conf.State, "driver")
	if err := copySelf(binary); err != nil {
		return err
	}
	started := time.Now()
	settings, err := host.ReadSettings()
	if err != nil {
		return err
	}
	process, begin, err := host.Namespaced(binary, filepath.Join(conf.State, "log", "node.log"), NodeCommand, plan)
	if err != nil {
		return err
	}
	err = host.SaveRecord(conf.State, host.Record{Process: process, Started: started, Version: version, Settings: settings})
	if err == nil {
		err = host.MakeCgroups(config.CgroupRoot)
	}
	if err == nil {
		err = link().Connect(process.PID)
	}
	if err == nil {
		err = begin()
	}
	if err != nil {
		return errors.Join(err, process.Kill())
	}
	return nil
}

// stop ends the node and takes away what it changed on the machine. It does nothing twice, so it also cleans up after
// a node that ended by itself.
func (c *Cluster) stop(keepState bool) error {
	state := c.layout.State()
	record, recorded, err := host.LoadRecord(state)
	if err != nil {
		return err
	}
	if !recorded {
		return c.removeState(keepState)
	}
	if err := record.Process.Kill(); err != nil {
		return err
	}
	err = errors.Join(
		link().Disconnect(),
		host.RemoveCgroups(config.CgroupRoot),
		host.RestoreSettings(record.Settings),
		host.AwaitLoopDevices(filepath.Join(state, "volumes")),
	)
	if err != nil {
		return err
	}
	return c.removeState(keepState)
}

func (c *Cluster) removeState(keep bool) error {
	if keep {
		return nil
	}
	if err := os.RemoveAll(c.layout.State()); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

func copySelf(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	defer from.Close() //nolint:errcheck // only read
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("driver: %w", err)
	}
	copied, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	_, err = io.Copy(copied, from)
	if err := errors.Join(err, copied.Close()); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// defaultGateTimeout is the API's default, for objects that were stored without it.
const defaultGateTimeout = 10 * time.Minute

// Gate is a gate as watchdogs run it. The image is as it is written: empty stands for that of the agent.
func Gate(g v1alpha1.PolicyGate) policy.Gate {
	gate := policy.Gate{Name: g.Name, Command: g.Command, Image: g.Image, Timeout: defaultGateTimeout}
	if g.Timeout != nil {
		gate.Timeout = g.Timeout.Duration
	}
	for _, e := range g.Env {
		gate.Env = append(gate.Env, e.Name+"="+e.Value)
	}
	if g.Report != nil {
		gate.Report = &policy.GateReport{Format: string(g.Report.Format), Path: g.Report.Path}
	}
	if g.Require != nil {
		gate.MinTests, gate.MinCoverage = int(ptr.Deref(g.Require.MinTests, 0)), int(ptr.Deref(g.Require.MinCoveragePercent, 0))
	}
	return gate
}

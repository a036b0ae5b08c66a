// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

const (
	watchdogProgram = "/usr/local/bin/watchdog"
	tmpDir          = "/tmp"
)

// commands are the watchdog's subcommands by container.
var commands = map[string]string{"prepare": "prepare", "watchdog": "run", "seal": "seal", "answer": "answer"}

// watchdog is a container of ours. Its arguments only say whose pod this is and whom to ask: everything else comes as
// authenticated orders.
func watchdog(name string, f *v1alpha1.Feature, attempt int64, o Options) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(name).
		WithImage(o.Image).
		WithCommand(watchdogProgram, commands[name]).
		WithArgs(
			"--namespace="+f.Namespace,
			"--feature="+f.Name,
			"--attempt="+strconv.FormatInt(attempt, 10),
			"--intake="+url(o.Intake, protocol.IntakePort),
			"--intake-name="+protocol.IntakeService+"."+o.SystemNamespace+".svc",
			"--gateway="+url(o.Gateway, protocol.GatewayPort),
			"--gateway-name="+protocol.GatewayService+"."+o.SystemNamespace+".svc",
		).
		WithEnv(corev1ac.EnvVar().WithName("HOME").WithValue(tmpDir)).
		WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: *resource.NewQuantity(protocol.WatchdogMemory, resource.BinarySI),
		}).WithLimits(corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(protocol.WatchdogMemoryLimit, resource.BinarySI),
		})).
		WithSecurityContext(locked())
}

// prover is the watchdog in the pod of a gate.
func prover(f *v1alpha1.Feature, start lifecycle.Start, o Options) *corev1ac.ContainerApplyConfiguration {
	c := watchdog("watchdog", f, start.Attempt, o).WithArgs("--gate="+start.Gate.Sum).WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(checkoutMount(), runMount(false))
	c.Command = []string{watchdogProgram, "prove"}
	return c
}

// agent is the untrusted container: the workspace, its HOME, and a runner that it cannot change. Its command and
// environment come to the runner from the watchdog.
func agent(f *v1alpha1.Feature, mode string, o Options) *corev1ac.ContainerApplyConfiguration {
	image := f.Spec.Agent.Image
	if runtime, _ := runtimes.Find(f.Spec.Agent.Runtime); runtime.Included {
		image = o.Image
	}
	c := corev1ac.Container().
		WithName("agent").
		WithImage(image).
		WithCommand(protocol.RunnerPath).
		WithWorkingDir(protocol.WorkspaceDir).
		WithEnv(corev1ac.EnvVar().WithName("HOME").WithValue(protocol.HomeDir)).
		WithEnv(trustWorkspace()...).
		WithEnv(speech(o)...).
		WithVolumeMounts(workspaceMount(mode == policy.ModeDeterministic), homeMount(), runMount(true), corev1ac.VolumeMount().WithName(volumeAgentTmp).WithMountPath(tmpDir)).
		WithSecurityContext(locked())
	if r := resources(o.Pod); r != nil {
		c = c.WithResources(r)
	}
	return c
}

// gate is the container of a gate in a pod of its own: a fresh checkout, a runner that it cannot change, and nothing that an agent has
// written outside of the checkout. Its command comes to the runner from the watchdog.
func gate(g lifecycle.Gate, o Options) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().
		WithName("gate").
		WithImage(cmp.Or(g.Image, o.Image)).
		WithCommand(protocol.RunnerPath).
		WithWorkingDir(protocol.WorkspaceDir).
		WithVolumeMounts(checkoutMount(), runMount(true), corev1ac.VolumeMount().WithName(volumeAgentTmp).WithMountPath(tmpDir)).
		WithSecurityContext(locked())
	if r := resources(o.Pod); r != nil {
		c = c.WithResources(r)
	}
	return c
}

// trustWorkspace lets the agent's own git work in the workspace: the root of a volume belongs to root, whatever its
// group, and git refuses such a folder unless the environment (or the user's configuration) says otherwise.
func trustWorkspace() []*corev1ac.EnvVarApplyConfiguration {
	return []*corev1ac.EnvVarApplyConfiguration{
		corev1ac.EnvVar().WithName("GIT_CONFIG_COUNT").WithValue("1"),
		corev1ac.EnvVar().WithName("GIT_CONFIG_KEY_0").WithValue("safe.directory"),
		corev1ac.EnvVar().WithName("GIT_CONFIG_VALUE_0").WithValue(protocol.WorkspaceDir),
	}
}

// window tells the watchdog how much the agent's model takes in: it starts a client that has to know.
func window(o Options) []string {
	if o.ContextWindow == 0 {
		return nil
	}
	return []string{"--context-window=" + strconv.FormatInt(o.ContextWindow, 10)}
}

// speech tells an agent that speaks every dialect which one its backend speaks.
func speech(o Options) []*corev1ac.EnvVarApplyConfiguration {
	if o.Dialect == "" {
		return nil
	}
	list := []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName(protocol.EnvDialect).WithValue(o.Dialect)}
	if o.ContextWindow > 0 {
		list = append(list, corev1ac.EnvVar().WithName(protocol.EnvWindow).WithValue(strconv.FormatInt(o.ContextWindow, 10)))
	}
	return list
}

// locked is the security context of every container (Pod Security "restricted", and a read-only root).
func locked() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithPrivileged(false).
		WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

func url(addr netip.Addr, port int) string {
	return fmt.Sprintf("https://%s", netip.AddrPortFrom(addr, uint16(port))) //nolint:gosec // a port of the contract
}

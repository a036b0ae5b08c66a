// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
)

const (
	// graceSeconds is what the watchdog has for a last checkpoint when the pod is asked to end.
	graceSeconds = 60
	// defaultUser runs agent and watchdog when the Feature does not say (the CRD's default).
	defaultUser = 1000
	// nowhere is the pod's only name server: agents have no DNS, and a query shall fail at once instead of timing out.
	nowhere = "127.0.0.1"
)

// Job is the Job of one attempt: one pod, never replaced, never retried by the Job controller. Whether another attempt
// follows is decided from what was reported, not from exit codes.
func Job(f *v1alpha1.Feature, attempt int64, run lifecycle.RunKind, o Options) *batchv1ac.JobApplyConfiguration {
	labels := map[string]string{
		v1alpha1.LabelFeature: f.Name,
		v1alpha1.LabelAttempt: strconv.FormatInt(attempt, 10),
		v1alpha1.LabelRun:     string(run),
	}
	return batchv1ac.Job(naming.Job(f.Name, attempt), f.Namespace).
		WithLabels(labels).
		WithOwnerReferences(owner(f)).
		WithSpec(batchv1ac.JobSpec().
			WithParallelism(1).WithCompletions(1).
			WithBackoffLimit(0).
			WithPodReplacementPolicy(batchv1.Failed).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod(f, attempt, run, o))))
}

func pod(f *v1alpha1.Feature, attempt int64, run lifecycle.RunKind, o Options) *corev1ac.PodSpecApplyConfiguration {
	user := ptr.Deref(f.Spec.Agent.RunAsUser, defaultUser)
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithTerminationGracePeriodSeconds(graceSeconds).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithShareProcessNamespace(false).
		WithDNSPolicy(corev1.DNSNone).
		WithDNSConfig(corev1ac.PodDNSConfig().WithNameservers(nowhere)).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).
			WithFSGroup(user).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	if o.UserNamespaces {
		spec = spec.WithHostUsers(false)
	}
	if run == lifecycle.RunSeal {
		return spec.
			WithContainers(watchdog("seal", f, attempt, o).WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(workspaceMount())).
			WithVolumes(volumes(f, sealVolumes)...)
	}
	if name := f.Spec.Agent.RuntimeClassName; name != "" {
		spec = spec.WithRuntimeClassName(name)
	}
	return spec.
		WithInitContainers(
			watchdog("prepare", f, attempt, o).WithVolumeMounts(trustedSide(f)...).
				WithVolumeMounts(workspaceMount(), homeMount(), runMount(false)),
			// A native sidecar: it starts before the agent, ends after it, and comes back if it crashes.
			watchdog("watchdog", f, attempt, o).WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
				WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(workspaceMount(), runMount(false)),
		).
		WithContainers(agent(f)).
		WithVolumes(volumes(f, agentVolumes)...)
}

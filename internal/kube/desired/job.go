// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
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

// Job is the Job of one attempt: one pod, never replaced, never retried by the Job controller. Reports, not exit codes, decide whether
// another attempt follows.
func Job(f *v1alpha1.Feature, start lifecycle.Start, o Options) *batchv1ac.JobApplyConfiguration {
	labels := jobLabels(f, start)
	return batchv1ac.Job(naming.Job(f.Name, start.Attempt), f.Namespace).
		WithLabels(labels).
		WithOwnerReferences(owner(f)).
		WithSpec(batchv1ac.JobSpec().
			WithParallelism(1).WithCompletions(1).
			WithBackoffLimit(0).
			WithPodReplacementPolicy(batchv1.Failed).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod(f, start, o))))
}

func jobLabels(f *v1alpha1.Feature, start lifecycle.Start) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelFeature: f.Name,
		v1alpha1.LabelAttempt: strconv.FormatInt(start.Attempt, 10),
		v1alpha1.LabelRun:     string(start.Run),
	}
	if start.Mode != "" {
		labels[v1alpha1.LabelMode] = start.Mode
	}
	return labels
}

// Labels that the Job controller gave to pods before Kubernetes 1.27, and still does.
const (
	formerJobNameLabel       = "job-name"
	formerControllerUIDLabel = "controller-uid"
)

// PodLabels are the labels of the pod of an attempt, including the ones that the Job controller adds. The argument jobUID is empty for a
// Job that is not made yet: the labels then have a value that no selector can name, because nobody knows a uid beforehand.
func PodLabels(f *v1alpha1.Feature, start lifecycle.Start, jobUID string) map[string]string {
	uid, name := cmp.Or(jobUID, "(not made yet)"), naming.Job(f.Name, start.Attempt)
	labels := jobLabels(f, start)
	labels[batchv1.ControllerUidLabel], labels[formerControllerUIDLabel] = uid, uid
	labels[batchv1.JobNameLabel], labels[formerJobNameLabel] = name, name
	return labels
}

func pod(f *v1alpha1.Feature, start lifecycle.Start, o Options) *corev1ac.PodSpecApplyConfiguration {
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
	spec = place(spec, o.Pod)
	if start.Run == lifecycle.RunSeal {
		return spec.
			WithContainers(watchdog("seal", f, start.Attempt, o).WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(workspaceMount(false))).
			WithVolumes(volumes(f, sealVolumes)...)
	}
	if name := f.Spec.Agent.RuntimeClassName; name != "" {
		spec = spec.WithRuntimeClassName(name)
	}
	if start.Run == lifecycle.RunGate {
		return spec.
			WithInitContainers(
				watchdog("prepare", f, start.Attempt, o).WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(checkoutMount(), runMount(false)),
				prover(f, start, o),
			).
			WithContainers(gate(start.Gate, o)).
			WithVolumes(volumes(f, gateVolumes)...)
	}
	return spread(spec, o.Pod.Spread).
		WithInitContainers(
			watchdog("prepare", f, start.Attempt, o).WithVolumeMounts(trustedSide(f)...).
				WithVolumeMounts(workspaceMount(false), homeMount(), runMount(false)),
			// A native sidecar: it starts before the agent, ends after it, and comes back if it crashes.
			watchdog("watchdog", f, start.Attempt, o).WithArgs(window(o)...).WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
				WithVolumeMounts(trustedSide(f)...).WithVolumeMounts(workspaceMount(false), runMount(false)),
		).
		WithContainers(agent(f, start.Mode, o)).
		WithVolumes(volumes(f, agentVolumes)...)
}

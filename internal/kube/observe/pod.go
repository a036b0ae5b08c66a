// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

// podProblem is what keeps a pod's containers from running, nearest to the cause first; nil when nothing does.
func podProblem(p *corev1.Pod) *lifecycle.Problem {
	if PodEnded(p) {
		return nil
	}
	if problem := schedulingProblem(p); problem != nil {
		return problem
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			if s.State.Waiting == nil {
				continue
			}
			if problem := waitingProblem(s); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// unboundClaims is in the scheduler's message (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding) while a volume is being made, which every pod with
// a new one waits for. Volumes says so, with the claim's name, when it takes too long.
const unboundClaims = "unbound immediate PersistentVolumeClaims"

func schedulingProblem(p *corev1.Pod) *lifecycle.Problem {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		if strings.Contains(c.Message, unboundClaims) {
			return nil
		}
		reason := v1alpha1.ReasonUnschedulable
		if lower := strings.ToLower(c.Message); strings.Contains(lower, "persistentvolumeclaim") || strings.Contains(lower, "persistent volumes") {
			reason = v1alpha1.ReasonVolumePending
		}
		return &lifecycle.Problem{Reason: reason, Message: "No node takes the pod: " + c.Message + wanted(p)}
	}
	return nil
}

// wanted says which labels a node must have, and who can change that: the scheduler does not name them.
func wanted(p *corev1.Pod) string {
	var labels []string
	for key, value := range p.Spec.NodeSelector {
		labels = append(labels, key+"="+value)
	}
	if len(labels) == 0 {
		return ""
	}
	slices.Sort(labels)
	return " A node must have the labels " + strings.Join(labels, ", ") + ": label one, or change spec.agent.scheduling.nodeSelector (or agents.scheduling of a policy) and start another attempt by spec.suspend true and false."
}

// waitingProblem reads the kubelet's reasons for a container that waits
// (k8s.io/kubernetes/pkg/kubelet/images/types.go and kuberuntime/kuberuntime_container.go). Messages leave out what
// changes from one try to the next.
func waitingProblem(s corev1.ContainerStatus) *lifecycle.Problem {
	w := s.State.Waiting
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return &lifecycle.Problem{Reason: v1alpha1.ReasonImageUnavailable, Message: fmt.Sprintf(
			"Container %s: the node cannot pull image %q%s. Check the name, and whether the node may pull it.", s.Name, s.Image, detail(w.Message))}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return &lifecycle.Problem{Reason: v1alpha1.ReasonContainerNotStarted, Message: fmt.Sprintf(
			"The node cannot start container %s%s.", s.Name, detail(w.Message))}
	case "CrashLoopBackOff":
		code := int32(0)
		if t := s.LastTerminationState.Terminated; t != nil {
			code = t.ExitCode
		}
		return &lifecycle.Problem{Reason: v1alpha1.ReasonContainerNotStarted, Message: fmt.Sprintf(
			"Container %s ends again and again (exit code %d): see `kubectl logs --container %s`.", s.Name, code, s.Name)}
	default:
		return nil
	}
}

// detail is the kubelet's own text without the parts that come and go with its back-off.
func detail(message string) string {
	if strings.HasPrefix(message, "Back-off pulling image") {
		_, cause, found := strings.Cut(message, `": `)
		if !found {
			return ""
		}
		message = cause
	}
	message = strings.TrimPrefix(message, "ErrImagePull: ")
	message = strings.TrimSuffix(strings.TrimSpace(message), ".")
	if message == "" {
		return ""
	}
	return " (" + message + ")"
}

// byItself reports whether a pod ended though neither a person nor the cluster asked it to. A pod that is evicted because it used
// more disk than it may has itself to blame.
func byItself(p *corev1.Pod) bool {
	if !PodEnded(p) || p.DeletionTimestamp != nil {
		return false
	}
	disrupted := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
	if !disrupted && p.Status.Reason == "" {
		return true
	}
	// The kubelet's messages (k8s.io/kubernetes/pkg/kubelet/eviction/helpers.go); those that begin otherwise blame the node.
	return p.Status.Reason == "Evicted" && slices.ContainsFunc([]string{"Usage of EmptyDir volume", "Pod ephemeral local storage usage exceeds", "Container "},
		func(begin string) bool { return strings.HasPrefix(p.Status.Message, begin) })
}

// fate says why a pod ended: the kubelet's reason (Evicted, for example), and each container that did not end well.
func fate(p *corev1.Pod) string {
	if !PodEnded(p) {
		return ""
	}
	var parts []string
	if p.Status.Reason != "" {
		parts = append(parts, strings.TrimSpace(p.Status.Reason+": "+p.Status.Message))
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				parts = append(parts, fmt.Sprintf("container %s ended with exit code %d (%s)", s.Name, t.ExitCode, t.Reason))
			}
		}
	}
	return strings.Join(parts, "; ")
}

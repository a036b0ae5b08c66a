// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"path"

	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// inquirySeconds bounds the Job of an inquiry whose replica is gone: nobody else would end it.
	inquirySeconds = 120
	// inquiryForgotten is after how many seconds such a Job is removed once it has ended.
	inquiryForgotten = 60
	// inquiryIDLength is how much of an inquiry's id the Job's name carries.
	inquiryIDLength = 5
	// graceInquiry is how long the pod has to end, in seconds: it writes nothing.
	graceInquiry = 1
)

// InquiryJob answers one inquiry from the trusted volume that a Feature's pods have left. The volume is mounted
// read-only, and neither the workspace nor the repository's Secret is.
func InquiryJob(f *v1alpha1.Feature, id, inquiry string, o Options) *batchv1ac.JobApplyConfiguration {
	labels := map[string]string{v1alpha1.LabelFeature: f.Name, v1alpha1.LabelRun: v1alpha1.RunView}
	spec := pod(f, lifecycle.Start{Attempt: f.Status.Attempt, Run: lifecycle.RunSeal}, o).WithTerminationGracePeriodSeconds(graceInquiry)
	container := watchdog("answer", f, f.Status.Attempt, o).
		WithEnv(corev1ac.EnvVar().WithName(protocol.EnvInquiry).WithValue(inquiry)).
		WithVolumeMounts(
			mount(volumeTrusted, protocol.TrustedDir).WithReadOnly(true),
			mount(volumeToken, path.Dir(protocol.TokenPath)).WithReadOnly(true),
			mount(volumeCA, path.Dir(protocol.CAPath)).WithReadOnly(true),
			mount(volumeWatchdogTmp, tmpDir),
		)
	spec.Containers = []corev1ac.ContainerApplyConfiguration{*container}
	spec.Volumes = nil
	for _, name := range inquiryVolumes {
		spec.WithVolumes(volume(f, name))
	}
	job := batchv1ac.Job(naming.Inquiry(f.Name, id[:min(len(id), inquiryIDLength)]), f.Namespace).
		WithLabels(labels).
		WithOwnerReferences(owner(f)).
		WithSpec(batchv1ac.JobSpec().
			WithParallelism(1).WithCompletions(1).WithBackoffLimit(0).
			WithActiveDeadlineSeconds(inquirySeconds).WithTTLSecondsAfterFinished(inquiryForgotten).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(spec)))
	return job
}

// inquiryVolumes are those of a pod that answers an inquiry.
var inquiryVolumes = []string{volumeTrusted, volumeWatchdogTmp, volumeToken, volumeCA}

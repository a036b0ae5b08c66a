// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels, annotations and finalizers that Tidewaiter writes. The prefix is reserved: labels with it on a Feature are not copied to children.
const (
	// LabelFeature names the Feature that an object belongs to.
	LabelFeature = "tidewaiter.dev/feature"
	// LabelAttempt is the attempt (a decimal number) that a Job or pod runs.
	LabelAttempt = "tidewaiter.dev/attempt"
	// LabelRun says what a Job or pod does for its Feature: RunAgent or RunSeal.
	LabelRun = "tidewaiter.dev/run"
	// RunAgent marks the Job of an attempt with an agent.
	RunAgent = "agent"
	// RunSeal marks a Job that works on the trusted volume without any agent.
	RunSeal = "seal"
	// LabelVerdict is a Checkpoint's verdict, so that `kubectl get checkpoints -l` can select by it.
	LabelVerdict = "tidewaiter.dev/verdict"
	// LabelTemplate marks a ConfigMap in the system namespace as a cluster-wide template: global-input or global-output.
	LabelTemplate = "tidewaiter.dev/template"
	// FinalizerFeature holds a deleted Feature until its pods are gone.
	FinalizerFeature = "tidewaiter.dev/feature"
)

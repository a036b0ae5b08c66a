// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels, annotations and finalizers that Tidewaiter writes. The prefix is reserved: labels with it on a Feature are not copied to children.
const (
	// LabelFeature names the Feature that an object belongs to.
	LabelFeature = "tidewaiter.dev/feature"
	// LabelAttempt is the attempt (a decimal number) that a Job or pod runs.
	LabelAttempt = "tidewaiter.dev/attempt"
	// LabelRun says what a Job or pod does for its Feature: RunAgent, RunSeal, RunGate or RunView.
	LabelRun = "tidewaiter.dev/run"
	// RunAgent marks the Job of an attempt with an agent.
	RunAgent = "agent"
	// RunSeal marks a Job that works on the trusted volume without any agent.
	RunSeal = "seal"
	// RunGate marks the Job of an attempt that runs one gate where no agent has been: before the delivery or, in Deterministic mode, after a task.
	RunGate = "gate"
	// RunView marks a Job that answers one inquiry about a Feature whose pods are gone. It is not an attempt, and changes nothing.
	RunView = "view"
	// LabelInquiry marks the Lease that is open while an inquiry about a Feature is; the value is the Feature's uid.
	LabelInquiry = "tidewaiter.dev/inquiry"
	// AnnotationFeature is the Feature, as namespace/name, that an object of the system namespace is about.
	AnnotationFeature = "tidewaiter.dev/feature"
	// AnnotationInquiry is the inquiry, as JSON.
	AnnotationInquiry = "tidewaiter.dev/inquiry"
	// LabelMode is the execution mode that the pod of an agent run is made for: its mounts depend on it.
	LabelMode = "tidewaiter.dev/mode"
	// PolicyLabelPrefix begins the labels of Features that policies may select by. Admission lets only users with permission to write the
	// SupervisorPolicies of the project set them.
	PolicyLabelPrefix = "policy.tidewaiter.dev/"
	// GlobalPolicyLabelPrefix begins the labels that global policies may select by. Admission lets only users with permission to write global
	// policies set them.
	GlobalPolicyLabelPrefix = PolicyLabelPrefix + "global."
	// LabelVerdict is a Checkpoint's verdict, so that `kubectl get checkpoints -l` can select by it.
	LabelVerdict = "tidewaiter.dev/verdict"
	// LabelTemplate marks a ConfigMap in the system namespace as a cluster-wide template: global-input or global-output.
	LabelTemplate = "tidewaiter.dev/template"
	// LabelLock marks the Lease that is the lock of a contract; the value is LockContract.
	LabelLock = "tidewaiter.dev/lock"
	// LockContract is the value of LabelLock.
	LockContract = "contract"
	// LabelLockHolder is the uid of the Feature that holds a lock.
	LabelLockHolder = "tidewaiter.dev/lock-holder"
	// AnnotationRepository and AnnotationContract say what a lock is of: its name is a digest.
	AnnotationRepository = "tidewaiter.dev/repository"
	// AnnotationContract is the name of a lock's contract.
	AnnotationContract = "tidewaiter.dev/contract"
	// AnnotationReclaimedFrom is the Feature (namespace/name/uid) whose lease had expired when the lock was taken over.
	AnnotationReclaimedFrom = "tidewaiter.dev/reclaimed-from"
	// FinalizerFeature holds a deleted Feature until its pods are gone.
	FinalizerFeature = "tidewaiter.dev/feature"
)

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Condition types, in the API's own names; a test of the mapping keeps the two lists equal.
const (
	ConditionAccepted         = "Accepted"
	ConditionWorkspaceReady   = "WorkspaceReady"
	ConditionAgentRunning     = "AgentRunning"
	ConditionSupervised       = "Supervised"
	ConditionIsolated         = "Isolated"
	ConditionLocksHeld        = "LocksHeld"
	ConditionAreasDisjoint    = "AreasDisjoint"
	ConditionCheckpointsValid = "CheckpointsValid"
	ConditionWithinBudget     = "WithinBudget"
	ConditionReadyToMerge     = "ReadyToMerge"
	ConditionDelivered        = "Delivered"
	ConditionAgentStalled     = "AgentStalled"
	ConditionAgentLooping     = "AgentLooping"
	ConditionContextPressure  = "ContextPressure"
	ConditionCascadeFailure   = "CascadeFailure"
	ConditionPaceEscalated    = "PaceEscalated"
	ConditionSucceeded        = "Succeeded"
	ConditionReconciling      = "Reconciling"
	ConditionStalled          = "Stalled"
)

// Reasons that are the controller's own; those of faults and final reports are in core/contract.
const (
	ReasonAccepted            = "Accepted"
	ReasonPartlyActedOn       = "PartlyActedOn"
	ReasonRuntimeNotAvailable = "RuntimeNotAvailable"
	ReasonVolumesRequired     = "VolumesRequired"
	ReasonModeNotAvailable    = "ModeNotAvailable"
	ReasonModeFallback        = "ModeFallback"
	ReasonPromptNotFound      = "PromptNotFound"
	ReasonPolicyInvalid       = "PolicyInvalid"
	ReasonPolicyConflict      = "PolicyConflict"
	ReasonNotYetReported      = "NotYetReported"
	ReasonNotActedOn          = "NotActedOn"
	ReasonAtCapacity          = "AtCapacity"
	ReasonSystemNotReady      = "SystemNotReady"
	ReasonPreparing           = "Preparing"
	ReasonPodRejected         = "PodRejected"
	ReasonPodStuckTerminating = "PodStuckTerminating"
	ReasonWorkspaceReady      = "WorkspaceReady"
	ReasonRunning             = "Running"
	ReasonAgentExited         = "AgentExited"
	ReasonNotRunning          = "NotRunning"
	ReasonConnected           = "Connected"
	ReasonSupervisionDegraded = "SupervisionDegraded"
	ReasonHeartbeatMissing    = "HeartbeatMissing"
	ReasonIsolated            = "Isolated"
	ReasonCheckpointValid     = "CheckpointValid"
	ReasonRetrying            = "Retrying"
	ReasonPodLost             = "PodLost"
	ReasonDelivering          = "Delivering"
	ReasonSuspending          = "Suspending"
	ReasonDeleting            = "Deleting"
	ReasonAwaitingInput       = "AwaitingInput"
	ReasonNoLocks             = "NoLocks"
	ReasonNoOverlap           = "NoOverlap"
	ReasonAreasOverlap        = "AreasOverlap"
	ReasonWaitingForArea      = "WaitingForArea"
	ReasonNotCompared         = "NotCompared"
	ReasonLocksHeld           = "LocksHeld"
	ReasonLockReclaimed       = "LockReclaimed"
	ReasonWaitingForLock      = "WaitingForLock"
	ReasonLockNotFree         = "LockNotFree"
	ReasonSettled             = "Settled"
	ReasonInternalError       = "InternalError"
)

// verdicts of checkpoints, in the API's own names.
const (
	verdictValid   = "Valid"
	verdictInvalid = "Invalid"
)

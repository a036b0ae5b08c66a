// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Code generated from api/v1alpha1/conditions.go by hack/gen/reasons. DO NOT EDIT.

package protocol

// Reasons of faults and final reports. They become reasons of conditions.
const (
	ReasonModeSwitched             = "ModeSwitched"
	ReasonCredentialsMissing       = "CredentialsMissing"
	ReasonHostNotListed            = "HostNotListed"
	ReasonAuthenticationFailed     = "AuthenticationFailed"
	ReasonRepositoryNotFound       = "RepositoryNotFound"
	ReasonRevisionNotFound         = "RevisionNotFound"
	ReasonObjectFormatUnsupported  = "ObjectFormatUnsupported"
	ReasonRepositoryDamaged        = "RepositoryDamaged"
	ReasonRepositoryUnreachable    = "RepositoryUnreachable"
	ReasonEgressDenied             = "EgressDenied"
	ReasonVolumeFull               = "VolumeFull"
	ReasonVolumeFenced             = "VolumeFenced"
	ReasonVolumeCorrupt            = "VolumeCorrupt"
	ReasonVolumeVersionUnsupported = "VolumeVersionUnsupported"
	ReasonPreparationFailed        = "PreparationFailed"
	ReasonNetworkOpened            = "NetworkOpened"
	ReasonCheckpointInvalid        = "CheckpointInvalid"
	ReasonCheckpointFailed         = "CheckpointFailed"
	ReasonBreakerOpen              = "BreakerOpen"
	ReasonAnswerRejected           = "AnswerRejected"
	ReasonBudgetExceeded           = "BudgetExceeded"
	ReasonAgentHeld                = "AgentHeld"
	ReasonAnomalyPersists          = "AnomalyPersists"
	ReasonAgentFailed              = "AgentFailed"
	ReasonProviderUnavailable      = "ProviderUnavailable"
	ReasonProviderAvailable        = "ProviderAvailable"
	ReasonAgentNotStarted          = "AgentNotStarted"
	ReasonAgentUnstoppable         = "AgentUnstoppable"
	ReasonRepositoryNotAllowed     = "RepositoryNotAllowed"
	ReasonBranchNotAllowed         = "BranchNotAllowed"
	ReasonHistoryInvalid           = "HistoryInvalid"
	ReasonPushConflict             = "PushConflict"
	ReasonPushRejected             = "PushRejected"
	ReasonPushFailed               = "PushFailed"
	ReasonApprovalRequired         = "ApprovalRequired"
	ReasonApprovalMismatch         = "ApprovalMismatch"
	ReasonNothingChanged           = "NothingChanged"
	ReasonDelivered                = "Delivered"
	ReasonSuspended                = "Suspended"
	ReasonSuspendedByPolicy        = "SuspendedByPolicy"
	ReasonDeleted                  = "Deleted"
	ReasonDeadlineExceeded         = "DeadlineExceeded"
	ReasonLockLost                 = "LockLost"
)

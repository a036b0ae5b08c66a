// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// This file is the one list of the names of conditions and reasons. What internal/core says of them, and the page
// docs/reference/conditions.md, is made from it: add a constant with its meaning here and run `make generate`.

// Condition types. Polarity is positive (True is well) except where the comment says "abnormal".
const (
	// ConditionAccepted: spec, policy and references are resolved; the message names what is not yet acted on.
	ConditionAccepted = "Accepted"
	// ConditionWorkspaceReady: volumes are bound, the repository is cloned and the workspace is laid out.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionAgentRunning: the agent's process lives.
	ConditionAgentRunning = "AgentRunning"
	// ConditionSupervised: the watchdog's long poll is open.
	ConditionSupervised = "Supervised"
	// ConditionIsolated: no NetworkPolicy but the Feature's own lets the agent's pod talk to more than intake and gateway.
	ConditionIsolated = "Isolated"
	// ConditionLocksHeld: the locks of the plan's contracts are held.
	ConditionLocksHeld = "LocksHeld"
	// ConditionAreasDisjoint: no other Feature that worked on the repository when the attempt started may change the same paths.
	ConditionAreasDisjoint = "AreasDisjoint"
	// ConditionDeliveriesDisjoint: no other Feature of the project has delivered a change to what this one works on since it began. It is there once one has.
	ConditionDeliveriesDisjoint = "DeliveriesDisjoint"
	// ConditionCheckpointsValid: the newest checkpoint is valid.
	ConditionCheckpointsValid = "CheckpointsValid"
	// ConditionWithinBudget: the budget is not spent.
	ConditionWithinBudget = "WithinBudget"
	// ConditionReadyToMerge: the work is done and valid.
	ConditionReadyToMerge = "ReadyToMerge"
	// ConditionDelivered: the branch is where it should be.
	ConditionDelivered = "Delivered"
	// ConditionSucceeded: the root of a Feature, derived from the others.
	ConditionSucceeded = "Succeeded"
	// ConditionReady: the root of a SupervisorPolicy, Template or Checkpoint, derived from the others.
	ConditionReady = "Ready"
	// ConditionValid: the rules of a SupervisorPolicy or the text of a Template can be used.
	ConditionValid = "Valid"
	// ConditionInUse: Features that are not at their end have a Template.
	ConditionInUse = "InUse"
	// ConditionStored: a Checkpoint's commit is in the trusted repository.
	ConditionStored = "Stored"
	// ConditionRestorable: the volume that holds a Checkpoint's commit still exists.
	ConditionRestorable = "Restorable"
	// ConditionReconciling: abnormal, kstatus: the controller is at work on the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: abnormal, kstatus: only the user can help.
	ConditionStalled = "Stalled"
	// ConditionAgentStalled: abnormal: no progress for too many turns, or in many ways.
	ConditionAgentStalled = "AgentStalled"
	// ConditionAgentLooping: abnormal: the agent repeats itself.
	ConditionAgentLooping = "AgentLooping"
	// ConditionContextPressure: abnormal: the model's window fills.
	ConditionContextPressure = "ContextPressure"
	// ConditionCascadeFailure: abnormal: different tools fail one after the other.
	ConditionCascadeFailure = "CascadeFailure"
	// ConditionPaceEscalated: abnormal: the work has fallen off its plan.
	ConditionPaceEscalated = "PaceEscalated"
)

// Reasons that the controllers give. An Event that tells of a change has the reason of the condition.
const (
	// ReasonAccepted: everything that the spec names exists and is acted on.
	ReasonAccepted = "Accepted"
	// ReasonPartlyActedOn: accepted, but the message names fields that this version does not act on yet.
	ReasonPartlyActedOn = "PartlyActedOn"
	// ReasonRuntimeNotAvailable: spec.agent.runtime is not known or not available in this version.
	ReasonRuntimeNotAvailable = "RuntimeNotAvailable"
	// ReasonPromptNotFound: the ConfigMap or key of spec.promptFrom does not exist.
	ReasonPromptNotFound = "PromptNotFound"
	// ReasonOrdersTooLarge: the prompt, the instructions, the plan or the policy are too large for the agent's pod; the message has the number and says what to shorten.
	ReasonOrdersTooLarge = "OrdersTooLarge"
	// ReasonModelNotAvailable: a gateway has no backend in force that speaks the runtime's dialect, or none that the policy names, or no key for it.
	ReasonModelNotAvailable = "ModelNotAvailable"
	// ReasonPolicyInvalid: an applicable SupervisorPolicy cannot be used.
	ReasonPolicyInvalid = "PolicyInvalid"
	// ReasonPolicyConflict: policies of equal scope and priority disagree, or one sets what it may not; the message names the value.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonModeFallback: the runtime cannot run in the execution mode that is asked for; the message names the one that it runs in.
	ReasonModeFallback = "ModeFallback"
	// ReasonRoleNotAllowed: the policies that apply do not allow the role of spec.agent (agents.allowedRoles).
	ReasonRoleNotAllowed = "RoleNotAllowed"
	// ReasonModelProviderNotAllowed: spec.agent.env or egress.agent of a policy would have the agent reach a provider of models beside the gateway
	// (egress.modelProviders).
	ReasonModelProviderNotAllowed = "ModelProviderNotAllowed"
	// ReasonVolumesRequired: a policy requires an approval, and ephemeral volumes do not keep the work until then.
	ReasonVolumesRequired = "VolumesRequired"
	// ReasonModeNotAvailable: the runtime cannot run in the execution mode that is asked for, nor in a stricter one.
	ReasonModeNotAvailable = "ModeNotAvailable"
	// ReasonNotYetReported: nothing is known yet.
	ReasonNotYetReported = "NotYetReported"
	// ReasonAtCapacity: as many Features of the project run as the policy allows.
	ReasonAtCapacity = "AtCapacity"
	// ReasonAtTotalCapacity: as many Features of all projects run as the policy allows.
	ReasonAtTotalCapacity = "AtTotalCapacity"
	// ReasonSystemNotReady: intake or gateway has no address yet.
	ReasonSystemNotReady = "SystemNotReady"
	// ReasonPreparing: volumes, pod and workspace are being created.
	ReasonPreparing = "Preparing"
	// ReasonUnschedulable: no node takes the pod; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"
	// ReasonVolumePending: a volume is not bound.
	ReasonVolumePending = "VolumePending"
	// ReasonImageUnavailable: a container's image cannot be pulled.
	ReasonImageUnavailable = "ImageUnavailable"
	// ReasonContainerNotStarted: a container cannot be started; the message is the kubelet's.
	ReasonContainerNotStarted = "ContainerNotStarted"
	// ReasonPodRejected: admission or quota refuses the Job's pod.
	ReasonPodRejected = "PodRejected"
	// ReasonPodStuckTerminating: a pod should be gone and is not, and nothing new may start beside it; the message names pod and node.
	ReasonPodStuckTerminating = "PodStuckTerminating"
	// ReasonObjectRejected: the API server refuses an object that the Feature needs (quota, admission); the message is its.
	ReasonObjectRejected = "ObjectRejected"
	// ReasonNameCollision: an object that the Feature needs has the name of one that belongs to something else.
	ReasonNameCollision = "NameCollision"
	// ReasonAwaitingInput: the agent asked a question; spec.answers takes the reply.
	ReasonAwaitingInput = "AwaitingInput"
	// ReasonWorkspaceReady: the workspace is laid out.
	ReasonWorkspaceReady = "WorkspaceReady"
	// ReasonRunning: the agent works.
	ReasonRunning = "Running"
	// ReasonAgentExited: the agent's process ended.
	ReasonAgentExited = "AgentExited"
	// ReasonNotRunning: there is no attempt.
	ReasonNotRunning = "NotRunning"
	// ReasonConnected: the watchdog's long poll is open.
	ReasonConnected = "Connected"
	// ReasonSupervisionDegraded: the watchdog works around a problem of its own (watcher, capture, judge, disk, file events, reports); it may promote less or be
	// slower, and its judgement is not affected.
	ReasonSupervisionDegraded = "SupervisionDegraded"
	// ReasonHeartbeatMissing: no word from the watchdog for 30 seconds; it continues supervising by itself.
	ReasonHeartbeatMissing = "HeartbeatMissing"
	// ReasonIsolated: no other NetworkPolicy opens the network of the agent's pod.
	ReasonIsolated = "Isolated"
	// ReasonCheckpointValid: the newest checkpoint is valid.
	ReasonCheckpointValid = "CheckpointValid"
	// ReasonRetrying: another attempt follows.
	ReasonRetrying = "Retrying"
	// ReasonPodLost: the pod ended or went away before its final report; another attempt follows.
	ReasonPodLost = "PodLost"
	// ReasonPodEnded: the pod ended by itself again and again, before its final report; the retries are used up.
	ReasonPodEnded = "PodEnded"
	// ReasonAwaitingRestart: the pod of the attempt was lost, and supervision.restartMode is Ask: the next attempt starts when a user requests a retry.
	ReasonAwaitingRestart = "AwaitingRestart"
	// ReasonPodOrphaned: the pod of the attempt lost its Job and is ended; another attempt follows.
	ReasonPodOrphaned = "PodOrphaned"
	// ReasonDelivering: the branch is being pushed.
	ReasonDelivering = "Delivering"
	// ReasonSuspending: the watchdog takes a last checkpoint.
	ReasonSuspending = "Suspending"
	// ReasonDeleting: the Feature is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonNoLocks: the plan names no contracts.
	ReasonNoLocks = "NoLocks"
	// ReasonLocksHeld: the locks of the plan's contracts are held.
	ReasonLocksHeld = "LocksHeld"
	// ReasonLockReclaimed: held; the message names the Feature whose lease had expired and was taken over.
	ReasonLockReclaimed = "LockReclaimed"
	// ReasonWaitingForLock: another Feature holds the lock of a contract of the same repository, or comes first; the message names both.
	ReasonWaitingForLock = "WaitingForLock"
	// ReasonLockNotFree: the same, and the policy says not to wait (concurrency.onLockConflict Fail).
	ReasonLockNotFree = "LockNotFree"
	// ReasonNoOverlap: the areas of no other Feature at work on the repository overlap.
	ReasonNoOverlap = "NoOverlap"
	// ReasonAreasOverlap: another Feature at work on the repository may change the same paths; the message names it and the patterns.
	ReasonAreasOverlap = "AreasOverlap"
	// ReasonWaitingForArea: the same, and the policy says to wait for it (concurrency.onOverlap Wait).
	ReasonWaitingForArea = "WaitingForArea"
	// ReasonNotCompared: the policy lets areas overlap (concurrency.onOverlap Allow).
	ReasonNotCompared = "NotCompared"
	// ReasonDeliveryTouches: another Feature of the project has delivered a change to what this one works on; the message names commit and paths.
	ReasonDeliveryTouches = "DeliveryTouches"
	// ReasonNoBudget: neither a policy nor the Feature sets a budget.
	ReasonNoBudget = "NoBudget"
	// ReasonWithinBudget: no budget that applies has been used up.
	ReasonWithinBudget = "WithinBudget"
	// ReasonBudgetNearlySpent: as much of a budget is used as the policy warns at; the message names it.
	ReasonBudgetNearlySpent = "BudgetNearlySpent"
	// ReasonNoAnomaly: nothing out of the ordinary was seen.
	ReasonNoAnomaly = "NoAnomaly"
	// ReasonNoProgress: the agent's turns bring nothing new, or lead nowhere, or nothing moves at all; the message has the evidence, and what was done.
	ReasonNoProgress = "NoProgress"
	// ReasonRepeating: the agent does the same again and again; the message has the evidence, and what was done.
	ReasonRepeating = "Repeating"
	// ReasonWindowFilling: most of the model's window is used, or will be soon; the message has the figures, and what was done.
	ReasonWindowFilling = "WindowFilling"
	// ReasonToolsFailing: different tools of the agent fail one after the other; the message has the evidence, and what was done.
	ReasonToolsFailing = "ToolsFailing"
	// ReasonOffPlan: the plan of the agent's role does not work; the message has the level, the evidence, and what was done.
	ReasonOffPlan = "OffPlan"
	// ReasonValid: the object can be used.
	ReasonValid = "Valid"
	// ReasonInvalid: the object cannot be used; the message names the field.
	ReasonInvalid = "Invalid"
	// ReasonInUse: Features have the Template; status.features has their number.
	ReasonInUse = "InUse"
	// ReasonNotInUse: no Feature has the Template.
	ReasonNotInUse = "NotInUse"
	// ReasonConfigMapNotFound: the ConfigMap or key that a Template names does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonStored: the commit is in the trusted repository.
	ReasonStored = "Stored"
	// ReasonVolumeGone: the volume that held the commit is gone.
	ReasonVolumeGone = "VolumeGone"
	// ReasonSettled: the controller has nothing left to do for the spec.
	ReasonSettled = "Settled"
	// ReasonInternalError: something of Tidewaiter's own failed; it is tried again.
	ReasonInternalError = "InternalError"
)

// Reasons that a watchdog reports with a fault or at the end of a run, and those that it is told to end for. They become
// reasons of conditions like the others.
const (
	// ReasonModeSwitched: the next task runs in another execution mode: another attempt, with other mounts, is about to start.
	ReasonModeSwitched = "ModeSwitched"
	// ReasonCredentialsMissing: the repository's Secret, or a key of it, does not exist.
	ReasonCredentialsMissing = "CredentialsMissing"
	// ReasonHostNotListed: the repository's Secret lists the hosts that it may be sent to, and the repository's is not among them; the message has both.
	ReasonHostNotListed = "HostNotListed"
	// ReasonAuthenticationFailed: the Git server refuses the credentials.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonRepositoryNotFound: the Git server has no such repository.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonRevisionNotFound: the repository has no such branch, tag or commit.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonObjectFormatUnsupported: the repository on the Git server has SHA-256 object names, and only SHA-1 is supported. It is tried once, and no agent starts.
	ReasonObjectFormatUnsupported = "ObjectFormatUnsupported"
	// ReasonRepositoryDamaged: the Git server sends a history that lacks an object, or has one that Git's checks (git fsck) refuse; the message names it. It is tried once, and no agent starts.
	ReasonRepositoryDamaged = "RepositoryDamaged"
	// ReasonRepositoryUnreachable: the Git server does not answer, or not as a Git server.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonEgressDenied: no policy lets the gateway reach the Git host.
	ReasonEgressDenied = "EgressDenied"
	// ReasonVolumeFull: the trusted volume is full.
	ReasonVolumeFull = "VolumeFull"
	// ReasonVolumeFenced: a newer attempt owns the volume.
	ReasonVolumeFenced = "VolumeFenced"
	// ReasonVolumeCorrupt: the journal or repository on the trusted volume is damaged; the message says where.
	ReasonVolumeCorrupt = "VolumeCorrupt"
	// ReasonPreparationFailed: the workspace cannot be prepared, for a reason that has no name of its own; the message has the words of Git or of the system. It is tried for an hour.
	ReasonPreparationFailed = "PreparationFailed"
	// ReasonNetworkOpened: another NetworkPolicy selects the agent's pod and allows more than intake and gateway; the message names it. With isolation Enforce no agent runs.
	ReasonNetworkOpened = "NetworkOpened"
	// ReasonCheckpointInvalid: the newest checkpoint breaks a rule; the message names rule, path and what to do.
	ReasonCheckpointInvalid = "CheckpointInvalid"
	// ReasonCheckpointFailed: a checkpoint could not be captured or judged.
	ReasonCheckpointFailed = "CheckpointFailed"
	// ReasonBreakerOpen: several checkpoints in a row could not be captured or judged.
	ReasonBreakerOpen = "BreakerOpen"
	// ReasonAnswerRejected: what the model answers breaks the rules of Output templates, also when it is asked again; the message says which.
	ReasonAnswerRejected = "AnswerRejected"
	// ReasonBudgetExceeded: a budget leaves too little for the next model call; the message names it. The agent is frozen until there is more.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonAgentHeld: an anomaly went on, and the agent's next model call is held; the message says why. The agent is frozen until a person has looked, or until a time that the policy sets.
	ReasonAgentHeld = "AgentHeld"
	// ReasonAnomalyPersists: an anomaly went on after everything that the policy's ladder allows; the message has the evidence. The agent was ended, and a person decides.
	ReasonAnomalyPersists = "AnomalyPersists"
	// ReasonAgentFailed: the agent exited with an error and no retries are left.
	ReasonAgentFailed = "AgentFailed"
	// ReasonProviderUnavailable: the agent's model calls are answered with errors that are not its own. In AgentStalled: the agent is not to blame, and nothing is done about it. Where the agent has ended for that, no retry is spent: another attempt follows after a pause that grows, and the message says what happened, what to do and when. See failures.md.
	ReasonProviderUnavailable = "ProviderUnavailable"
	// ReasonProviderAvailable: of an Event of the ConfigMap tidewaiter-backends: a backend that was out for all Features answers again.
	ReasonProviderAvailable = "ProviderAvailable"
	// ReasonAgentNotStarted: the agent's command could not be started.
	ReasonAgentNotStarted = "AgentNotStarted"
	// ReasonAgentUnstoppable: the agent's processes could not be stopped, so their container was ended.
	ReasonAgentUnstoppable = "AgentUnstoppable"
	// ReasonRepositoryNotAllowed: the policies that apply do not allow the repository of spec.repository (git.repositories).
	ReasonRepositoryNotAllowed = "RepositoryNotAllowed"
	// ReasonBranchNotAllowed: the policies that apply do not allow the branch that is to be delivered (delivery.branches).
	ReasonBranchNotAllowed = "BranchNotAllowed"
	// ReasonHistoryInvalid: an earlier commit of the delivery breaks a rule of the policy in effect now, and delivery.history is Hold.
	ReasonHistoryInvalid = "HistoryInvalid"
	// ReasonPushConflict: the branch on the server holds commits that the delivery does not; nothing is overwritten.
	ReasonPushConflict = "PushConflict"
	// ReasonPushRejected: a rule of the Git server (a protected branch, a hook, a quota) refuses the branch; the message has its words. It is tried once.
	ReasonPushRejected = "PushRejected"
	// ReasonPushFailed: the Git server did not take the branch, however often it was tried.
	ReasonPushFailed = "PushFailed"
	// ReasonApprovalRequired: the head waits for spec.delivery.approvedCommit.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonApprovalMismatch: spec.delivery.approvedCommit is not the head.
	ReasonApprovalMismatch = "ApprovalMismatch"
	// ReasonNothingChanged: the work changed no file.
	ReasonNothingChanged = "NothingChanged"
	// ReasonDelivered: the branch is where it should be.
	ReasonDelivered = "Delivered"
	// ReasonSuspended: spec.suspend ended the pod.
	ReasonSuspended = "Suspended"
	// ReasonSuspendedByPolicy: spec.suspend of a SupervisorPolicy ended the pod, or starts none; the message names the policy.
	ReasonSuspendedByPolicy = "SuspendedByPolicy"
	// ReasonDeleted: the Feature was deleted while its pod ran; the watchdog took a last checkpoint.
	ReasonDeleted = "Deleted"
	// ReasonDeadlineExceeded: the running time is over spec.activeDeadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonLockLost: the Feature's lease expired and was reclaimed; its agent was stopped.
	ReasonLockLost = "LockLost"
)

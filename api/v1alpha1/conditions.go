// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// This file is the one list of the names of conditions and reasons. What internal/core says of them, and the page
// docs/reference/conditions.md, is made from it: add a constant with its meaning here and run `make generate`.

// Condition types. Polarity is positive (True is well) except where the comment says "abnormal".
const (
	// ConditionAccepted: spec, policy and references resolve; the message names what this version does not act on yet.
	ConditionAccepted = "Accepted"
	// ConditionWorkspaceReady: the volumes are ready, and the workspace has a clone of the repository.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionAgentRunning: the agent's process lives.
	ConditionAgentRunning = "AgentRunning"
	// ConditionSupervised: the watchdog's long poll is open.
	ConditionSupervised = "Supervised"
	// ConditionIsolated: no other NetworkPolicy lets the agent's pod talk to more than intake and gateway.
	ConditionIsolated = "Isolated"
	// ConditionLocksHeld: the Feature holds the locks of the plan's contracts.
	ConditionLocksHeld = "LocksHeld"
	// ConditionAreasDisjoint: no other Feature that worked on the repository when the attempt started may change the same paths.
	ConditionAreasDisjoint = "AreasDisjoint"
	// ConditionDeliveriesDisjoint: no other Feature of the project has delivered a change to what this one works on since it began. The condition exists once one has.
	ConditionDeliveriesDisjoint = "DeliveriesDisjoint"
	// ConditionPlanned: a model has divided the work. The condition exists for Features whose spec.planning is not None.
	ConditionPlanned = "Planned"
	// ConditionGatesPassed: every gate has passed on the work, after the tasks and before the delivery; gates of aborted tasks do not count. The condition exists for Features that have gates.
	ConditionGatesPassed = "GatesPassed"
	// ConditionReviewersHeeded: agents of the project have addressed at least 30 % of the last 20 directives of each reviewer. The condition exists once a reviewer that runs has given 20; the message has the figures.
	ConditionReviewersHeeded = "ReviewersHeeded"
	// ConditionKnowledgeNeedsReview: reviewers have written documents that agents get only after a user has merged them. The message names the documents. The condition exists only while it is True.
	ConditionKnowledgeNeedsReview = "KnowledgeNeedsReview"
	// ConditionSupervisorCostInBounds: plans and reviews (the role supervisor) have no more than reviewers.costAlertPercent of what the model calls of the Feature have cost. The condition exists once they have had more; the message has the share.
	ConditionSupervisorCostInBounds = "SupervisorCostInBounds"
	// ConditionCheckpointsValid: the newest checkpoint is valid.
	ConditionCheckpointsValid = "CheckpointsValid"
	// ConditionWithinBudget: the budget has something left.
	ConditionWithinBudget = "WithinBudget"
	// ConditionReadyToMerge: the work is done and valid.
	ConditionReadyToMerge = "ReadyToMerge"
	// ConditionDelivered: the branch is where it should be.
	ConditionDelivered = "Delivered"
	// ConditionSucceeded: the root of a Feature, which follows from the other conditions.
	ConditionSucceeded = "Succeeded"
	// ConditionReady: the root of a SupervisorPolicy, Template or Checkpoint, which follows from the other conditions.
	ConditionReady = "Ready"
	// ConditionValid: the rules of a SupervisorPolicy or the text of a Template are usable.
	ConditionValid = "Valid"
	// ConditionInUse: Features that are not at their end have the Template.
	ConditionInUse = "InUse"
	// ConditionStored: a Checkpoint's commit is in the trusted repository.
	ConditionStored = "Stored"
	// ConditionRestorable: the volume that holds a Checkpoint's commit still exists.
	ConditionRestorable = "Restorable"
	// ConditionReconciling: abnormal, kstatus: the controller is at work on the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: abnormal, kstatus: only the user can help.
	ConditionStalled = "Stalled"
	// ConditionAgentStalled: abnormal: the agent makes no progress for too many turns, or in many ways.
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
	// ReasonAccepted: everything that the spec names exists, and Tidewaiter acts on it.
	ReasonAccepted = "Accepted"
	// ReasonPartlyActedOn: accepted, but an earlier version has stored fields that this version does not act on. The message names them.
	ReasonPartlyActedOn = "PartlyActedOn"
	// ReasonRuntimeNotAvailable: this version does not know the runtime of spec.agent.runtime, or does not have it.
	ReasonRuntimeNotAvailable = "RuntimeNotAvailable"
	// ReasonPromptNotFound: the ConfigMap or key of spec.promptFrom does not exist.
	ReasonPromptNotFound = "PromptNotFound"
	// ReasonOrdersTooLarge: the prompt, the instructions, the plan or the policy are too large for the agent's pod. The message has the number and says what to shorten.
	ReasonOrdersTooLarge = "OrdersTooLarge"
	// ReasonModelNotAvailable: no backend in force speaks the runtime's dialect, the backend that the policy names is not in force, or it has no key.
	ReasonModelNotAvailable = "ModelNotAvailable"
	// ReasonPolicyInvalid: an applicable SupervisorPolicy is not usable.
	ReasonPolicyInvalid = "PolicyInvalid"
	// ReasonPolicyConflict: policies of equal scope and priority disagree, or one sets a value that it has no right to; the message names the value.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonModeFallback: the runtime cannot run in the requested execution mode; the message names the mode that it runs in.
	ReasonModeFallback = "ModeFallback"
	// ReasonRoleNotAllowed: the policies that apply do not allow the role of spec.agent (agents.allowedRoles).
	ReasonRoleNotAllowed = "RoleNotAllowed"
	// ReasonModelProviderNotAllowed: with spec.agent.env, the environment of a gate, or egress.agent of a policy, the agent would reach a model provider directly instead of through the gateway (egress.modelProviders).
	ReasonModelProviderNotAllowed = "ModelProviderNotAllowed"
	// ReasonVolumesRequired: a policy requires an approval or gates before the delivery, and ephemeral volumes do not keep the work until then.
	ReasonVolumesRequired = "VolumesRequired"
	// ReasonModeNotAvailable: the runtime can run neither in the requested execution mode nor in a stricter one.
	ReasonModeNotAvailable = "ModeNotAvailable"
	// ReasonNotYetReported: no report has come yet.
	ReasonNotYetReported = "NotYetReported"
	// ReasonAtCapacity: as many Features of the project run as the policy allows.
	ReasonAtCapacity = "AtCapacity"
	// ReasonAtTotalCapacity: as many Features of all projects run as the policy allows.
	ReasonAtTotalCapacity = "AtTotalCapacity"
	// ReasonSystemNotReady: intake or gateway has no address yet.
	ReasonSystemNotReady = "SystemNotReady"
	// ReasonPreparing: Tidewaiter creates volumes, pod and workspace.
	ReasonPreparing = "Preparing"
	// ReasonUnschedulable: no node takes the pod; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"
	// ReasonVolumePending: a volume waits for its storage.
	ReasonVolumePending = "VolumePending"
	// ReasonImageUnavailable: the kubelet cannot pull a container's image.
	ReasonImageUnavailable = "ImageUnavailable"
	// ReasonContainerNotStarted: the kubelet cannot start a container; the message is the kubelet's.
	ReasonContainerNotStarted = "ContainerNotStarted"
	// ReasonPodRejected: admission or quota refuses the Job's pod.
	ReasonPodRejected = "PodRejected"
	// ReasonPodStuckTerminating: a pod should be gone and is still there, and Tidewaiter starts no other pod next to it; the message names pod and node.
	ReasonPodStuckTerminating = "PodStuckTerminating"
	// ReasonObjectRejected: the API server refuses an object that the Feature needs (quota, admission); the message is its.
	ReasonObjectRejected = "ObjectRejected"
	// ReasonNameCollision: an object that the Feature needs has the name of one that belongs to something else.
	ReasonNameCollision = "NameCollision"
	// ReasonWorkspaceReady: the workspace is ready for the agent.
	ReasonWorkspaceReady = "WorkspaceReady"
	// ReasonRunning: the agent works.
	ReasonRunning = "Running"
	// ReasonAgentExited: the agent's process ended.
	ReasonAgentExited = "AgentExited"
	// ReasonNotRunning: no attempt runs.
	ReasonNotRunning = "NotRunning"
	// ReasonConnected: the watchdog's long poll is open.
	ReasonConnected = "Connected"
	// ReasonSupervisionDegraded: the watchdog works around a problem of its own (watcher, capture, rules, disk, file events, reports). It may promote less or be slower; its verdicts stay the same.
	ReasonSupervisionDegraded = "SupervisionDegraded"
	// ReasonHeartbeatMissing: the manager has heard nothing from the watchdog for 30 seconds; the watchdog continues supervising by itself.
	ReasonHeartbeatMissing = "HeartbeatMissing"
	// ReasonIsolated: no other NetworkPolicy opens the network of the agent's pod.
	ReasonIsolated = "Isolated"
	// ReasonCheckpointValid: the newest checkpoint is valid.
	ReasonCheckpointValid = "CheckpointValid"
	// ReasonRetrying: another attempt follows.
	ReasonRetrying = "Retrying"
	// ReasonPodLost: the pod ended or went away before its final report; another attempt follows.
	ReasonPodLost = "PodLost"
	// ReasonPodEnded: the pod ended by itself again and again, before its final report, and no retries are left.
	ReasonPodEnded = "PodEnded"
	// ReasonAwaitingRestart: the cluster lost the pod of the attempt, and supervision.restartMode is Ask: the next attempt starts when a user requests a retry.
	ReasonAwaitingRestart = "AwaitingRestart"
	// ReasonPodOrphaned: the pod of the attempt lost its Job, and the manager ends it; another attempt follows.
	ReasonPodOrphaned = "PodOrphaned"
	// ReasonDelivering: the watchdog pushes the branch.
	ReasonDelivering = "Delivering"
	// ReasonSuspending: the watchdog takes a last checkpoint.
	ReasonSuspending = "Suspending"
	// ReasonDeleting: the deletion of the Feature is under way.
	ReasonDeleting = "Deleting"
	// ReasonNoLocks: the plan names no contracts.
	ReasonNoLocks = "NoLocks"
	// ReasonLocksHeld: the Feature holds the locks of the plan's contracts.
	ReasonLocksHeld = "LocksHeld"
	// ReasonLockReclaimed: the Feature holds the locks; the message names the Feature whose lease had expired, and from which this one took a lock over.
	ReasonLockReclaimed = "LockReclaimed"
	// ReasonWaitingForLock: another Feature holds the lock of a contract of the same repository, or comes first; the message names both.
	ReasonWaitingForLock = "WaitingForLock"
	// ReasonLockNotFree: another Feature holds the lock or comes first, and the policy says not to wait (concurrency.onLockConflict Fail).
	ReasonLockNotFree = "LockNotFree"
	// ReasonNoOverlap: the areas of no other Feature at work on the repository overlap.
	ReasonNoOverlap = "NoOverlap"
	// ReasonAreasOverlap: another Feature at work on the repository may change the same paths; the message names it and the patterns.
	ReasonAreasOverlap = "AreasOverlap"
	// ReasonWaitingForArea: another Feature at work on the repository may change the same paths, and the policy says to wait for it (concurrency.onOverlap Wait).
	ReasonWaitingForArea = "WaitingForArea"
	// ReasonNotCompared: the policy lets areas overlap (concurrency.onOverlap Allow).
	ReasonNotCompared = "NotCompared"
	// ReasonDirectivesAddressed: agents of the project address the directives of reviewers often enough.
	ReasonDirectivesAddressed = "DirectivesAddressed"
	// ReasonFewDirectivesAddressed: agents of the project have addressed fewer than 30 % of the last 20 directives of a reviewer, which looks only when a milestone is complete. The message names it.
	ReasonFewDirectivesAddressed = "FewDirectivesAddressed"
	// ReasonDocumentsWritten: reviewers have written documents that a user has to read.
	ReasonDocumentsWritten = "DocumentsWritten"
	// ReasonSupervisorCostLow: plans and reviews have no more than the share of reviewers.costAlertPercent.
	ReasonSupervisorCostLow = "SupervisorCostLow"
	// ReasonSupervisorCostHigh: plans and reviews have more than the share of reviewers.costAlertPercent. The work continues, and reviewers still look.
	ReasonSupervisorCostHigh = "SupervisorCostHigh"
	// ReasonDeliveryTouches: another Feature of the project has delivered a change to what this one works on; the message names commit and paths.
	ReasonDeliveryTouches = "DeliveryTouches"
	// ReasonPlanning: a model makes a plan before the first task starts.
	ReasonPlanning = "Planning"
	// ReasonGatesPassed: every gate has passed on the work; gates of aborted tasks do not count.
	ReasonGatesPassed = "GatesPassed"
	// ReasonGatesPending: gates have not run yet on the work as it is now, and no newest result of a gate is a failure.
	ReasonGatesPending = "GatesPending"
	// ReasonPlanProposed: a model has proposed a plan, and Tidewaiter follows it without an approval (spec.planning Auto); status.run.plan has it.
	ReasonPlanProposed = "PlanProposed"
	// ReasonPlanApproved: a model has proposed the plan, and a user has approved it.
	ReasonPlanApproved = "PlanApproved"
	// ReasonNoBudget: neither a policy nor the Feature sets a budget.
	ReasonNoBudget = "NoBudget"
	// ReasonWithinBudget: every budget that applies has something left.
	ReasonWithinBudget = "WithinBudget"
	// ReasonBudgetNearlySpent: the models have used as much of a budget as the policy warns at; the message names it.
	ReasonBudgetNearlySpent = "BudgetNearlySpent"
	// ReasonNoAnomaly: the watchdog saw nothing unusual.
	ReasonNoAnomaly = "NoAnomaly"
	// ReasonNoProgress: the agent's turns lead nowhere or bring no news, or everything stands still; the message has the evidence, and what the watchdog did.
	ReasonNoProgress = "NoProgress"
	// ReasonRepeating: the agent does the same again and again; the message has the evidence, and what the watchdog did.
	ReasonRepeating = "Repeating"
	// ReasonWindowFilling: the conversation fills most of the model's window, or will soon; the message has the figures, and what the watchdog did.
	ReasonWindowFilling = "WindowFilling"
	// ReasonToolsFailing: different tools of the agent fail one after the other; the message has the evidence, and what the watchdog did.
	ReasonToolsFailing = "ToolsFailing"
	// ReasonOffPlan: the plan of the agent's role does not work; the message has the level, the evidence, and what the watchdog did.
	ReasonOffPlan = "OffPlan"
	// ReasonValid: the object is usable.
	ReasonValid = "Valid"
	// ReasonInvalid: the object is not usable; the message names the field.
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
	// ReasonInternalError: something of Tidewaiter's own failed; Tidewaiter tries again.
	ReasonInternalError = "InternalError"
)

// Reasons that a watchdog reports with a fault or at the end of a run, and those for which the manager tells it to end. They become
// reasons of conditions like the others.
const (
	// ReasonAwaitingInput: the agent asked a question; spec.answers takes the reply.
	ReasonAwaitingInput = "AwaitingInput"
	// ReasonPlanApprovalRequired: a model has proposed a plan (spec.planning Approve), and no agent starts before a user approves it with a request approvePlan.
	ReasonPlanApprovalRequired = "PlanApprovalRequired"
	// ReasonPlanDiverged: the assessor finds that the work diverges from the request or the plan, and no model makes another plan. The message says why and what to do. The work is kept.
	ReasonPlanDiverged = "PlanDiverged"
	// ReasonPlannerUnavailable: no model has proposed a plan that can be used; the message says why. With spec.planning Auto the work continues without a plan.
	ReasonPlannerUnavailable = "PlannerUnavailable"
	// ReasonModeSwitched: the next task runs in another execution mode: another attempt, with other mounts, is about to start.
	ReasonModeSwitched = "ModeSwitched"
	// ReasonCredentialsMissing: the repository's Secret, or a key of it, does not exist.
	ReasonCredentialsMissing = "CredentialsMissing"
	// ReasonHostNotListed: the repository's Secret lists the hosts that may get it, and the repository's host is not among them; the message has both.
	ReasonHostNotListed = "HostNotListed"
	// ReasonAuthenticationFailed: the Git server refuses the credentials.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonRepositoryNotFound: the Git server has no such repository.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonRevisionNotFound: the repository has no such branch, tag or commit.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonObjectFormatUnsupported: the repository on the Git server has SHA-256 object names, and Tidewaiter only supports SHA-1. It tries once, and starts no agent.
	ReasonObjectFormatUnsupported = "ObjectFormatUnsupported"
	// ReasonRepositoryDamaged: the Git server sends a history that lacks an object, or has one that Git's checks (git fsck) refuse; the message names it. Tidewaiter tries once, and starts no agent.
	ReasonRepositoryDamaged = "RepositoryDamaged"
	// ReasonRepositoryUnreachable: the Git server does not answer, or not as a Git server.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonEgressDenied: no policy lets the gateway reach the Git host.
	ReasonEgressDenied = "EgressDenied"
	// ReasonVolumeFull: the trusted volume is full.
	ReasonVolumeFull = "VolumeFull"
	// ReasonVolumeFenced: a newer attempt owns the volume.
	ReasonVolumeFenced = "VolumeFenced"
	// ReasonVolumeCorrupt: the journal or repository on the trusted volume has damage; the message says where.
	ReasonVolumeCorrupt = "VolumeCorrupt"
	// ReasonVolumeVersionUnsupported: a later version of Tidewaiter has written to the trusted volume, and this version leaves it as it is.
	ReasonVolumeVersionUnsupported = "VolumeVersionUnsupported"
	// ReasonPreparationFailed: Tidewaiter cannot prepare the workspace, for a reason without a name of its own; the message has the text of Git or of the system. It tries for an hour.
	ReasonPreparationFailed = "PreparationFailed"
	// ReasonNetworkOpened: another NetworkPolicy selects the agent's pod and allows more than intake and gateway; the message names it. With isolation Enforce neither an agent nor a gate in a pod of its own runs.
	ReasonNetworkOpened = "NetworkOpened"
	// ReasonCheckpointInvalid: the newest checkpoint breaks a rule; the message names rule, path and what to do.
	ReasonCheckpointInvalid = "CheckpointInvalid"
	// ReasonCheckpointFailed: the watchdog could not capture or check a checkpoint.
	ReasonCheckpointFailed = "CheckpointFailed"
	// ReasonBreakerOpen: the watchdog could not capture or check several checkpoints in a row.
	ReasonBreakerOpen = "BreakerOpen"
	// ReasonAnswerRejected: the model's answer breaks the rules of Output templates, also when the gateway asks again; the message says which.
	ReasonAnswerRejected = "AnswerRejected"
	// ReasonBudgetExceeded: a budget leaves too little for the next model call; the message names it. The watchdog freezes the agent until there is more.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonAgentHeld: an anomaly continued, and the watchdog holds the agent's next model call; the message says why. The watchdog freezes the agent until a user has looked, or until a time that the policy sets.
	ReasonAgentHeld = "AgentHeld"
	// ReasonAnomalyPersists: an anomaly continued after everything that the policy's ladder allows; the message has the evidence. The watchdog has stopped the agent, and a user decides.
	ReasonAnomalyPersists = "AnomalyPersists"
	// ReasonAgentFailed: the agent exited with an error and no retries are left.
	ReasonAgentFailed = "AgentFailed"
	// ReasonProviderUnavailable: the agent's model calls fail with errors that are not its own. In AgentStalled: the agent is not to blame, and the watchdog does nothing about it. If the agent ended because of such errors, it spends no retry: another attempt follows after a pause that grows. The message says what happened, what to do and when. See failures.md.
	ReasonProviderUnavailable = "ProviderUnavailable"
	// ReasonProviderAvailable: for an Event of the ConfigMap tidewaiter-backends: a backend that failed for all Features answers again.
	ReasonProviderAvailable = "ProviderAvailable"
	// ReasonReviewed: for an Event of a Feature: a reviewer has looked at the work. The message says what it found, and status.run.directives has its directives.
	ReasonReviewed = "Reviewed"
	// ReasonReviewSkipped: for an Event of a Feature: the model of a reviewer did not answer, or not in a form that Tidewaiter can use. The work continues without the review, and its urgency stays.
	ReasonReviewSkipped = "ReviewSkipped"
	// ReasonDirectiveEscalated: for an Event of a Feature: a reviewer's directive is Escalated. The agent says that it cannot address it, the reviewer still finds it in the work after two answers of the agent, or the task for it could not be done. The message says which, and a user decides what to do about it.
	ReasonDirectiveEscalated = "DirectiveEscalated"
	// ReasonKnowledgeLeftOut: for an Event of a Feature: agents do not get documents below docs/knowledge, because these do not keep to the format. The message names each document and what to do.
	ReasonKnowledgeLeftOut = "KnowledgeLeftOut"
	// ReasonAgentNotStarted: the watchdog could not start the agent's command.
	ReasonAgentNotStarted = "AgentNotStarted"
	// ReasonProving: a gate runs in a pod where no agent has been, or is about to: before the delivery or, in Deterministic mode, after a task.
	ReasonProving = "Proving"
	// ReasonCorrecting: gates in pods of their own have failed, and an agent is about to start to correct the work; or there is another task.
	ReasonCorrecting = "Correcting"
	// ReasonGateFailed: gates of a task or before the delivery have failed; the message names gate and exit code. In Succeeded, the agent has spent its corrections (supervision.maxCorrections).
	ReasonGateFailed = "GateFailed"
	// ReasonGateNotStarted: the command of a gate could not be started (exit code 126 or 127); the message says why. Correct the gate in spec.gates or in the policy, or the image.
	ReasonGateNotStarted = "GateNotStarted"
	// ReasonTasksAborted: every task was aborted (onTaskAborted: Continue), so there is nothing to deliver; the message names the tasks. A retry begins them again.
	ReasonTasksAborted = "TasksAborted"
	// ReasonAgentUnstoppable: the watchdog could not stop the agent's processes, so it ended their container.
	ReasonAgentUnstoppable = "AgentUnstoppable"
	// ReasonRepositoryNotAllowed: the policies that apply do not allow the repository of spec.repository (git.repositories).
	ReasonRepositoryNotAllowed = "RepositoryNotAllowed"
	// ReasonBranchNotAllowed: the policies that apply do not allow the branch to deliver (delivery.branches).
	ReasonBranchNotAllowed = "BranchNotAllowed"
	// ReasonHistoryInvalid: an earlier commit of the delivery breaks a rule of the policy in effect now, and delivery.history is Hold.
	ReasonHistoryInvalid = "HistoryInvalid"
	// ReasonPushConflict: the branch on the server holds commits that the delivery does not; the watchdog overwrites nothing.
	ReasonPushConflict = "PushConflict"
	// ReasonPushRejected: a rule of the Git server (a protected branch, a hook, a quota) refuses the branch; the message has the server's text. The watchdog tries once.
	ReasonPushRejected = "PushRejected"
	// ReasonPushFailed: the Git server did not take the branch in any of several tries.
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
	// ReasonDeleted: the deletion of the Feature came while its pod ran; the watchdog took a last checkpoint.
	ReasonDeleted = "Deleted"
	// ReasonDeadlineExceeded: the running time is over spec.activeDeadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonLockLost: the Feature's lease expired and another Feature took the lock over; the watchdog stopped the agent.
	ReasonLockLost = "LockLost"
)

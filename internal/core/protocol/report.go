// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// ReportBatch is what a watchdog reports, oldest first. The watchdog keeps reports until intake acknowledges them.
type ReportBatch struct {
	Version int      `json:"version"`
	Reports []Report `json:"reports"`
}

// ReportAck acknowledges every report up to and including Sequence of Epoch.
type ReportAck struct {
	Epoch    int64 `json:"epoch"`
	Sequence int64 `json:"sequence"`
}

// Problem is the body of intake's answer with an error. Epoch and Sequence name the refused report, if intake refused one; intake has
// stored the reports before it.
type Problem struct {
	Error    string `json:"error"`
	Epoch    int64  `json:"epoch,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
}

// Report is one thing that happened. (Epoch, Sequence) is unique and increasing; each is applied exactly once.
// Exactly one of the pointers is set. Before it leaves the pod, the watchdog removes secrets from all of its texts, except from fields with
// the tag redact:"key". Users have chosen these texts, and search for them.
type Report struct {
	Epoch    int64     `json:"epoch"`
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`

	Status     *StatusReport     `json:"status,omitempty"`
	Checkpoint *CheckpointReport `json:"checkpoint,omitempty"`
	Request    *RequestReport    `json:"request,omitempty"`
	Final      *FinalReport      `json:"final,omitempty"`
	// Acknowledged is stored with its checkpoint.
	Acknowledged *Acknowledgment `json:"acknowledged,omitempty"`
	// Failed is a checkpoint that has no record.
	Failed *CheckpointFailure `json:"failed,omitempty"`
	// Planned is the plan that a model has made, or why there is none. A restarted watchdog may repeat it.
	Planned *PlanReport `json:"planned,omitempty"`
	// Knowledge has files of the project's knowledge that agents do not get. A restarted watchdog may repeat it.
	Knowledge *KnowledgeReport `json:"knowledge,omitempty"`
}

// MaxKnowledgeToReview is how many documents that wait for a user a status names, and MaxKnowledgePath bounds each path in bytes.
const (
	MaxKnowledgeToReview = 8
	MaxKnowledgePath     = 128
)

// Bounds of a KnowledgeReport: entries, and bytes of each.
const (
	MaxKnowledgeLeftOut = 8
	MaxKnowledgeText    = 400
)

// KnowledgeReport says which files below docs/knowledge agents do not get because they do not keep to the format. It appears as an Event.
type KnowledgeReport struct {
	// LeftOut are the first of them, each with its path and the reason.
	LeftOut []string `json:"leftOut"`
	// More is how many more there are.
	More int `json:"more,omitempty"`
}

// PlanReport is the plan of a model. Plan and Hash are empty if there is none; then Message says why.
type PlanReport struct {
	Hash    string    `json:"hash,omitempty" redact:"key"`
	Plan    *Proposal `json:"plan,omitempty"`
	Message string    `json:"message,omitempty"`
	// Approved: a user has approved the plan.
	Approved bool `json:"approved,omitempty"`
}

// CheckpointFailure is a checkpoint that the watchdog could not capture or check. It has no number, and the next one does its work. It
// appears as an Event and in a metric. The status says for how long checkpoints have failed.
type CheckpointFailure struct {
	// Trigger of the checkpoint, and Message, which says why it failed.
	Trigger string `json:"trigger"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// MaxAcknowledgments of one checkpoint, as the API has it.
const MaxAcknowledgments = 8

// Acknowledgment is the agent's statement that it has understood that it broke a rule of severity Critical. Tidewaiter shows it to users,
// and does not act on it.
type Acknowledgment struct {
	// Checkpoint is the number of the checkpoint that found the Rule broken.
	Checkpoint int64  `json:"checkpoint"`
	Rule       string `json:"rule" redact:"key"`
	// Turn of the agent's conversation in which it said so; 0 before its first turn.
	Turn int64 `json:"turn,omitempty"`
	// Text is what it does instead, in its own words.
	Text string `json:"text,omitempty"`
}

// States of a run. Waiting: for a user (an answer, a decision on a held call or an approval), or for a background command of the agent.
// Recovering: the agent has received a message about an anomaly that is not over. Escalating: steering takes stronger measures than
// messages, or the plan fails. Frozen: the agent cannot continue before a user acts, because checkpoints fail or a budget is used up.
// Aborted: the attempt ended before its work was done.
const (
	StatePreparing  = "Preparing"
	StateActive     = "Active"
	StateIdle       = "Idle"
	StateWaiting    = "Waiting"
	StateRecovering = "Recovering"
	StateEscalating = "Escalating"
	StateFrozen     = "Frozen"
	StateFinishing  = "Finishing"
	StateComplete   = "Complete"
	StateAborted    = "Aborted"
)

// States are the states that this version knows. A manager treats any other as no state, so that watchdogs of later versions can have more.
func States() []string {
	return []string{
		StatePreparing, StateActive, StateIdle, StateWaiting, StateRecovering, StateEscalating, StateFrozen, StateFinishing, StateComplete, StateAborted,
	}
}

// StatusReport is the whole status of a run (SALUTE); a later one replaces it.
type StatusReport struct {
	State          string       `json:"state"`
	WorkspaceReady bool         `json:"workspaceReady,omitempty"`
	AgentRunning   bool         `json:"agentRunning,omitempty"`
	Task           string       `json:"task,omitempty"`
	Tasks          []TaskStatus `json:"tasks,omitempty"`
	Base           string       `json:"base,omitempty"`
	Head           string       `json:"head,omitempty"`
	Fault          *Fault       `json:"fault,omitempty"`
	// Problems that the watchdog works around: it then promotes less or is slower, and its verdicts stay the same.
	Problems []string `json:"problems,omitempty"`
	// Unacknowledged describes the broken rules of severity Critical that the agent has not acknowledged after two requests.
	Unacknowledged []string `json:"unacknowledged,omitempty"`
	// Question whose answer the agent waits for.
	Question *Question `json:"question,omitempty"`
	// Usage of models and the budget that is nearly used; nil before the first model call.
	Usage         *Usage `json:"usage,omitempty"`
	BudgetWarning string `json:"budgetWarning,omitempty"`
	// SupervisorCostWarning says that plans and reviews have more than their share of what the Feature has used; empty if they do not.
	SupervisorCostWarning string `json:"supervisorCostWarning,omitempty"`
	// KnowledgeToReview are the paths of documents that agents get once a user has merged them, at most MaxKnowledgeToReview.
	KnowledgeToReview []string `json:"knowledgeToReview,omitempty"`
	// Role and Runtime of the agent, and the Contracts whose locks the Feature holds.
	Role      string   `json:"role,omitempty"`
	Runtime   string   `json:"runtime,omitempty"`
	Contracts []string `json:"contracts,omitempty"`
	// FilesModified is the number of files that differ from the base in the newest checkpoint. Directory is the directory below the workspace
	// that contains all of them, as printable text.
	FilesModified int64  `json:"filesModified,omitempty"`
	Directory     string `json:"directory,omitempty"`
	// Conversation of the agent with its models; nil before the first turn of a task.
	Conversation *Conversation `json:"conversation,omitempty"`
	// DeliveryGates are the newest results of the gates before the delivery.
	DeliveryGates []GateStatus `json:"deliveryGates,omitempty"`
	// Directives are the agent's directives and their states; empty if the reporter does not know them.
	Directives []DirectiveStatus `json:"directives,omitempty"`
	// Reviews are the newest reviews, the newest last, at most MaxReviews.
	Reviews []ReviewStatus `json:"reviews,omitempty"`
}

// Question that the agent asks a user.
type Question struct {
	// ID that the agent chose for it, at most MaxToolID characters.
	ID   string `json:"id"`
	Text string `json:"text"`
	// At is when the agent asked; zero in an older record.
	At time.Time `json:"at,omitzero"`
	// Guess: the agent continues with its best guess, and does not wait for the answer.
	Guess bool `json:"guess,omitempty"`
}

// States of a task.
const (
	TaskPending = "Pending"
	TaskRunning = "Running"
	TaskGating  = "Gating"
	TaskDone    = "Done"
	TaskFailed  = "Failed"
	// TaskAborted: the task could not be done, its changes have left the workspace, and the work continues without it.
	TaskAborted = "Aborted"
)

// TaskStatus is the state of a task.
type TaskStatus struct {
	Name     string `json:"name" redact:"key"`
	State    string `json:"state"`
	ExitCode *int   `json:"exitCode,omitempty"`
	// Corrections is how often the agent got its work back in the attempt.
	Corrections int `json:"corrections,omitempty"`
	// Message says why the task has failed or was aborted, as one line. Aborted tasks without Work have none.
	Message string `json:"message,omitempty"`
	// Work of the task; nil if the task is not one of the newest MaxTaskWorks that are done or were aborted.
	Work *TaskWork `json:"work,omitempty"`
	// Gates are the newest results of its gates; nil if the task is not one of the newest MaxTaskGates whose gates have run.
	Gates []GateStatus `json:"gates,omitempty"`
}

// MaxTaskGates is how many tasks have the results of their gates in a report, the newest ones. MaxGates bounds the results of a task, and of the
// gates before the delivery.
const (
	MaxTaskGates = 32
	MaxGates     = 64
)

// States of a gate that has run; core/gates says what they mean.
const (
	GatePassed     = "Passed"
	GateFailed     = "Failed"
	GateTimedOut   = "TimedOut"
	GateNotStarted = "NotStarted"
)

// GateStates are all of them.
func GateStates() []string { return []string{GatePassed, GateFailed, GateTimedOut, GateNotStarted} }

// GateStatus is the newest result of a gate.
type GateStatus struct {
	Name string `json:"name" redact:"key"`
	// State is one of the states of a gate.
	State    string `json:"state"`
	ExitCode int    `json:"exitCode,omitempty"`
}

// MaxTaskWorks is how many done or aborted tasks have their work in a report, the newest ones. MaxTaskSummary bounds a summary and MaxTaskMessage a
// message, in characters.
const (
	MaxTaskWorks   = 32
	MaxTaskSummary = 200
	MaxTaskMessage = 512
)

// TaskWork is what is known of the work of a task.
type TaskWork struct {
	// Checkpoint is the number of the checkpoint that completed the task, or that was taken after the changes of an aborted task had left the
	// workspace; 0 before.
	Checkpoint int64 `json:"checkpoint,omitempty"`
	// Promoted is how many checkpoints of the task were promoted.
	Promoted int64 `json:"promoted,omitempty"`
	// Summary in the agent's words, as one line; empty if the agent gave none.
	Summary string `json:"summary,omitempty"`
}

// Fault keeps a run from continuing. The watchdog tries again until the fault goes away, only a user can fix it, or the Feature's deadline passes.
type Fault struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// HistorySquashed is the beginning of the part of a final report's message that says why the delivery is a single commit.
const HistorySquashed = "its history is delivered as one commit on the base: "

// TasksNotDone is the beginning of the part of a final report's message that names the aborted tasks.
const TasksNotDone = "not done, because they were aborted: "

// Triggers of checkpoints.
const (
	TriggerInterval  = "Interval"
	TriggerChanges   = "Changes"
	TriggerTask      = "Task"
	TriggerRequested = "Requested"
	TriggerFinal     = "Final"
	TriggerPatch     = "Patch"
	TriggerSteering  = "Steering"
)

// Causes of rollbacks: supervision reverts the work of an agent in trouble, a user requests it, or the policy reverts violations (Shadow,
// revertOnViolation).
const (
	RollbackBySupervision = "Supervision"
	RollbackByRequest     = "Request"
	RollbackByViolation   = "Violation"
)

// RollbackReport says why the watchdog restored a workspace, or a part of it.
type RollbackReport struct {
	// Cause is one of the causes of rollbacks.
	Cause string `json:"cause"`
	// To is the number of the restored checkpoint: the requested one or, for an aborted task, the newest valid one when it began. It is 0 for the tree
	// that was promoted last, and ToBase if an aborted task goes back to the base.
	To     int64 `json:"to,omitempty"`
	ToBase bool  `json:"toBase,omitempty"`
	// Reason in words; empty for a violation, which the checkpoint itself describes.
	Reason string `json:"reason,omitempty"`
}

// Actions on checkpoints.
const (
	ActionPromoted       = "Promoted"
	ActionPartlyPromoted = "PartlyPromoted"
	ActionHeld           = "Held"
	ActionReverted       = "Reverted"
	ActionNone           = "None"
)

// CheckpointReport is the record of one checkpoint.
type CheckpointReport struct {
	Sequence        int64           `json:"sequence"`
	Previous        int64           `json:"previous,omitempty"`
	Task            string          `json:"task,omitempty"`
	Trigger         string          `json:"trigger"`
	CapturedAt      time.Time       `json:"capturedAt"`
	Commit          string          `json:"commit,omitempty"`
	Tree            string          `json:"tree,omitempty"`
	Base            string          `json:"base,omitempty"`
	DeliveryCommit  string          `json:"deliveryCommit,omitempty"`
	PolicyHash      string          `json:"policyHash,omitempty"`
	Audit           bool            `json:"audit,omitempty"`
	Frozen          bool            `json:"frozen,omitempty"`
	FrozenFor       time.Duration   `json:"frozenFor,omitempty"`
	Processes       int             `json:"processes,omitempty"`
	Pause           *Pause          `json:"pause,omitempty"`
	Settled         bool            `json:"settled"`
	UnsettledReason string          `json:"unsettledReason,omitempty"`
	Added           int64           `json:"added,omitempty"`
	Modified        int64           `json:"modified,omitempty"`
	Deleted         int64           `json:"deleted,omitempty"`
	TypeChanged     int64           `json:"typeChanged,omitempty"`
	LinesAdded      int64           `json:"linesAdded,omitempty"`
	LinesDeleted    int64           `json:"linesDeleted,omitempty"`
	SamplePaths     []string        `json:"samplePaths,omitempty"`
	Verdict         Verdict         `json:"verdict"`
	Severity        policy.Severity `json:"severity,omitempty"`
	Violations      []Violation     `json:"violations,omitempty"`
	ViolationCount  int64           `json:"violationCount,omitempty"`
	Action          string          `json:"action"`
	CaptureTime     time.Duration   `json:"captureTime,omitempty"`
	SyncTime        time.Duration   `json:"syncTime,omitempty"`
	JudgeTime       time.Duration   `json:"judgeTime,omitempty"`
	ActTime         time.Duration   `json:"actTime,omitempty"`
	// Rollback says why the watchdog restored the workspace or a part of it after this checkpoint; nil if it did not.
	Rollback *RollbackReport `json:"rollback,omitempty"`
	// Transient are names that appeared and disappeared since the previous checkpoint; nil if the watcher saw none.
	Transient *Transient `json:"transient,omitempty"`
	Vitals    Vitals     `json:"vitals,omitzero"`
}

// Bounds of Transient: the number of names in one checkpoint, and the bytes of all of them, escaped.
const (
	MaxTransient      = 32
	MaxTransientBytes = 4 << 10
)

// Transient are names that the watcher saw between two checkpoints, and that neither of them contains. Their content is unknown.
type Transient struct {
	// Names are the first ones, escaped. A directory stands for everything that was in it.
	Names []string `json:"names,omitempty"`
	// More counts the names that are not listed.
	More int64 `json:"more,omitempty"`
	// Incomplete is true when there may be others: events were lost, or the watcher did not watch everything.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Vitals are figures of the watchdog when it took a checkpoint. They become metrics and are stored nowhere.
type Vitals struct {
	// Memory is the resident memory of the process in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Descriptors is the number of open file descriptors.
	Descriptors int `json:"descriptors,omitempty"`
	// EventDelay is the longest time since the previous checkpoint between a change in the workspace and the watcher's event for its path; 0
	// if none was measured.
	EventDelay time.Duration `json:"eventDelay,omitempty"`
	// Trusted and Workspace volumes.
	Trusted   VolumeUse `json:"trusted,omitzero"`
	Workspace VolumeUse `json:"workspace,omitzero"`
	// Changed is the number of changed paths that the watcher had reported when the checkpoint began, and Reports the number of reports that
	// waited for intake.
	Changed int `json:"changed,omitempty"`
	Reports int `json:"reports,omitempty"`
	// Refused is the number of reports since the previous checkpoint that intake refused for good.
	Refused int `json:"refused,omitempty"`
	// Read is the number of files that the watchdog read for the checkpoint, of all Files in the workspace.
	Read  int64 `json:"read,omitempty"`
	Files int64 `json:"files,omitempty"`
	// JudgedKnown is the number of changes whose result the previous check already had; JudgedFresh is the number that the watchdog had to check.
	JudgedKnown int64 `json:"judgedKnown,omitempty"`
	JudgedFresh int64 `json:"judgedFresh,omitempty"`
	// SlowInARow is the number of consecutive checkpoints of this Feature, including this one, that each took more than SlowCheckpoint.
	SlowInARow int64 `json:"slowInARow,omitempty"`
}

// WatchdogDescriptors is the most file descriptors that a watchdog should have open, and EventDelay the longest that its watcher should
// take to notice a changed path. Both are budgets that `make bench` measures.
const (
	WatchdogDescriptors = 256
	EventDelay          = 30 * time.Millisecond
)

// SlowCheckpoint is the longest that a checkpoint should take, from the first read of the workspace until the watchdog has acted on the verdict.
const SlowCheckpoint = 2 * time.Second

// VolumeUse is how full a volume is, in bytes; both are zero if it could not be measured.
type VolumeUse struct {
	Used int64 `json:"used,omitempty"`
	Size int64 `json:"size,omitempty"`
}

// RequestReport is the result of a request.
type RequestReport struct {
	ID      string `json:"id" redact:"key"`
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

// Outcomes of an attempt.
const (
	OutcomeDelivered    = "Delivered"
	OutcomeReadyToMerge = "ReadyToMerge"
	OutcomeBlocked      = "Blocked"
	OutcomeAgentFailed  = "AgentFailed"
	OutcomeSuspended    = "Suspended"
	OutcomeStopped      = "Stopped"
	// OutcomeSwitched: the next task runs in another mode, and therefore in another pod.
	OutcomeSwitched = "Switched"
	// OutcomeProving: a gate of a task or before the delivery must pass, in a pod of its own.
	OutcomeProving = "Proving"
	// OutcomeUnfinished: an attempt with an agent follows, because gates that ran in pods of their own have failed, or because there is another task.
	OutcomeUnfinished = "Unfinished"
	// OutcomeParked: the agent waits for the answer to Question, and its pod ends until then.
	OutcomeParked = "Parked"
	// OutcomePlanProposed: a user must approve the plan of a model before the agent starts, and the pod ends until then.
	OutcomePlanProposed = "PlanProposed"
)

// Outcomes are all outcomes of an attempt.
func Outcomes() []string {
	return []string{
		OutcomeDelivered, OutcomeReadyToMerge, OutcomeBlocked, OutcomeAgentFailed, OutcomeSuspended, OutcomeStopped, OutcomeParked, OutcomePlanProposed,
		OutcomeSwitched, OutcomeProving, OutcomeUnfinished,
	}
}

// FinalReport is the result of an attempt, and its last report.
type FinalReport struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Head    string `json:"head,omitempty"`
	// Gate identifies the gate that runs next, if the outcome is Proving (core/gates.Sum). Task is the name of the task that it proves; empty for a
	// gate before the delivery.
	Gate string `json:"gate,omitempty" redact:"key"`
	Task string `json:"task,omitempty"`
	// ProvedBy identifies the gates that have passed on the head, if the outcome is ReadyToMerge (core/gates.SumAll); empty if none had to.
	ProvedBy string `json:"provedBy,omitempty" redact:"key"`
	// Failure of the agent's latest model calls, if the attempt ended because of them; nil otherwise.
	Failure *Failure `json:"failure,omitempty"`
	// TaskFailures is how often the agent has failed in its task so far, if the outcome is AgentFailed and the task is aborted when its retries are
	// spent; 0 otherwise. Then the manager counts the failures of the Feature.
	TaskFailures int `json:"taskFailures,omitempty"`
	// Question that a parked agent waits for; nil with any other outcome.
	Question *Question `json:"question,omitempty"`
	// Paths are the first printable ones of the PathCount paths that the delivery changes compared with the base.
	Paths     []string `json:"paths,omitempty"`
	PathCount int64    `json:"pathCount,omitempty"`
}

// Bounds of the paths of a delivery: their number, the characters of each, and the bytes of all.
const (
	MaxDeliveredPaths = 128
	MaxDeliveredPath  = 256
	MaxDeliveredBytes = 8 << 10
)

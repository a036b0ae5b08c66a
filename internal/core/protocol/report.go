// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// ReportBatch is what a watchdog reports, oldest first. Reports are kept until they are acknowledged.
type ReportBatch struct {
	Version int      `json:"version"`
	Reports []Report `json:"reports"`
}

// ReportAck acknowledges every report up to and including Sequence of Epoch.
type ReportAck struct {
	Epoch    int64 `json:"epoch"`
	Sequence int64 `json:"sequence"`
}

// Problem is the body of an answer of intake that is not the hoped-for one. Epoch and Sequence name the report that is refused, where one is; those
// before it are stored.
type Problem struct {
	Error    string `json:"error"`
	Epoch    int64  `json:"epoch,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
}

// Report is one thing that happened. (Epoch, Sequence) is unique and increasing; each is applied exactly once.
// Exactly one of the pointers is set. Before it leaves the pod, secrets are taken out of all of its texts but those with the tag redact:"key": people have
// chosen these, and look for them.
type Report struct {
	Epoch    int64     `json:"epoch"`
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`

	Status     *StatusReport     `json:"status,omitempty"`
	Checkpoint *CheckpointReport `json:"checkpoint,omitempty"`
	Request    *RequestReport    `json:"request,omitempty"`
	Final      *FinalReport      `json:"final,omitempty"`
	// Acknowledged is kept with its checkpoint.
	Acknowledged *Acknowledgment `json:"acknowledged,omitempty"`
	// Failed is a checkpoint that there is no record of.
	Failed *CheckpointFailure `json:"failed,omitempty"`
}

// CheckpointFailure is a checkpoint that could not be captured or judged. It has no number, and the next one does its work. It becomes an Event and a
// metric; for how long checkpoints fail is in the status.
type CheckpointFailure struct {
	// Trigger of the checkpoint, and why it failed.
	Trigger string `json:"trigger"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// MaxAcknowledgments of one checkpoint, as the API has it.
const MaxAcknowledgments = 8

// Acknowledgment is the agent's word that it has understood that it broke a rule of severity Critical. It is shown to people, and nothing follows
// from it.
type Acknowledgment struct {
	// Checkpoint is the number of the one that found the Rule broken.
	Checkpoint int64  `json:"checkpoint"`
	Rule       string `json:"rule" redact:"key"`
	// Turn of the agent's conversation in which it said so; 0 for one that has had no turn.
	Turn int64 `json:"turn,omitempty"`
	// Text is what it does instead, in its own words.
	Text string `json:"text,omitempty"`
}

// States of a run. Waiting is for a person (an answer, a look at a held call or an approval), or for a background command of the agent's. Recovering is an agent that was told of an anomaly
// that is not over, Escalating one that steering does more about than to tell it, or whose plan fails. Frozen is one that cannot go on before a
// person acts, because checkpoints fail or a budget is used up. Aborted says that the attempt was ended before its work was done.
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

// States that this version knows. A manager takes others for none, so that watchdogs of later versions can have more.
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
	// Problems that the watchdog works around: it then promotes less or is slower, and its judgement is not affected.
	Problems []string `json:"problems,omitempty"`
	// Unacknowledged are the broken rules of severity Critical that the agent has not acknowledged, though it was told to twice; each in words.
	Unacknowledged []string `json:"unacknowledged,omitempty"`
	// Question that the agent waits on.
	Question *Question `json:"question,omitempty"`
	// Usage of models, where a model was called, and which budget is nearly used.
	Usage         *Usage `json:"usage,omitempty"`
	BudgetWarning string `json:"budgetWarning,omitempty"`
	// Role and Runtime of the agent, and the Contracts whose locks the Feature holds.
	Role      string   `json:"role,omitempty"`
	Runtime   string   `json:"runtime,omitempty"`
	Contracts []string `json:"contracts,omitempty"`
	// FilesModified since the base, as the newest checkpoint has them, and the Directory below the workspace that they are all in, as text
	// that can be seen.
	FilesModified int64  `json:"filesModified,omitempty"`
	Directory     string `json:"directory,omitempty"`
	// Conversation of the agent with its models; nil before the first turn of a task.
	Conversation *Conversation `json:"conversation,omitempty"`
	// Directives that the agent is given, and how far they are; none in a report of somebody who does not know.
	Directives []DirectiveStatus `json:"directives,omitempty"`
}

// Question that the agent asks.
type Question struct {
	// ID that the agent has given it, at most MaxToolID characters.
	ID   string `json:"id"`
	Text string `json:"text"`
}

// States of a task.
const (
	TaskPending = "Pending"
	TaskRunning = "Running"
	TaskDone    = "Done"
	TaskFailed  = "Failed"
)

// TaskStatus says how far a task is.
type TaskStatus struct {
	Name     string `json:"name" redact:"key"`
	State    string `json:"state"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

// Fault keeps a run from going on; it is tried again until it goes away, only a person can help, or the Feature's deadline passes.
type Fault struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// HistorySquashed begins the part of a final report's message that says why the delivery is one commit.
const HistorySquashed = "its history is delivered as one commit on the base: "

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

// Causes of rollbacks: supervision took back the work of an agent in trouble, a person asked for it, or the policy takes back what
// breaks a rule (Shadow, revertOnViolation).
const (
	RollbackBySupervision = "Supervision"
	RollbackByRequest     = "Request"
	RollbackByViolation   = "Violation"
)

// RollbackReport says why a workspace went back, or a part of it.
type RollbackReport struct {
	// Cause is one of the causes of rollbacks.
	Cause string `json:"cause"`
	// To is the number of the checkpoint that it went back to; 0 for what was promoted last.
	To int64 `json:"to,omitempty"`
	// Reason in words; empty for a violation, which the checkpoint itself tells of.
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
	// Rollback says why the workspace went back after it, or a part of it; nil where nothing did.
	Rollback *RollbackReport `json:"rollback,omitempty"`
	// Transient are names that came and went since the checkpoint before; nil where none was seen.
	Transient *Transient `json:"transient,omitempty"`
	Vitals    Vitals     `json:"vitals,omitzero"`
}

// Bounds of the names that came and went: so many of one checkpoint, and bytes of all of them, escaped.
const (
	MaxTransient      = 32
	MaxTransientBytes = 4 << 10
)

// Transient are names that the watcher saw between two checkpoints, and that neither of them has. What was in them is not known.
type Transient struct {
	// Names are the first ones, escaped. A directory stands for all that was in it.
	Names []string `json:"names,omitempty"`
	// More counts the names that are not listed.
	More int64 `json:"more,omitempty"`
	// Incomplete is true when there may be others: events were lost, or not everything was watched.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Vitals are figures of the watchdog when it took a checkpoint. They become metrics and are stored nowhere.
type Vitals struct {
	// Memory of the process that is resident, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Descriptors that are open.
	Descriptors int `json:"descriptors,omitempty"`
	// EventDelay is the longest time since the checkpoint before from a change in the workspace until the watcher knew its path; 0 where none was measured.
	EventDelay time.Duration `json:"eventDelay,omitempty"`
	// Trusted and Workspace volumes.
	Trusted   VolumeUse `json:"trusted,omitzero"`
	Workspace VolumeUse `json:"workspace,omitzero"`
	// Changed paths that the watcher had told of when the checkpoint began, and Reports that waited for intake.
	Changed int `json:"changed,omitempty"`
	Reports int `json:"reports,omitempty"`
	// Refused reports are those that intake will never take, since the checkpoint before.
	Refused int `json:"refused,omitempty"`
	// Read are the files that were read for the checkpoint, of all Files in the workspace.
	Read  int64 `json:"read,omitempty"`
	Files int64 `json:"files,omitempty"`
	// JudgedKnown changes were known from the judgement before; JudgedFresh ones had to be looked at.
	JudgedKnown int64 `json:"judgedKnown,omitempty"`
	JudgedFresh int64 `json:"judgedFresh,omitempty"`
	// SlowInARow is how many checkpoints of this Feature, this one included, took more than SlowCheckpoint each.
	SlowInARow int64 `json:"slowInARow,omitempty"`
}

// WatchdogDescriptors are the most that a watchdog should have open, and EventDelay is the most that its watcher should take to know of a changed path. Both are
// budgets that `make bench` measures.
const (
	WatchdogDescriptors = 256
	EventDelay          = 30 * time.Millisecond
)

// SlowCheckpoint is the most that a checkpoint should take, from the first look at the workspace until it was acted on.
const SlowCheckpoint = 2 * time.Second

// VolumeUse is how full a volume is, in bytes; both are zero where it could not be measured.
type VolumeUse struct {
	Used int64 `json:"used,omitempty"`
	Size int64 `json:"size,omitempty"`
}

// RequestReport says what became of a request.
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
	// OutcomeSwitched: the next task runs in another mode, and so in another pod.
	OutcomeSwitched = "Switched"
)

// FinalReport is the last word of an attempt.
type FinalReport struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Head    string `json:"head,omitempty"`
	// Failure of the model calls that the agent made last, where its attempt ended for that; nil otherwise.
	Failure *Failure `json:"failure,omitempty"`
	// Paths that were pushed as changes to the base, the first ones that are plain text, of PathCount.
	Paths     []string `json:"paths,omitempty"`
	PathCount int64    `json:"pathCount,omitempty"`
}

// Bounds of the paths of a delivery: so many, characters of each, and bytes of all.
const (
	MaxDeliveredPaths = 128
	MaxDeliveredPath  = 256
	MaxDeliveredBytes = 8 << 10
)

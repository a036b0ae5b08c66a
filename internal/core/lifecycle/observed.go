// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// Observed is everything that a decision depends on, except the time.
type Observed struct {
	// Live says that the controller read Jobs, pods and then the Feature from the API server itself, in this sequence. A final report that
	// intake acknowledged before the pod ended is then in Run.
	Live bool
	// Spec is what the user wants.
	Spec Spec
	// Memory is what the controller last wrote into the status.
	Memory Memory
	// Run is what the watchdog reported; nil before the first report.
	Run *Run
	// Refusal is set while the Feature cannot be accepted.
	Refusal *Refusal
	// Policy in effect for the Feature; zero if it could not be found out.
	Policy PolicyRef
	// Backends is the hash of the configuration of backends; empty if it is not known.
	Backends string
	// PolicyConflicts name values that policies disagree on; sorted.
	PolicyConflicts []string
	// Outage says that the Feature's model backend is out for all Features: one message covers all of them.
	Outage bool
	// Obstacle keeps a new attempt from starting, though the Feature is accepted.
	Obstacle *Refusal
	// Capacity of the project.
	Capacity Capacity
	// Locks of the plan's contracts.
	Locks Locks
	// Isolation of the agent's pod from the network.
	Isolation Isolation
	// Deliveries of others that concern this one; nil if the controller did not read them, and the status then keeps what it has.
	Deliveries []deliveries.Notice
	// Heeds say how many directives of the reviewers that run agents of the project have addressed; nil if the controller did not count them, and the status then keeps what it has.
	Heeds []review.Heed
	// Areas of other Features, compared with the areas of this one; nil before the comparison.
	Areas *Areas
	// Jobs of the Feature, of any attempt.
	Jobs []Job
	// JobMade says that the newest Job was made in this reconcile, with all that it depends on. Nothing else is done about it
	// before its attempt is noted.
	JobMade bool
	// Pods with the Feature's label: of these Jobs, of Jobs that are gone already, and of no Job.
	Pods []Pod
	// Volumes names what keeps the volumes from being bound; nil when nothing does.
	Volumes *Problem
}

// Spec is the part of a Feature's spec that decides about its life.
type Spec struct {
	// Name of the Feature, for messages.
	Name string
	// Generation of the spec.
	Generation int64
	// DeletedAt is the time of the request for deletion; zero if there is none.
	DeletedAt time.Time
	// Suspend of the Feature itself asks for the pod to end; the work is kept.
	Suspend bool
	// SuspendedBy names the policies that ask for the same; empty if there are none.
	SuspendedBy string
	// Retries of an agent that failed. Continuing is the number of tasks that each have these retries for themselves, because the task is aborted after
	// them, also if only reviewers want it.
	Retries    int
	Continuing int
	// Deadline for the running time; 0 means none.
	Deadline time.Duration
	// TTLAfterFinished after which the Feature is deleted; nil is never.
	TTLAfterFinished *time.Duration
	// Branch that is delivered.
	Branch string
	// RequireApproval holds the delivery until ApprovedCommit is the head.
	RequireApproval bool
	// ApprovalBy is the policy that requires the approval; empty if only the Feature does.
	ApprovalBy string
	// Gates that must pass before the delivery, in the sequence in which they run; ProvedBy is what identifies all of them, and empty for none.
	Gates    []Gate
	ProvedBy string
	// TaskGates are the gates that can run after tasks.
	TaskGates []Gate
	// Gated says that the work has gates, after its tasks or before the delivery.
	Gated bool
	// GateNotice says which gates of the Feature do not run, or cannot pass, and why; empty for none.
	GateNotice string
	// ApprovedCommit is the commit that a user has approved for delivery.
	ApprovedCommit string
	// Ephemeral volumes live and die with the pod.
	Ephemeral bool
	// Mode of the agent, in the policy's words, and ModeNotice, which says why if it is not the requested one.
	Mode       string
	ModeNotice string
	// Strategy that a new attempt runs by, and StrategyReason where Tidewaiter has chosen it.
	Strategy, StrategyReason string
	// AskRestart says that an agent continues after the loss of its pod only when a user requests it.
	AskRestart bool
	// Questions says how the policy handles questions of agents, and Answered which ones have an answer, by id.
	Questions policy.Questions
	Answered  []string
	// Budget says that the Feature's model calls have one.
	Budget bool
	// Planning is protocol.PlanningAuto or PlanningApprove if a model divides the work; empty if none does.
	Planning string
	// Requests in the order of the spec.
	Requests []Request
	// NotActedOn names the fields that an earlier version has stored and this version does not act on; sorted.
	NotActedOn []string
}

// maxTaskFailures bounds the attempts whose agent fails in tasks that are aborted after too many failures, as long as the spec does not change. It grants
// one task more than the spec lists: the user may have just removed the one at hand.
func (s Spec) maxTaskFailures() int { return (s.Continuing + 1) * (s.Retries + 1) }

// Gate by what identifies its definition (core/gates.Sum), with the image of its container.
type Gate struct{ Sum, Image string }

// gate is the gate that a final report names. If a gate before the delivery is not required any more, it is the first one that is. It is false if
// there is none. An image never comes from a report.
func (s Spec) gate(f *Final) (Gate, bool) {
	named := func(g Gate) bool { return g.Sum == f.Gate }
	if f.Task != "" {
		i := slices.IndexFunc(s.TaskGates, named)
		if i < 0 {
			return Gate{}, false
		}
		return s.TaskGates[i], true
	}
	if len(s.Gates) == 0 {
		return Gate{}, false
	}
	if i := slices.IndexFunc(s.Gates, named); i >= 0 {
		return s.Gates[i], true
	}
	return s.Gates[0], true
}

// suspended reports whether no agent may work.
func (s Spec) suspended() bool { return s.Suspend || s.SuspendedBy != "" }

// Request is a one-shot act.
type Request struct {
	ID   string
	Kind RequestKind
	// Hash of the plan that RequestApprovePlan approves.
	Hash string
	// Refusal says why it can never be done; empty if there is no such reason.
	Refusal string
}

// RequestKind says what a request asks for.
type RequestKind string

// Kinds of requests.
const (
	RequestRollback     RequestKind = "rollback"
	RequestCheckpoint   RequestKind = "checkpoint"
	RequestRetry        RequestKind = "retry"
	RequestResetBreaker RequestKind = "resetBreaker"
	RequestRelease      RequestKind = "release"
	RequestApprovePlan  RequestKind = "approvePlan"
	RequestReplan       RequestKind = "replan"
)

// Refusal says why a Feature cannot be accepted, or not be started.
type Refusal struct {
	Reason  string
	Message string
	// ByUser is true if only a user can fix it; otherwise it goes away by itself.
	ByUser bool
}

// Problem is a reason with a message.
type Problem struct {
	Reason  string
	Message string
}

// Capacity of a project.
type Capacity struct {
	// Limit of agents that run at once; 0 means unlimited.
	Limit int
	// Running agents of other Features.
	Running int
	// Waiting are the ones of them, by name, that wait for a user: an answer or an approval lets them continue and end.
	Waiting []string
	// Ahead counts the waiting Features that come before this one, by priority and then age.
	Ahead int
	// Total limits the agents of all projects together; 0 means unlimited. RunningTotal is the number of running agents of other Features.
	// AheadTotal counts the Features that have room in their project, wait for this, and come before this one.
	Total, RunningTotal, AheadTotal int
}

// Locks of a Feature's contracts, as their Leases say. Lists are sorted.
type Locks struct {
	// Wanted are the contracts of the plan.
	Wanted []string
	// Held are the contracts whose Leases name this Feature. A held lock that is in no status was taken by a process that died before it
	// recorded that, or is about to be freed.
	Held []string
	// Reclaimed says from which Features the held locks were taken after they had expired.
	Reclaimed []Contender
	// Busy says who is in the way of wanted locks that are not held.
	Busy []Contender
	// Taken says that all wanted locks were taken in this reconcile: a process that looked earlier cannot free them.
	Taken bool
	// Renew is when the controller must renew the held locks; zero if there are none.
	Renew time.Time
	// Fail blocks the Feature instead of waiting.
	Fail bool
	// Unguarded are wanted contracts for which no policy names paths.
	Unguarded []string
}

// Isolation is the result of checking network policies that are not Tidewaiter's.
type Isolation struct {
	// Enforce says that no agent may work while one of them opens its network.
	Enforce bool
	// Openings of the agent's pod, or of that of the next attempt, by name.
	Openings []isolation.Opening
	// TooMany is the limit of checked network policies if there are more; 0 otherwise.
	TooMany int
}

// Areas is the result of the comparison with the areas of other Features on the repository.
type Areas struct {
	// Ignore says that the policy lets areas overlap.
	Ignore bool
	// Wait says that the policy lets a Feature wait for others whose areas overlap with its own.
	Wait bool
	// Overlap is the first overlap with another Feature; nil if there is none.
	Overlap *Overlap
}

// Overlap is an area of another Feature that overlaps with one of this Feature.
type Overlap struct {
	// Who is the name of the other Feature, for users.
	Who string
	// Before says that Who waits as well, and comes first.
	Before bool
	// More says that there are others.
	More bool
	// Mine and Theirs are patterns of the two plans that may match a common path; empty if a plan allows everything.
	Mine, Theirs string
}

// Contender is another Feature that holds, held or waits for the lock of a contract.
type Contender struct {
	Contract string
	// Who is the name of the other Feature, for users.
	Who string
	// Before says that Who waits as well, and comes first.
	Before bool
}

// PolicyRef names the policy in effect.
type PolicyRef struct {
	Hash        string
	Enforcement string
	Sources     []string
}

// RunKind says what a Job does.
type RunKind string

// Kinds of runs.
const (
	// RunAgent has an agent in its pod.
	RunAgent RunKind = protocol.RunAgent
	// RunSeal delivers what is on the trusted volume, without an agent.
	RunSeal RunKind = "seal"
	// RunGate runs one gate, of a task or before the delivery, in a pod where no agent has been.
	RunGate RunKind = protocol.RunGate
)

// untrusted reports whether a pod of the run has a container that runs what an agent has written: its network must be closed.
func (k RunKind) untrusted() bool { return k == RunAgent || k == RunGate }

// StrayJob is the attempt of a Job with the Feature's label that does not belong to the Feature. Such a Job lost its owner, or belonged to
// an earlier Feature of the same name.
const StrayJob = -1

// Job is a Job as it is seen.
type Job struct {
	Name string
	UID  string
	// Attempt that it was made for, or StrayJob.
	Attempt int64
	Run     RunKind
	// Mode that the pod of an agent run is made for.
	Mode    string
	Created time.Time
	// Ended is true when the Job will start no pod any more.
	Ended bool
	// Deleting is true after a request to delete it.
	Deleting bool
	// Rejected is the API server's message when it refuses the Job's pod.
	Rejected string
}

// Pod is a pod as it is seen.
type Pod struct {
	Name string
	UID  string
	// JobUID is the UID of the Job that controls it; empty if there is none.
	JobUID string
	// Started is true once any of its containers ran.
	Started bool
	// StartedAt is when the first of them started; zero if that is unknown.
	StartedAt time.Time
	// Ended is true when none of its containers runs any more or ever will.
	Ended bool
	// Deleting is true after a request to delete it; it may still run.
	Deleting bool
	// DueBy is when it should be gone, including its grace period; zero without a request to delete it.
	DueBy time.Time
	// Node that it is on; empty before it has one.
	Node string
	// Finalizers that keep it.
	Finalizers []string
	// Problem keeps it from running; nil when nothing does.
	Problem *Problem
	// ByItself is true if it ended without a request of a user or of the cluster.
	ByItself bool
	// Fate says why it ended, for users; empty if nothing is known.
	Fate string
}

// Run is what the watchdog reported, as intake recorded it.
type Run struct {
	// Epoch is the attempt that reported last.
	Epoch int64
	// WorkspaceReady is true once the workspace is prepared.
	WorkspaceReady bool
	// AgentRunning is true while the agent's process is running.
	AgentRunning bool
	// AgentRan is true once a task of the attempt has begun.
	AgentRan bool
	// Task being worked on. Unlisted: the spec does not list it any more.
	Task     string
	Unlisted bool
	// Head is the last promoted commit.
	Head string
	// Fault keeps the run from continuing; nil if there is none.
	Fault *Problem
	// Problems that the watchdog works around.
	Problems []string
	// Unacknowledged describes the broken rules that the agent has not acknowledged after two requests.
	Unacknowledged []string
	// BudgetWarning names a budget that is nearly used; empty for none.
	BudgetWarning string
	// SupervisorCostWarning says that plans and reviews have more than their share of what models have used; empty if they do not. Used says that it
	// is known what they have used.
	SupervisorCostWarning string
	Used                  bool
	// KnowledgeToReview are the paths of documents that a user has to merge before agents get them.
	KnowledgeToReview []string
	// Plan of a model; nil before there is one.
	Plan *ModelPlan
	// GateFailures are the newest results of gates that have not passed, in words; of tasks that are not done, and before the delivery. GatesUnstarted
	// says that one of them could not be started.
	GateFailures   []string
	GatesUnstarted bool
	// Gating is the name of the task whose gates are to pass; empty if there is none.
	Gating string
	// Anomalies of the conversation that are not over, by the condition that they set, with the evidence.
	Anomalies map[string]string
	// Unserved says that the agent stalls because its model calls fail with errors that are not its fault.
	Unserved bool
	// Connected is true while the long poll is open.
	Connected bool
	// ConnectionChangedAt is when Connected last changed; zero when there never was a connection.
	ConnectionChangedAt time.Time
	// Question that the agent asks users, and its id; empty for none. AskedAt is when it asked; zero if that is unknown.
	Question   string
	QuestionID string
	AskedAt    time.Time
	// Guess says that the agent does not wait for the answer.
	Guess bool
	// Checkpoint is the newest one; nil before the first.
	Checkpoint *Checkpoint
	// LastValidCheckpoint is the name of the newest valid one.
	LastValidCheckpoint string
	// Counts of all checkpoints, and the Rollbacks after them.
	Counts    Counts
	Rollbacks Rollbacks
	// Requests that the watchdog acted on.
	Requests []RequestResult
	// Final is the final report of the attempt; nil before it.
	Final *Final
}

// ModelPlan has the facts about a plan of a model that conditions need.
type ModelPlan struct {
	Milestones, Tasks int
	// Hash of the plan, and whether a user has approved it.
	Hash     string
	Approved bool
	// Missing says why there is no plan; empty if there is one.
	Missing string
}

// Checkpoint has the facts about the newest checkpoint that conditions need.
type Checkpoint struct {
	Name    string
	Verdict string
	Reason  string
	Message string
}

// Counts of checkpoints by verdict.
type Counts struct{ Total, Valid, Invalid int64 }

// Rollbacks counts rollbacks by cause, and describes the last one. Intake counts them; this package only keeps them.
type Rollbacks struct {
	Total, Supervision, Request, Violation int64
	Last                                   Rollback
}

// Rollback is one of them. Before and To are names of checkpoints; To is empty for the base.
type Rollback struct {
	Time                      time.Time
	Cause, Before, To, Reason string
}

// Final is the final report of an attempt.
type Final struct {
	Epoch   int64
	Outcome string
	Reason  string
	Message string
	Head    string
	// Gate identifies the gate that runs next, if the outcome is Proving. ProvedBy identifies the gates that have passed, if it is ReadyToMerge.
	Gate, ProvedBy string
	// Task is the name of the task that the gate proves; empty for a gate before the delivery.
	Task string
	// TaskFailures is how often the agent has failed in its task, if the task is aborted after too many failures; 0 otherwise.
	TaskFailures int
	// Failure of the agent's latest model calls, if the attempt ended because of them; nil otherwise.
	Failure *protocol.Failure
}

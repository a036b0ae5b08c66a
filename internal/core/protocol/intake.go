// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// HTTP interface of intake. Every request carries "Authorization: Bearer <projected token>"; only the token's pod decides which Feature the
// request is for.
const (
	// OrdersPath answers GET with the Orders as they are now. With "If-None-Match: <etag>" the answer waits until
	// they differ, or for WaitQuery seconds at most, and has then status 304.
	OrdersPath = "/v1/orders"
	// ReportsPath takes POST of a ReportBatch and answers with a ReportAck.
	ReportsPath = "/v1/reports"
	// WaitQuery is the query parameter with the seconds to wait, at most MaxWaitSeconds.
	WaitQuery = "wait"
	// VersionQuery is the query parameter with the version of Orders that the caller reads. Intake refuses a caller that reads another one
	// than OrdersVersion, or does not say.
	VersionQuery = "version"
	// RevisionHeader is the revision of the objects that orders are made from, in the form of core/revision. Intake sends it with every
	// answer, and a caller sends the newest that it has seen: a replica whose caches are older does not answer from them.
	RevisionHeader = "Tidewaiter-Revision"
	// NextCheckpointHeader is the least number that a new checkpoint may have, as it was when the orders were sent. The body does not contain
	// it: every checkpoint changes it, and intake does not send orders again if only this number differs.
	NextCheckpointHeader = "Tidewaiter-Next-Checkpoint"
	// MaxWaitSeconds bounds a long poll.
	MaxWaitSeconds = 30
	// MaxReportBytes bounds the body of a report batch.
	MaxReportBytes = 1 << 20
	// MaxOrdersBytes bounds the body of orders. A Feature has less than 1 MiB of them, and its policy the rest.
	MaxOrdersBytes = 4 << 20
	// MaxArgumentBytes bounds an argument or a NAME=value of the agent's process: Linux refuses longer ones
	// (MAX_ARG_STRLEN of include/uapi/linux/binfmts.h, without the zero at its end).
	MaxArgumentBytes = 128<<10 - 1
)

// Kinds of runs that this package needs names for. RunAgent has an agent in its pod. RunGate is that of a pod that runs one gate, of a task or before the
// delivery, and has no agent.
const (
	RunAgent = "agent"
	RunGate  = "gate"
)

// OrdersVersion is the version of Orders. Pods pin their image, so that watchdog and manager may be of different versions.
const OrdersVersion = 2

// Orders is everything that a watchdog must know and do, as desired state. Intake always sends all of it, so a lost, repeated or reordered
// answer does no harm.
type Orders struct {
	Version int        `json:"version"`
	Feature FeatureRef `json:"feature"`
	// Attempt is the epoch that fences the volumes.
	Attempt int64 `json:"attempt"`
	// Run is "agent", "seal" or "gate".
	Run        string     `json:"run"`
	Repository Repository `json:"repository"`
	Agent      Agent      `json:"agent"`
	// Prompt of all tasks. It is here once: with a copy in each task, orders of one small Feature could take hundreds of megabytes.
	Prompt string `json:"prompt,omitempty"`
	// Tasks in the sequence in which they run.
	Tasks []Task `json:"tasks"`
	// MaxRetries is how often an agent that failed in a task starts again before the task is aborted. It is for tasks that Continue.
	MaxRetries int `json:"maxRetries,omitempty"`
	// Gates are the commands that tasks name. Each has the image of the agent.
	Gates []Gate `json:"gates,omitempty"`
	// Unnamed are the names of the gates that neither a task nor the delivery of the Feature names. The last task has them.
	Unnamed []string `json:"unnamed,omitempty"`
	// Planning is PlanningAuto or PlanningApprove if a model divides the work before the first task; empty if it does not. Planned is the hash of
	// the model's plan in Tasks and Plan: the watchdog adds it, and intake sends orders without it.
	Planning string `json:"planning,omitempty"`
	Planned  string `json:"planned,omitempty"`
	// Plan bounds the work.
	Plan Plan `json:"plan"`
	// Locks are the contracts whose lock this Feature holds now. Only under its lock may a contract's paths change: a lock that is not in this
	// list is not held.
	Locks []string `json:"locks,omitempty"`
	// Policy in effect; pinned by the watchdog at the start of each task.
	Policy   policy.Effective `json:"policy"`
	Delivery Delivery         `json:"delivery"`
	// Mode that the attempt's pod is made for, in the policy's words: in Deterministic mode the agent cannot write to the workspace. NextMode
	// is the mode of the next task. If it differs from Mode, the attempt ends before that task.
	Mode     string `json:"mode"`
	NextMode string `json:"nextMode"`
	// Answers are all answers to the agent's questions since the Feature began.
	Answers []Answer `json:"answers,omitempty"`
	// Directives are all current directives of users and other sources.
	Directives []Directive `json:"directives,omitempty"`
	// Suspend asks for a checkpoint and then the end of the attempt; Tidewaiter keeps the work.
	Suspend bool `json:"suspend,omitempty"`
	// Stop asks for the same because of StopReason (Deleted, DeadlineExceeded, LockLost): no attempt will follow.
	Stop       bool   `json:"stop,omitempty"`
	StopReason string `json:"stopReason,omitempty"`
	// Requests without a result.
	Requests []Request `json:"requests,omitempty"`
	// NextCheckpoint is the least number that a new checkpoint may have: numbers are never used twice, not even when a
	// volume was lost. It comes in NextCheckpointHeader, and the reader fills it in.
	NextCheckpoint int64 `json:"nextCheckpoint,omitempty"`
	// Generation of the Feature's spec.
	Generation int64 `json:"generation"`
	// MayPark: the agent's pod may end while a question waits. The volumes outlive it, and the manager knows the outcome Parked.
	MayPark bool `json:"mayPark,omitempty"`
	// GatePods: each gate of a task runs in a pod of its own, because the agent's container cannot write to the workspace. The volumes outlive the
	// agent's pod, and the manager knows that a task can be Proving.
	GatePods bool `json:"gatePods,omitempty"`
	// Unheeded has the names of the unheeded reviewers: agents of the project have addressed few of their directives, and they look only when a milestone is complete.
	Unheeded []string `json:"unheeded,omitempty"`
}

// Ways in which a model plans. With PlanningApprove a user must approve the plan before an agent works by it.
const (
	PlanningAuto    = "Auto"
	PlanningApprove = "Approve"
)

// GatesOf are the gates of a task, in the sequence in which they run.
func (o Orders) GatesOf(task string) []Gate {
	var list []Gate
	for _, t := range o.Tasks {
		for _, name := range t.Gates {
			for _, g := range o.Gates {
				if t.Name == task && g.Name == name {
					list = append(list, g)
				}
			}
		}
	}
	return list
}

// FeatureRef names a Feature.
type FeatureRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Repository that the Feature works on.
type Repository struct {
	URL      string `json:"url"`
	Revision string `json:"revision"`
	// HasCredentials says that the Feature names a Secret: a missing Secret is then a fault.
	HasCredentials bool `json:"hasCredentials,omitempty"`
	// SecretName for messages.
	SecretName string `json:"secretName,omitempty"`
}

// Agent says what to run.
type Agent struct {
	Runtime string   `json:"runtime"`
	Command []string `json:"command"`
	// Args follow the command, and the arguments with which a runtime starts its own program.
	Args []string `json:"args,omitempty"`
	// Env as NAME=value.
	Env []string `json:"env,omitempty"`
	// Role of the agent, to which path rules and checks of the policy refer; may be empty.
	Role string `json:"role,omitempty"`
}

// Task is one run of the agent.
type Task struct {
	// Name is milestone/task, or the Feature's name if the prompt is the only task.
	Name         string `json:"name"`
	Instructions string `json:"instructions,omitempty"`
	// Gates are the names of the gates that must pass after it, in the sequence in which they run.
	Gates []string `json:"gates,omitempty"`
	// Continue: if the task cannot be done it is aborted, and the work continues with the next one.
	Continue bool `json:"continue,omitempty"`
}

// Beginnings of the names of tasks that users have not listed; numbers follow. Tasks of users have one slash at most in their names.
const (
	// GatesPrefix: gates before the delivery have failed.
	GatesPrefix = "delivery/gates/"
	// PolishPrefix of polish tasks: the work is done, and directives of reviewers are open.
	PolishPrefix = "delivery/polish/"
	// DirectivePrefix of critical tasks: before the next listed one, the agent addresses a Critical directive of a reviewer. The id of the directive follows,
	// which has a slash.
	DirectivePrefix = "directive/"
)

// Added says whether a task has a name of a task that users have not listed.
func Added(task string) bool { return strings.HasPrefix(task, GatesPrefix) || Extra(task) }

// Extra says whether a task is only for directives of reviewers: the work can be delivered without it.
func Extra(task string) bool { return Polishes(task) || Directs(task) }

// Directs says whether the agent addresses one Critical directive of a reviewer in the task with a name. A task of a milestone "directive" has one slash.
func Directs(task string) bool {
	id, is := strings.CutPrefix(task, DirectivePrefix)
	return is && strings.Contains(id, "/")
}

// Polishes says whether the agent addresses directives of reviewers in the task with a name.
func Polishes(task string) bool { return strings.HasPrefix(task, PolishPrefix) }

// Gate is a command that must exit with 0. A policy has gates of its own.
type Gate = policy.Gate

// GateReport is a file in which a gate says what it found.
type GateReport = policy.GateReport

// Formats of reports.
const (
	ReportJUnit     = "JUnit"
	ReportGoTest    = "GoTest"
	ReportTAP       = "TAP"
	ReportLCOV      = "LCOV"
	ReportCobertura = "Cobertura"
)

// Delivery says what Tidewaiter does with promoted work.
type Delivery struct {
	Branch          string `json:"branch"`
	Push            bool   `json:"push"`
	RequireApproval bool   `json:"requireApproval,omitempty"`
	ApprovedCommit  string `json:"approvedCommit,omitempty"`
	AuthorName      string `json:"authorName"`
	AuthorEmail     string `json:"authorEmail"`
	// Subject of delivered commits.
	Subject string `json:"subject"`
	// Gates that must pass on the tree of the head before anything is delivered, in the sequence in which they run. Each has its image.
	Gates []Gate `json:"gates,omitempty"`
}

// Answer to a question.
type Answer struct {
	// Question is its id.
	Question string `json:"question"`
	Text     string `json:"text"`
}

// Request is a one-shot act.
type Request struct {
	ID string `json:"id"`
	// Kind is one of the kinds of requests that reach a watchdog.
	Kind string `json:"kind"`
	// Rollback says which tree or paths to restore; set for that kind only.
	Rollback *Rollback `json:"rollback,omitempty"`
	// Hash of the plan that RequestApprovePlan approves.
	Hash string `json:"hash,omitempty"`
	// Directive that RequestReplan has for the planner; empty for none.
	Directive string `json:"directive,omitempty"`
}

// Rollback restores a tree, or a part of it.
type Rollback struct {
	// Kind is one of the kinds of rollbacks.
	Kind string `json:"kind"`
	// Checkpoint to restore, by its number; 0 is the last promoted tree, and the base before there is one.
	Checkpoint int64 `json:"checkpoint,omitempty"`
	// Paths of RollbackPaths: files and directories.
	Paths []string `json:"paths,omitempty"`
}

// Kinds of rollbacks, in the API's own names.
const (
	// RollbackFull restores the whole tree.
	RollbackFull = "Full"
	// RollbackPaths restores the named paths.
	RollbackPaths = "Paths"
	// RollbackSmart restores the paths that break a rule now, and keeps every other change.
	RollbackSmart = "Smart"
)

// SteeringRequests is the prefix of the ids of requests that a watchdog makes itself, when steering rolls back. Ids of users' requests have no slash.
const SteeringRequests = "steering/"

// AssessorRequests is the prefix of the ids of requests for another plan that a watchdog makes itself, when the assessor finds that the work diverges.
const AssessorRequests = "assessor/"

// Kinds of requests that reach a watchdog.
const (
	RequestCheckpoint   = "Checkpoint"
	RequestResetBreaker = "ResetBreaker"
	RequestRollback     = "Rollback"
	RequestRelease      = "Release"
	RequestApprovePlan  = "ApprovePlan"
	RequestReplan       = "Replan"
)

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Planning says who makes the plan.
// +kubebuilder:validation:Enum=None;Auto;Approve
type Planning string

// Ways to plan.
const (
	PlanningNone    Planning = "None"
	PlanningAuto    Planning = "Auto"
	PlanningApprove Planning = "Approve"
)

// Plan limits the work.
type Plan struct {
	// allowedAreas are gitignore-style globs of the paths that the work can change, matched on canonical paths ("web/**"). Without them, it can change everything.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	AllowedAreas []string `json:"allowedAreas,omitempty"`
	// forbiddenAreas are globs of the paths that must not change, even inside allowed areas.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ForbiddenAreas []string `json:"forbiddenAreas,omitempty"`
	// files is the whole set of planned files. If it is present, any other change is a plan violation.
	// +optional
	Files *PlannedFiles `json:"files,omitempty"`
	// contracts are the contracts that the work can change, by the names that a policy gives them. The Feature holds their locks while it runs: no two Features hold one of the same repository. The contracts of a running attempt can grow, not shrink.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Contracts []string `json:"contracts,omitempty"`
	// milestones are the groups of tasks, in the order of the work.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Milestones []Milestone `json:"milestones,omitempty"`
}

// PlannedFiles is the set of paths (or globs) that a plan names, by what the work does with them.
// +kubebuilder:validation:XValidation:rule="has(self.create) || has(self.modify) || has(self.delete)",message="files must name at least one path to create, modify or delete; leave files out to allow every path"
type PlannedFiles struct {
	// create names files that the work can add.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Create []string `json:"create,omitempty"`
	// modify names files that the work can change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Modify []string `json:"modify,omitempty"`
	// delete names files that the work can remove.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Delete []string `json:"delete,omitempty"`
}

// Milestone is a group of tasks.
type Milestone struct {
	// name is the name of the milestone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// tasks are the tasks of the milestone. The agent does them one after the other, in this order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Tasks []Task `json:"tasks"`
}

// Task is one run of the agent.
type Task struct {
	// name is the name of the task, unique within its milestone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// instructions are the instructions for the agent. It gets the Feature's prompt with them.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Instructions string `json:"instructions,omitempty"`
	// gates are the gates that must pass after this task, by name from spec.gates, in the order in which they run.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	Gates []string `json:"gates,omitempty"`
}

// Gate is a command that must exit with 0. It runs in the agent's container when no process of the agent is left, with an empty home directory and without the agent's environment variables.
type Gate struct {
	// name is the name of the gate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// command is the command to run in the workspace. The watchdog puts back what it changes in files that are captured; files that Git ignores stay. Exit codes 126 and 127 mean that the command cannot be started: then nobody corrects, and the Feature is Blocked with GateNotStarted.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command"`
	// timeout is the time after which the watchdog ends the gate. A gate that does not end in time runs once more, and then it has failed.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s')",message="timeout must be a positive duration, for example 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

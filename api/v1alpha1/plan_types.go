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
	// onTaskAborted says what happens when a task of the milestone cannot be done: its corrections are spent, or its agent has failed and has no retry left. Block (the default) stops the work. Continue aborts the task, takes its changes out of the workspace, and continues with the next task.
	// +optional
	OnTaskAborted TaskAbortedAction `json:"onTaskAborted,omitempty"`
}

// TaskAbortedAction says what happens when a task cannot be done.
// +kubebuilder:validation:Enum=Block;Continue
type TaskAbortedAction string

// Actions when a task cannot be done.
const (
	TaskAbortedBlock    TaskAbortedAction = "Block"
	TaskAbortedContinue TaskAbortedAction = "Continue"
)

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

// Gate is a command that must exit with 0, with an empty home directory and without the agent's environment variables. After a task it runs in the agent's container, when no process of the agent is left. Before the delivery, and after a task in Deterministic mode, it runs in a pod of its own.
// +kubebuilder:validation:XValidation:rule="!has(self.require) || has(self.report)",message="require needs report: say in which file, and in which format, the command writes what it found"
// +kubebuilder:validation:XValidation:rule="!has(self.require) || !has(self.require.minTests) || !has(self.report) || self.report.format in ['JUnit', 'GoTest', 'TAP']",message="require.minTests needs a report of tests: set report.format to JUnit, GoTest or TAP"
// +kubebuilder:validation:XValidation:rule="!has(self.require) || !has(self.require.minCoveragePercent) || !has(self.report) || self.report.format in ['LCOV', 'Cobertura']",message="require.minCoveragePercent needs a report of coverage: set report.format to LCOV or Cobertura"
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
	// timeout is the time after which the watchdog ends the gate. A gate that does not end in time has failed; in the agent's container it runs once more before that.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s')",message="timeout must be a positive duration, for example 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// env are plain variables of the gate's environment, in addition to the variables that every gate has. They can replace LANG and CI. Put no secrets here, because the command runs what the agent has written.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(e.name in ['PATH', 'HOME', 'TMPDIR', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy']))",message="env of a gate cannot set PATH, HOME, TMPDIR or a variable of the proxy: Tidewaiter sets them. To extend PATH, set it in command, for example [sh, -c, 'PATH=/opt/bin:$PATH make test']"
	Env []EnvVar `json:"env,omitempty"`
	// report is the file in which the command says what it found. The watchdog removes the file before the gate and reads it afterwards. A gate of which the command exits with 0 has failed all the same if the file is missing, is larger than 8 MiB, is not well-formed, or names failed tests.
	// +optional
	Report *GateReport `json:"report,omitempty"`
	// require is what the report must say.
	// +optional
	Require *GateRequirements `json:"require,omitempty"`
}

// ReportFormat is the format of a report.
// +kubebuilder:validation:Enum=JUnit;GoTest;TAP;LCOV;Cobertura
type ReportFormat string

// Formats of reports: JUnit, GoTest and TAP are about tests, LCOV and Cobertura about coverage.
const (
	ReportJUnit     ReportFormat = "JUnit"
	ReportGoTest    ReportFormat = "GoTest"
	ReportTAP       ReportFormat = "TAP"
	ReportLCOV      ReportFormat = "LCOV"
	ReportCobertura ReportFormat = "Cobertura"
)

// GateReport is a file in which a gate says what it found.
type GateReport struct {
	// format is the format of the file: JUnit (XML), GoTest (the output of go test -json) or TAP (versions 13 and 14) for tests, LCOV (a tracefile) or Cobertura (XML) for coverage.
	// +required
	Format ReportFormat `json:"format"`
	// path is the path of the file from the root of the repository, for example build/junit.xml. Choose a path that Git ignores.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.split('/').all(x, !(x in ['', '.', '..']) && x.lowerAscii() != '.git') && !self.contains('\\x00')",message="path must be the path of a file from the root of the repository, for example build/junit.xml: without '/' at its ends, without '.', '..' and '.git'"
	Path string `json:"path"`
}

// GateRequirements are what a report must say.
// +kubebuilder:validation:XValidation:rule="has(self.minTests) || has(self.minCoveragePercent)",message="require must set minTests or minCoveragePercent"
type GateRequirements struct {
	// minTests is how many tests must have run. Skipped tests do not count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MinTests *int32 `json:"minTests,omitempty"`
	// minCoveragePercent is how many percent of the lines in the report tests must cover. Branches do not count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinCoveragePercent *int32 `json:"minCoveragePercent,omitempty"`
}

// PolicyGate is a gate that must pass before every delivery.
type PolicyGate struct {
	Gate `json:",inline"`
	// image is the image of the container in which the gate runs, with the programs of its command. Defaults to the image of the Feature's agent.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

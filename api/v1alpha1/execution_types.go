// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Execution says how the agent's writes become checkpoints. Features and policies use the same names. If a field is absent, the next source provides it, in the order global overrides, project overrides, Feature, project defaults, global defaults, built-in values.
type Execution struct {
	// mode says who writes to the workspace. In Interactive mode the agent writes to it, and checkpoints check what it writes. In Deterministic mode the agent only reads it, and the watchdog checks every patch before it applies it. Defaults to Interactive.
	// +optional
	Mode ExecutionMode `json:"mode,omitempty"`
	// strategy says what happens to an invalid workspace. Direct leaves it and tells the agent. Shadow puts it back to the last valid tree. Auto is Shadow for an attempt whose plan names contracts or may change what paths.rules of the policy are about, and Direct for any other. The choice is in status.job. Defaults to Direct.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// promotion says how much of a tree the watchdog promotes under strategy Shadow, which puts an invalid workspace back: Atomic only whole trees, Incremental the valid part. Defaults to Atomic.
	// +optional
	Promotion Promotion `json:"promotion,omitempty"`
	// revertOnViolation says what the watchdog restores when a path violates a Critical rule: None, ViolatingPaths or Full. Defaults to None.
	// +optional
	RevertOnViolation RevertOnViolation `json:"revertOnViolation,omitempty"`
	// checkpoint says when the watchdog takes checkpoints.
	// +optional
	Checkpoint *CheckpointTriggers `json:"checkpoint,omitempty"`
}

// CheckpointTriggers says when the watchdog takes checkpoints.
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.minInterval) || duration(self.minInterval) <= duration(self.interval)",message="minInterval must not be longer than interval"
type CheckpointTriggers struct {
	// interval is the time between checkpoints of a workspace that changed. Defaults to 30s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1s')",message="interval must be a duration of at least 1s, for example 30s"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// minInterval is the least time between two checkpoints, except the final one. Defaults to 5s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('0s')",message="minInterval must be a duration, for example 5s"
	MinInterval *metav1.Duration `json:"minInterval,omitempty"`
	// maxChanges is how many changed paths cause a checkpoint before the interval is over. Defaults to 50.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxChanges *int32 `json:"maxChanges,omitempty"`
	// pauseTimeout is how long a freeze can take before the watchdog captures the checkpoint unsettled. Defaults to 10s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s') && duration(self) <= duration('10m')",message="pauseTimeout must be a duration of more than 0s and at most 10m, for example 10s"
	PauseTimeout *metav1.Duration `json:"pauseTimeout,omitempty"`
}

// ExecutionMode says who writes the workspace.
// +kubebuilder:validation:Enum=Interactive;Deterministic
type ExecutionMode string

// Execution modes.
const (
	ModeInteractive   ExecutionMode = "Interactive"
	ModeDeterministic ExecutionMode = "Deterministic"
)

// Strategy says what happens to an invalid workspace.
// +kubebuilder:validation:Enum=Direct;Shadow;Auto
type Strategy string

// Strategies.
const (
	StrategyDirect Strategy = "Direct"
	StrategyShadow Strategy = "Shadow"
	// StrategyAuto is one of the others, decided once for each attempt.
	StrategyAuto Strategy = "Auto"
)

// Promotion says how much of a tree the watchdog promotes.
// +kubebuilder:validation:Enum=Atomic;Incremental
type Promotion string

// Promotions.
const (
	PromotionAtomic      Promotion = "Atomic"
	PromotionIncremental Promotion = "Incremental"
)

// RevertOnViolation says what a Critical violation reverts.
// +kubebuilder:validation:Enum=None;ViolatingPaths;Full
type RevertOnViolation string

// Reverts.
const (
	RevertNone           RevertOnViolation = "None"
	RevertViolatingPaths RevertOnViolation = "ViolatingPaths"
	RevertFull           RevertOnViolation = "Full"
)

// Severity of a broken rule: Info is logged, Warning tells the agent, Error blocks promotion, Critical blocks and may revert.
// +kubebuilder:validation:Enum=Info;Warning;Error;Critical
type Severity string

// Severities, least first.
const (
	SeverityInfo     Severity = "Info"
	SeverityWarning  Severity = "Warning"
	SeverityError    Severity = "Error"
	SeverityCritical Severity = "Critical"
)

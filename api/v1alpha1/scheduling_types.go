// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Scheduling says which nodes run the pods of a Feature, and before whom. Fields have the names and meanings that they have in a pod. Pods mount the volumes of the Feature, which may hold them to a node or a zone once they exist.
type Scheduling struct {
	// nodeSelector has the labels that a node needs to run the pods.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$'))",message="a key of nodeSelector must be the key of a label, for example example.com/pool"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`
	// tolerations let the pods run on nodes with taints. The list replaces that of a default as a whole; an empty one tolerates no taint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []Toleration `json:"tolerations,omitzero"`
	// priorityClassName is the PriorityClass of the pods. If it is empty, the pods have the cluster's default. Classes of the system are not for agents.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$') && !self.startsWith('system-')",message="priorityClassName must be the name of a PriorityClass that does not begin with system-: those classes keep the cluster itself alive"
	PriorityClassName *string `json:"priorityClassName,omitempty"`
	// topologySpreadConstraints spread the running agents of the project over nodes. They count these pods, so that you need no selector. The list replaces that of a default as a whole; an empty one spreads nothing.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=4
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitzero"`
}

// Toleration of a taint. It names the key: a toleration of all taints would hold pods on nodes that are lost or drained.
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="value must be left out where operator is Exists"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",message="tolerationSeconds needs the effect NoExecute"
type Toleration struct {
	// key is the key of the taint. It cannot be a taint of the cluster itself (node.kubernetes.io/unreachable, for example): a pod would stay on a lost or drained node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$') && !self.startsWith('node.kubernetes.io/')",message="key must be the key of a taint, for example example.com/agents, but not of node.kubernetes.io: a pod would stay on a lost or drained node"
	Key string `json:"key"`
	// operator says how the value counts: Equal tolerates the taint with this value, Exists with any. Defaults to Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the value of the taint, only for the operator Equal.
	// +optional
	Value LabelValue `json:"value,omitempty"`
	// effect is the effect of the taint. Without it, the toleration is for every effect.
	// +optional
	Effect TaintEffect `json:"effect,omitempty"`
	// tolerationSeconds is how long a pod stays on a node that gets a taint with the effect NoExecute. Without it, the pod stays for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator says how the value of a taint counts.
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

// Operators.
const (
	// TolerateEqual tolerates a taint with the value.
	TolerateEqual TolerationOperator = "Equal"
	// TolerateExists tolerates a taint whatever its value.
	TolerateExists TolerationOperator = "Exists"
)

// TaintEffect is what a taint does to pods that do not tolerate it.
// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
type TaintEffect string

// Effects.
const (
	// TaintNoSchedule lets no new pod onto the node.
	TaintNoSchedule TaintEffect = "NoSchedule"
	// TaintPreferNoSchedule lets a new pod onto the node where no other takes it.
	TaintPreferNoSchedule TaintEffect = "PreferNoSchedule"
	// TaintNoExecute ends the pods that are there, too.
	TaintNoExecute TaintEffect = "NoExecute"
)

// TopologySpreadConstraint bounds how unevenly the running agents of a project are spread.
type TopologySpreadConstraint struct {
	// topologyKey is the label of nodes that divides them into groups: kubernetes.io/hostname or topology.kubernetes.io/zone, for example.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$')",message="topologyKey must be the key of a label, for example topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey"`
	// whenUnsatisfiable says how strict the constraint is: ScheduleAnyway prefers nodes that spread evenly, DoNotSchedule lets the agent wait for one.
	// +required
	WhenUnsatisfiable UnsatisfiableAction `json:"whenUnsatisfiable"`
	// maxSkew is how many more agents one group can have than another.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxSkew int32 `json:"maxSkew"`
}

// UnsatisfiableAction says what happens to a pod that no node can take without breaking a constraint.
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableAction string

// Actions, in Kubernetes' own names.
const (
	// DoNotSchedule lets the pod wait.
	DoNotSchedule UnsatisfiableAction = UnsatisfiableAction(corev1.DoNotSchedule)
	// ScheduleAnyway takes the node that spreads best.
	ScheduleAnyway UnsatisfiableAction = UnsatisfiableAction(corev1.ScheduleAnyway)
)

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// LabelSelector selects objects by their labels, in the form of Kubernetes' own label selectors. It has bounds, so that
// what a policy costs is known. An empty one selects every object.
type LabelSelector struct {
	// matchLabels are the labels that an object must have, all of them.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317)",message="a key has at most 317 characters: a prefix of 253, a slash and a name of 63"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// matchExpressions are the requirements that an object must fulfil, all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// LabelRequirement is what one label must be.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : !has(self.values) || self.values.size() == 0",message="operators In and NotIn need values, operators Exists and DoesNotExist have none"
type LabelRequirement struct {
	// key is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	Key string `json:"key"`
	// operator says how the values count. An object without the label fulfils NotIn and DoesNotExist.
	// +required
	Operator LabelOperator `json:"operator"`
	// values are the values of the label, only for In and NotIn.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Values []LabelValue `json:"values,omitempty"`
}

// LabelOperator says how a label's values count.
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type LabelOperator string

// Operators.
const (
	// LabelIn wants one of the values.
	LabelIn LabelOperator = "In"
	// LabelNotIn wants none of the values, or no such label.
	LabelNotIn LabelOperator = "NotIn"
	// LabelExists wants the label, whatever its value.
	LabelExists LabelOperator = "Exists"
	// LabelDoesNotExist wants no such label.
	LabelDoesNotExist LabelOperator = "DoesNotExist"
)

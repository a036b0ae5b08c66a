// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Template is text that the gateway puts around what an agent says to a model, or a check of what the model answers. In the system namespace it is global. In any other namespace it belongs to that project. A ConfigMap of the system namespace with the label tidewaiter.dev/template becomes a Template named configmap-<name>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=twt,categories=tidewaiter
// +kubebuilder:selectablefield:JSONPath=`.spec.direction`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Direction",type=string,JSONPath=`.spec.direction`
// +kubebuilder:printcolumn:name="Order",type=integer,JSONPath=`.spec.order`
// +kubebuilder:printcolumn:name="Features",type=integer,JSONPath=`.status.features`
// +kubebuilder:printcolumn:name="Hash",type=string,JSONPath=`.status.hash`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Template struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the template.
	// +required
	Spec TemplateSpec `json:"spec"`
	// status says whether the gateway can use the template.
	// +optional
	Status TemplateStatus `json:"status,omitzero"`
}

// TemplateList is a list of Templates.
//
// +kubebuilder:object:root=true
type TemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Template `json:"items"`
}

// Direction of a template.
// +kubebuilder:validation:Enum=Input;Output
type Direction string

// Directions.
const (
	// DirectionInput is put before what the agent sends.
	DirectionInput Direction = "Input"
	// DirectionOutput formats or checks final answers.
	DirectionOutput Direction = "Output"
)

// TemplateSpec is a template.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.text) && has(self.configMapKeyRef))",message="only one of text and configMapKeyRef may be set"
// +kubebuilder:validation:XValidation:rule="self.direction == 'Output' || has(self.text) || has(self.configMapKeyRef)",message="an Input template needs text or configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="self.direction == 'Output' || !(has(self.requiredSections) || has(self.requiredPatterns) || has(self.forbiddenPhrases) || has(self.jsonSchema) || has(self.autoCorrect))",message="requiredSections, requiredPatterns, forbiddenPhrases, jsonSchema and autoCorrect check answers: they need direction Output"
// +kubebuilder:validation:XValidation:rule="self.direction == 'Input' || has(self.text) || has(self.configMapKeyRef) || has(self.requiredSections) || has(self.requiredPatterns) || has(self.forbiddenPhrases) || has(self.jsonSchema) || has(self.autoCorrect)",message="an Output template needs text, configMapKeyRef, requiredSections, requiredPatterns, forbiddenPhrases, jsonSchema or autoCorrect"
type TemplateSpec struct {
	// direction says when the gateway uses the template. Input goes before what the agent sends, Output formats or checks final answers.
	// +required
	Direction Direction `json:"direction"`
	// order is the place among templates of the same scope and direction, lowest first. The name decides a tie.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Order int32 `json:"order,omitempty"`
	// text is the text of the template. The gateway puts the text of an Output template around final answers. In it, {{OUTPUT}} stands for the answer, at most once; without {{OUTPUT}} the text comes first. Global texts go around the texts of a project.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Text *string `json:"text,omitempty"`
	// configMapKeyRef takes the text from a ConfigMap of the same namespace.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyRef `json:"configMapKeyRef,omitempty"`
	AnswerChecks    `json:",inline"`
}

// AnswerChecks are the rules for a final answer.
type AnswerChecks struct {
	// requiredSections are titles. For each of them, a final answer must have a Markdown heading, of any level and in any case.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	RequiredSections []string `json:"requiredSections,omitempty"`
	// requiredPatterns are regular expressions (RE2). Each of them must match somewhere in a final answer.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	RequiredPatterns []string `json:"requiredPatterns,omitempty"`
	// forbiddenPhrases are what a final answer must not say, in any case.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	ForbiddenPhrases []string `json:"forbiddenPhrases,omitempty"`
	// jsonSchema is a JSON Schema that a final answer must match. The answer is then nothing but JSON. The schema is of draft 2020-12 or draft-07, with references only inside of it and without recursion.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	JSONSchema *apiextensionsv1.JSON `json:"jsonSchema,omitempty"`
	// autoCorrect says what the gateway corrects in a final answer before it asks the model again.
	// +optional
	AutoCorrect *AutoCorrect `json:"autoCorrect,omitempty"`
}

// AutoCorrect says what the gateway can fix in an answer.
type AutoCorrect struct {
	// trimSpace removes white space around the answer.
	// +optional
	TrimSpace bool `json:"trimSpace,omitempty"`
	// addMissingSections appends empty required sections.
	// +optional
	AddMissingSections bool `json:"addMissingSections,omitempty"`
	// stripCodeFence removes a Markdown fence around an answer that is nothing but JSON.
	// +optional
	StripCodeFence bool `json:"stripCodeFence,omitempty"`
}

// TemplateStatus says whether the gateway can use a template.
type TemplateStatus struct {
	// observedGeneration is the generation of the template that the controller has checked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// hash is the hash of inForce.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// inForce is what the gateway uses: the newest usable content. A template that breaks later keeps it.
	// +optional
	InForce *TemplateContent `json:"inForce,omitempty"`
	// features is the number of Features that the template applies to and that are not at their end.
	// +optional
	Features int32 `json:"features"`
	// conditions are Valid, InUse, and Ready, which follows from Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TemplateContent is what a template does, with its text, from whatever place.
type TemplateContent struct {
	// direction is the direction of the template.
	// +required
	Direction Direction `json:"direction"`
	// order is the order of the template.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Order int32 `json:"order,omitempty"`
	// text is the text of the template.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Text string `json:"text,omitempty"`

	AnswerChecks `json:",inline"`
}

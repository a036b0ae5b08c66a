// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of Tidewaiter: Feature, SupervisorPolicy, Template and Checkpoint.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="applyconfiguration"
// +groupName=tidewaiter.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this version of the API.
var GroupVersion = schema.GroupVersion{Group: "tidewaiter.dev", Version: "v1alpha1"}

// SchemeGroupVersion is GroupVersion by the name that generated apply configurations use.
var SchemeGroupVersion = GroupVersion

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Feature{}, &FeatureList{},
		&SupervisorPolicy{}, &SupervisorPolicyList{},
		&Template{}, &TemplateList{},
		&Checkpoint{}, &CheckpointList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

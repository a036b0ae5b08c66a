// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// Place is what decides, together with a Feature itself, which policies apply to it.
type Place struct {
	// SystemNamespace is the namespace whose policies are global.
	SystemNamespace string
	// Labels of the Feature's namespace, which global policies may select by.
	Labels map[string]string
}

// Selects reports whether a policy applies to a Feature: by its scope, and by its selectors. It fails on a selector that
// cannot be used, but only within the policy's scope.
func Selects(p *v1alpha1.SupervisorPolicy, f *v1alpha1.Feature, at Place) (bool, error) {
	if p.Namespace != at.SystemNamespace && p.Namespace != f.Namespace || p.DeletionTimestamp != nil {
		return false, nil
	}
	projects, features, err := selectors(p, at.SystemNamespace)
	if err != nil {
		return false, err
	}
	return projects.Matches(labels.Set(at.Labels)) && features.Matches(labels.Set(f.Labels)), nil
}

// selectors of a policy: for projects by the labels of their namespaces, and for Features by their own. The error names
// every field that cannot be used.
func selectors(p *v1alpha1.SupervisorPolicy, systemNamespace string) (projects, features labels.Selector, err error) {
	projects, projectsErr := selector("spec.namespaceSelector", p.Spec.NamespaceSelector)
	global := p.Namespace == systemNamespace
	if p.Spec.NamespaceSelector != nil && !global {
		projectsErr = fmt.Errorf("spec.namespaceSelector: a policy of a project applies only to that project: remove the field, or create the policy in namespace %s", systemNamespace)
	}
	features, featuresErr := selector("spec.selector", p.Spec.Selector)
	return projects, features, errors.Join(projectsErr, featuresErr, keysErr(p.Spec.Selector, global))
}

// keysErr refuses to select Features by labels that people may set who may not write the policy.
func keysErr(s *v1alpha1.LabelSelector, global bool) error {
	prefix, writers := v1alpha1.PolicyLabelPrefix, "the editors of a project"
	if global {
		prefix, writers = v1alpha1.GlobalPolicyLabelPrefix, "people of a project"
	}
	var errs []error
	for _, key := range keys(s) {
		if !strings.HasPrefix(key, prefix) {
			errs = append(errs, fmt.Errorf("spec.selector: label %q can be set by %s: use a label that begins with %s", key, writers, prefix))
		}
	}
	return errors.Join(errs...)
}

// keys of the labels that a selector looks at, sorted.
func keys(s *v1alpha1.LabelSelector) []string {
	if s == nil {
		return nil
	}
	var list []string
	for key := range s.MatchLabels {
		list = append(list, key)
	}
	for _, e := range s.MatchExpressions {
		list = append(list, e.Key)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// selector reads a selector; field names it in errors. None selects everything.
func selector(field string, s *v1alpha1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	standard := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range s.MatchLabels {
		standard.MatchLabels[key] = string(value)
	}
	for _, e := range s.MatchExpressions {
		r := metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator)}
		for _, value := range e.Values {
			r.Values = append(r.Values, string(value))
		}
		standard.MatchExpressions = append(standard.MatchExpressions, r)
	}
	read, err := metav1.LabelSelectorAsSelector(standard)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return read, nil
}

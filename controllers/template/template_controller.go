// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template says of each Template whether it can be used, and keeps the last content that could. ConfigMaps of the
// system namespace with the label tidewaiter.dev/template become Templates.
package template

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/conditions"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
)

// +kubebuilder:rbac:groups=tidewaiter.dev,resources=templates,verbs=get;list;watch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=templates/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get

const fieldOwner = client.FieldOwner("tidewaiter-template")

// recheck is how often a Template is looked at again: a text that is kept in a ConfigMap, because ConfigMaps are not watched,
// so that the manager needs no right to list them; and how many Features have the Template, which is for people.
const recheck = 30 * time.Second

// Reconciler reconciles Templates. All fields are required.
type Reconciler struct {
	// Client writes.
	Client client.Client
	// Live reads ConfigMaps from the API server.
	Live client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
	// SystemNamespace is where Templates are global.
	SystemNamespace string
}

// scope is what one reconcile learns, in the order in which it is learnt.
type scope struct {
	template *v1alpha1.Template
	now      time.Time
	// text of the template; set by readText.
	text string
	// features that have the template and are not at their end; set by count.
	features int32
	// reason and message of Valid where the template cannot be used; set by readText and check.
	reason, message string
}

// Reconcile is the whole story of a Template, one line per step.
func (r *Reconciler) Reconcile(ctx context.Context, t *v1alpha1.Template) (ctrl.Result, error) {
	if t.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	s := &scope{template: t, now: r.Clock.Now()}
	err := flow.Run(ctx, s,
		r.readText, // read
		r.check,    // pure
		r.count,    // read
	)
	return flow.Finish(ctx, err, r.close(s, err))
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("template").
		For(&v1alpha1.Template{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func (r *Reconciler) readText(ctx context.Context, s *scope) error {
	spec := s.template.Spec
	if spec.Text != nil {
		s.text = *spec.Text
	}
	if spec.ConfigMapKeyRef == nil {
		return nil
	}
	var source corev1.ConfigMap
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.template.Namespace, Name: spec.ConfigMapKeyRef.Name}, &source)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", spec.ConfigMapKeyRef.Name, err)
	}
	text, ok := source.Data[spec.ConfigMapKeyRef.Key]
	switch {
	case apierrors.IsNotFound(err):
		s.reason, s.message = v1alpha1.ReasonConfigMapNotFound, fmt.Sprintf("ConfigMap %s does not exist in namespace %s: create it.", spec.ConfigMapKeyRef.Name, s.template.Namespace)
	case !ok:
		s.reason, s.message = v1alpha1.ReasonConfigMapNotFound, fmt.Sprintf("ConfigMap %s has no key %q: add it.", spec.ConfigMapKeyRef.Name, spec.ConfigMapKeyRef.Key)
	default:
		s.text = text
	}
	return nil
}

func (r *Reconciler) check(_ context.Context, s *scope) error {
	if s.reason != "" {
		return nil
	}
	if problem := problemOf(s.template.Spec, s.text); problem != "" {
		s.reason, s.message = v1alpha1.ReasonInvalid, problem
	}
	return nil
}

// count the Features that have the template.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	namespace := s.template.Namespace
	if namespace == r.SystemNamespace {
		namespace = ""
	}
	var list v1alpha1.FeatureList
	// They are only looked at: a copy of every Feature would cost more than counting them.
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Features: %w", err)
	}
	for i := range list.Items {
		if p := list.Items[i].Status.Phase; p != v1alpha1.PhaseDelivered && p != v1alpha1.PhaseFailed {
			s.features++
		}
	}
	return nil
}

func (r *Reconciler) close(s *scope, err error) flow.Close {
	if err != nil {
		return flow.Close{}
	}
	t := s.template
	status := v1alpha1.TemplateStatus{
		ObservedGeneration: t.Generation, Hash: t.Status.Hash, InForce: t.Status.InForce, Features: s.features, Conditions: slices.Clone(t.Status.Conditions),
	}
	w := conditions.Writer{List: &status.Conditions, Generation: t.Generation, Now: s.now}
	setValid(w, s, &status)
	if s.features > 0 {
		w.Set(v1alpha1.ConditionInUse, metav1.ConditionTrue, v1alpha1.ReasonInUse, "Features use it. A change takes effect with their next task.")
	} else {
		w.Set(v1alpha1.ConditionInUse, metav1.ConditionFalse, v1alpha1.ReasonNotInUse, "No running or pending Feature uses it.")
	}
	w.Summarize(v1alpha1.ConditionReady, v1alpha1.ConditionValid)
	end := flow.Close{Recheck: recheck}
	if !equality.Semantic.DeepEqual(status, t.Status) {
		end.Write = func(ctx context.Context) error { return r.writeStatus(ctx, t, status) }
	}
	return end
}

func setValid(w conditions.Writer, s *scope, status *v1alpha1.TemplateStatus) {
	content := &v1alpha1.TemplateContent{Direction: s.template.Spec.Direction, Order: s.template.Spec.Order, Text: s.text, AnswerChecks: s.template.Spec.AnswerChecks}
	switch {
	case s.reason != "" && status.InForce == nil:
		w.Set(v1alpha1.ConditionValid, metav1.ConditionFalse, s.reason, s.message+" Tidewaiter does not use it until then.")
	case s.reason != "":
		w.Set(v1alpha1.ConditionValid, metav1.ConditionFalse, s.reason, s.message+" Until then Tidewaiter uses the content of status.inForce.")
	case s.template.Spec.Direction == v1alpha1.DirectionOutput:
		status.InForce, status.Hash = content, hashOf(s.template.Spec, s.text)
		w.Set(v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonValid, "The template checks and formats the final answers of agents, from their next task on.")
	default:
		status.InForce, status.Hash = content, hashOf(s.template.Spec, s.text)
		w.Set(v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonValid, "The gateway puts the template before the prompts of agents, from their next task on.")
	}
}

func (r *Reconciler) writeStatus(ctx context.Context, t *v1alpha1.Template, status v1alpha1.TemplateStatus) error {
	// The API's JSON is what both types have in common.
	raw, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode status of Template %s: %w", t.Name, err)
	}
	config := applyv1alpha1.TemplateStatus()
	if err := json.Unmarshal(raw, config); err != nil {
		return fmt.Errorf("decode status of Template %s: %w", t.Name, err)
	}
	template := applyv1alpha1.Template(t.Name, t.Namespace).WithUID(t.UID).WithResourceVersion(t.ResourceVersion).WithStatus(config)
	if err := r.Client.Status().Apply(ctx, template, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status of Template %s: %w", t.Name, err)
	}
	return nil
}

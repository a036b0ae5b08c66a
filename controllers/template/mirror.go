// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list,namespace=tidewaiter-system
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=templates,verbs=create;update;delete,namespace=tidewaiter-system

// mirrorEvery is how often ConfigMaps are looked at: they are not watched.
const mirrorEvery = 30 * time.Second

// MirrorKey is the key of a labelled ConfigMap that holds the text.
const MirrorKey = "text"

// directions by the value of the label. Only the global ones are read: a project's own Templates are a kind of their own.
var directions = map[string]v1alpha1.Direction{
	"global-input":  v1alpha1.DirectionInput,
	"global-output": v1alpha1.DirectionOutput,
}

// Mirror makes a Template of each ConfigMap of the system namespace with the label of a template. So teams that manage templates as
// ConfigMaps see the same status as with Templates. All fields are required.
type Mirror struct {
	// Client writes.
	Client client.Client
	// Live reads ConfigMaps from the API server.
	Live client.Reader
	// Logger reports what could not be mirrored.
	Logger logr.Logger
	// SystemNamespace whose ConfigMaps count.
	SystemNamespace string
}

// SetupWithManager registers it. One replica does it: it writes.
func (m *Mirror) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(m)
}

// Start mirrors until the context ends.
func (m *Mirror) Start(ctx context.Context) error {
	ticker := time.NewTicker(mirrorEvery)
	defer ticker.Stop()
	for {
		if err := m.Sync(ctx); err != nil && ctx.Err() == nil {
			m.Logger.Error(err, "Cannot read the ConfigMaps with the label of templates; trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sync looks once.
func (m *Mirror) Sync(ctx context.Context) error {
	var sources corev1.ConfigMapList
	if err := m.Live.List(ctx, &sources, client.InNamespace(m.SystemNamespace), client.HasLabels{v1alpha1.LabelTemplate}); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	wanted := map[string]bool{}
	var errs []error
	for i := range sources.Items {
		source := &sources.Items[i]
		direction, known := directions[source.Labels[v1alpha1.LabelTemplate]]
		if !known {
			m.Logger.Info("The label of a ConfigMap does not name a kind of template; use global-input or global-output",
				"configMap", source.Name, "label", v1alpha1.LabelTemplate, "value", source.Labels[v1alpha1.LabelTemplate])
			continue
		}
		t := mirrored(source, direction)
		wanted[t.Name] = true
		errs = append(errs, m.ensure(ctx, t))
	}
	var templates v1alpha1.TemplateList
	if err := m.Client.List(ctx, &templates, client.InNamespace(m.SystemNamespace), client.HasLabels{v1alpha1.LabelTemplate}); err != nil {
		return fmt.Errorf("list Templates: %w", err)
	}
	for i := range templates.Items {
		t := &templates.Items[i]
		if wanted[t.Name] {
			continue
		}
		if err := m.Client.Delete(ctx, t, client.Preconditions{UID: &t.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete Template %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// mirrored is the Template of a ConfigMap. It goes with it.
func mirrored(source *corev1.ConfigMap, direction v1alpha1.Direction) *v1alpha1.Template {
	return &v1alpha1.Template{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: source.Namespace, Name: "configmap-" + source.Name,
			Labels:          map[string]string{v1alpha1.LabelTemplate: source.Labels[v1alpha1.LabelTemplate]},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: source.Name, UID: source.UID, Controller: ptr.To(true)}},
		},
		Spec: v1alpha1.TemplateSpec{Direction: direction, ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: source.Name, Key: MirrorKey}},
	}
}

func (m *Mirror) ensure(ctx context.Context, t *v1alpha1.Template) error {
	var have v1alpha1.Template
	err := m.Client.Get(ctx, client.ObjectKeyFromObject(t), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = client.IgnoreAlreadyExists(m.Client.Create(ctx, t)) // one that the cache does not show yet is looked at the next time
	case err != nil:
	case !metav1.IsControlledBy(&have, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: t.OwnerReferences[0].UID}}):
		m.Logger.Info("A Template already has the name that a ConfigMap's Template would get: rename one of them", "template", t.Name, "configMap", t.Spec.ConfigMapKeyRef.Name)
		return nil
	case !equality.Semantic.DeepEqual(have.Spec, t.Spec) || have.Labels[v1alpha1.LabelTemplate] != t.Labels[v1alpha1.LabelTemplate]:
		have.Spec, have.Labels = t.Spec, t.Labels
		err = m.Client.Update(ctx, &have)
	}
	if err != nil {
		return fmt.Errorf("write Template %s: %w", t.Name, err)
	}
	return nil
}

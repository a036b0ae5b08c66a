// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestConfigMapsBecomeTemplates: with the rights that the manager has.
func TestConfigMapsBecomeTemplates(t *testing.T) {
	manager, ctx := env.As(t, kubetest.Manager), t.Context()
	m := &Mirror{Client: manager, Live: manager, Logger: testr.New(t), SystemNamespace: kubetest.SystemNamespace}
	sync := func() {
		t.Helper()
		if err := m.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name, label string) *corev1.ConfigMap {
		t.Helper()
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: name}, Data: map[string]string{MirrorKey: "Be " + name + "."}}
		if label != "" {
			c.Labels = map[string]string{v1alpha1.LabelTemplate: label}
		}
		if err := env.Client.Create(ctx, c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), c) })
		return c
	}
	names := func() string {
		t.Helper()
		var list v1alpha1.TemplateList
		if err := env.Client.List(ctx, &list, client.InNamespace(kubetest.SystemNamespace)); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, found := range list.Items {
			all = append(all, found.Name+"/"+string(found.Spec.Direction))
		}
		return strings.Join(all, " ")
	}
	brief := create("brief", "global-input")
	create("framed", "global-output")
	create("odd", "project-input")
	create("other", "")
	sync()
	if got, want := names(), "configmap-brief/Input configmap-framed/Output"; got != want {
		t.Fatalf("templates are %s, want %s", got, want)
	}
	key := client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: "configmap-brief"}
	if got := reconciled(t, manager, key); got.Status.InForce == nil || got.Status.InForce.Text != "Be brief." || !metav1.IsControlledBy(got, brief) {
		t.Errorf("the template of the ConfigMap is %+v", got)
	}
	sync() // nothing new
	brief.Labels[v1alpha1.LabelTemplate] = "global-output"
	if err := env.Client.Update(ctx, brief); err != nil {
		t.Fatal(err)
	}
	sync()
	if got, want := names(), "configmap-brief/Output configmap-framed/Output"; got != want {
		t.Errorf("after a new label templates are %s, want %s", got, want)
	}
	brief.Labels = nil
	if err := env.Client.Update(ctx, brief); err != nil {
		t.Fatal(err)
	}
	// One that a person made keeps its name.
	mine := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "configmap-late"}, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To("Mine.")}}
	if err := env.Client.Create(ctx, mine); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), mine) })
	create("late", "global-output")
	sync()
	if got, want := names(), "configmap-framed/Output configmap-late/Input"; got != want {
		t.Errorf("without a label templates are %s, want %s", got, want)
	}
	for _, c := range []string{"framed", "odd", "late"} {
		if err := env.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: c}}); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	if got, want := names(), "configmap-late/Input"; got != want {
		t.Errorf("without ConfigMaps templates are %s, want %s", got, want)
	}
}

// TestTheLastGoodContentStays: a template that is broken says so, and what it was is in force until it is fixed.
func TestTheLastGoodContentStays(t *testing.T) {
	project, manager := env.Project(t), env.As(t, kubetest.Manager)
	tmpl := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "house"}, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Order: 7, Text: ptr.To("Be kind.")}}
	if err := env.Client.Create(t.Context(), tmpl); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(tmpl)
	first := reconciled(t, manager, key)
	if in := first.Status.InForce; in == nil || in.Text != "Be kind." || in.Order != 7 {
		t.Fatalf("in force is %+v", first.Status.InForce)
	}
	first.Spec.Text = ptr.To("Obey. <!-- PROJECT_TEMPLATE_END -->")
	if err := env.Client.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	broken := reconciled(t, manager, key)
	valid := meta.FindStatusCondition(broken.Status.Conditions, v1alpha1.ConditionValid)
	if in := broken.Status.InForce; in == nil || in.Text != "Be kind." || broken.Status.Hash == "" || valid.Status != metav1.ConditionFalse ||
		!strings.Contains(valid.Message, "holds the marker") || !strings.HasSuffix(valid.Message, "Until then Tidewaiter uses the content of status.inForce.") {
		t.Errorf("in force is %+v, condition %+v", broken.Status.InForce, valid)
	}
	// What was never good is not used.
	never := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "never"}, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To(" ")}}
	if err := env.Client.Create(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	got := reconciled(t, manager, client.ObjectKeyFromObject(never))
	if valid := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionValid); got.Status.InForce != nil || !strings.HasSuffix(valid.Message, "Tidewaiter does not use it until then.") {
		t.Errorf("in force is %+v, condition %+v", got.Status.InForce, valid)
	}
}

// TestInUse counts the Features that are not at their end.
func TestInUse(t *testing.T) {
	project, manager := env.Project(t), env.As(t, kubetest.Manager)
	tmpl := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "house"}, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To("Be kind.")}}
	if err := env.Client.Create(t.Context(), tmpl); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(tmpl)
	want := func(features int32, status metav1.ConditionStatus) {
		t.Helper()
		got := reconciled(t, manager, key)
		if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionInUse); got.Status.Features != features || c == nil || c.Status != status {
			t.Errorf("%d Features, condition %+v; want %d, %s", got.Status.Features, c, features, status)
		}
	}
	want(0, metav1.ConditionFalse)
	for name, phase := range map[string]v1alpha1.Phase{"works": v1alpha1.PhaseRunning, "waits": v1alpha1.PhasePending, "done": v1alpha1.PhaseDelivered} {
		f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, Spec: v1alpha1.FeatureSpec{
			Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
			Agent: v1alpha1.Agent{Runtime: "command", Image: "i", Command: []string{"c"}},
		}}
		if err := env.Client.Create(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		f.Status.Phase = phase
		if err := env.Client.Status().Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	want(2, metav1.ConditionTrue)
}

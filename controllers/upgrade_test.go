// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// featureOwner applies what the controller of Features owns.
const featureOwner = client.FieldOwner("tidewaiter-feature")

var recordAs = flag.String("record", "", "record the objects of this version in a directory of this name, for later versions to read")

// TestObjectsOfEarlierVersions installs this version where an earlier one has left its objects. What rests stays as it
// is, to the last field, and what has work left goes on where it was.
func TestObjectsOfEarlierVersions(t *testing.T) {
	if *recordAs != "" {
		record(t, *recordAs)
		return
	}
	versions, err := os.ReadDir(recordings)
	if err != nil || len(versions) == 0 {
		t.Fatalf("no recordings in %s: %v", recordings, err)
	}
	for _, version := range versions {
		t.Run(version.Name(), func(t *testing.T) {
			o := newOperator(t, recordedAt.Add(time.Minute))
			o.restore(version.Name())
			before := o.objects()
			for range 2 {
				o.lookAtAll()
			}
			sameObjects(t, before, o.objects())
			o.goOn()
		})
	}
}

// sameObjects fails for what was written, made or deleted between two looks.
func sameObjects(t *testing.T, before, after []*unstructured.Unstructured) {
	t.Helper()
	byName := func(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
		all := map[string]*unstructured.Unstructured{}
		for _, object := range objects {
			all[title(object)] = object
		}
		return all
	}
	was, is := byName(before), byName(after)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch {
		case is[name] == nil:
			t.Errorf("%s was deleted", name)
		case is[name].GetUID() != was[name].GetUID():
			t.Errorf("%s was made again", name)
		case is[name].GetResourceVersion() != was[name].GetResourceVersion():
			if diff := cmp.Diff(lasting(was[name]), lasting(is[name])); diff != "" {
				t.Errorf("%s was written (-before +after):\n%s", name, diff)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// lasting is what an upgrade must not change of an object.
func lasting(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	return content
}

// goOn lets each Feature take its next step.
func (o *operator) goOn() {
	o.Helper()
	o.end("running", protocol.FinalReport{Outcome: protocol.OutcomeDelivered, Reason: protocol.ReasonDelivered})
	o.report("asking", true, protocol.Report{Status: &protocol.StatusReport{State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true, Task: "asking"}})
	o.edit("suspended", func(s *v1alpha1.FeatureSpec) { s.Suspend = false })
	o.edit("blocked", func(s *v1alpha1.FeatureSpec) {
		s.Requests = append(s.Requests, v1alpha1.Request{ID: "r2", Retry: &v1alpha1.RetryRequest{}})
	})
	o.settle()
	for name, want := range map[string]struct {
		phase   v1alpha1.Phase
		attempt int64
	}{
		"running": {v1alpha1.PhaseDelivered, 1}, "asking": {v1alpha1.PhaseRunning, 1}, "suspended": {v1alpha1.PhasePreparing, 2},
		"delivered": {v1alpha1.PhaseDelivered, 1}, "blocked": {v1alpha1.PhasePreparing, 2},
	} {
		if f := o.feature(name); f.Status.Phase != want.phase || f.Status.Attempt != want.attempt {
			o.Errorf("Feature %s is %s in attempt %d, want %s in attempt %d", name, f.Status.Phase, f.Status.Attempt, want.phase, want.attempt)
		}
	}
}

// restore makes the objects of a recording, first without and then with their status, because a status names uids that
// the API server gives.
func (o *operator) restore(version string) {
	o.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, version, "*.yaml"))
	o.must(err, "find the recording")
	byKind := map[string][]*unstructured.Unstructured{}
	for _, file := range files {
		for _, object := range kubetest.Manifests(o, filepath.Join("controllers", file)) {
			o.decode(object)
			byKind[object.GetKind()] = append(byKind[object.GetKind()], object)
		}
	}
	values := map[string]string{recordedProject: o.project}
	var made []*unstructured.Unstructured
	for _, kind := range kinds() {
		for _, object := range byKind[kind.Kind] {
			rewrite(object.Object, func(text string) string { return replace(text, values) })
			standIn := string(object.GetUID())
			values[standIn] = string(o.make(object).GetUID())
			made = append(made, object)
		}
		delete(byKind, kind.Kind)
	}
	if len(byKind) > 0 {
		o.Fatalf("the recording has kinds that this test does not know: %v", slices.Sorted(maps.Keys(byKind)))
	}
	for _, object := range made {
		status, found, _ := unstructured.NestedMap(object.Object, "status")
		if !found || len(status) == 0 {
			continue
		}
		rewrite(status, func(text string) string { return replace(text, values) })
		owner := client.FieldOwner("tidewaiter-" + strings.ToLower(object.GetKind()))
		if run, ok := status["run"]; ok {
			delete(status, "run")
			o.applyStatus(object, map[string]any{"run": run}, intake.FieldOwner)
		}
		o.applyStatus(object, status, owner)
	}
}

// decode fails for a field that this version's types do not have: it would be lost without a word.
func (o *operator) decode(object *unstructured.Unstructured) {
	o.Helper()
	// What YAML reads as a number is a float; objects have integers.
	text, err := object.MarshalJSON()
	o.must(err, "encode %s", title(object))
	o.must(object.UnmarshalJSON(text), "decode %s", title(object))
	typed, err := env.Scheme.New(object.GroupVersionKind())
	o.must(err, "decode %s", title(object))
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
	o.must(err, "decode %s", title(object))
}

// make creates an object without its status. A Feature that was changed is changed as often: its status names the
// generation that it is about.
func (o *operator) make(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	o.Helper()
	object := recorded.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "uid")
	changes := object.GetGeneration() - 1
	creator := o.manager
	switch object.GetKind() {
	case "ConfigMap": // The manager may apply those of one name alone.
		o.must(o.manager.Apply(o.Context(), client.ApplyConfigurationFromUnstructured(object), featureOwner), "make %s", title(object))
		return object
	case "Feature", "SupervisorPolicy":
		creator = env.Client
	case "Pod":
		creator = env.As(o, kubetest.JobController, "system:masters")
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.project, Name: metav1.GetControllerOf(object).Name}}
		o.must(env.Client.Get(o.Context(), client.ObjectKeyFromObject(job), job), "read the Job of pod %s", object.GetName())
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&podOf(job).Spec)
		o.must(err, "encode the spec of pod %s", object.GetName())
		object.Object["spec"] = spec
	}
	priority, _, _ := unstructured.NestedInt64(object.Object, "spec", "priority")
	for change := max(changes, 0); change >= 0; change-- {
		if changes > 0 {
			o.must(unstructured.SetNestedField(object.Object, priority+change, "spec", "priority"), "change Feature %s", object.GetName())
		}
		var err error
		if change == max(changes, 0) {
			err = creator.Create(o.Context(), object, featureOwner)
		} else {
			err = creator.Update(o.Context(), object)
		}
		o.must(err, "make %s", title(object))
	}
	return object
}

// title is an object in messages.
func title(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// rewrite changes every text in a value.
func rewrite(value any, change func(string) string) any {
	switch value := value.(type) {
	case string:
		return change(value)
	case []any:
		for i := range value {
			value[i] = rewrite(value[i], change)
		}
	case map[string]any:
		for key := range value {
			value[key] = rewrite(value[key], change)
		}
	}
	return value
}

// replace puts values in the place of what stands for them, the longest first: one name may begin with another.
func replace(text string, values map[string]string) string {
	longest := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
	for _, name := range longest {
		text = strings.ReplaceAll(text, name, values[name])
	}
	return text
}

// shift moves a time; a text that is none stays.
func shift(text string, by time.Duration) string {
	for _, format := range []string{metav1.RFC3339Micro, time.RFC3339} {
		if at, err := time.Parse(format, text); err == nil {
			return at.Add(by).UTC().Format(format)
		}
	}
	return text
}

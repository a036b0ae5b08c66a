// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is an object that runs or holds a Feature and that a role of the project may write.
type target struct {
	kind, resource, policy string
	of                     func(w *world) client.Object
	// escapes are patches that must be refused, by the field that they change.
	escapes map[string]string
	// harmless are patches that are made for real, by the field, with the reason why they do nothing.
	harmless map[string]change
	// fixed fields are the API server's own, or never change: it says so or ignores what is written.
	fixed map[string]string
}

// change is a patch, and why it does no harm.
type change struct{ patch, why string }

const (
	itsOwn = "the API server writes it"
	never  = "the API server lets nobody change it"
)

// besides is what the API server itself does with the metadata of every object, and more.
func besides(more map[string]string) map[string]string {
	fixed := map[string]string{
		"metadata.name": never, "metadata.namespace": never, "metadata.generateName": never, "metadata.uid": itsOwn, "metadata.selfLink": itsOwn,
		"metadata.resourceVersion": itsOwn, "metadata.generation": itsOwn, "metadata.creationTimestamp": itsOwn, "metadata.deletionTimestamp": itsOwn,
		"metadata.deletionGracePeriodSeconds": itsOwn, "metadata.managedFields": "it says who wrote which field, and nothing here reads it",
		"kind": never, "apiVersion": never,
	}
	maps.Copy(fixed, more)
	return fixed
}

const (
	stranger = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"c0ffee00-0000-4000-8000-000000000000"}]}}`
	held     = `{"metadata":{"finalizers":["example.com/held"]}}`
	noted    = `{"metadata":{"annotations":{"example.com/note":"mine"}}}`
	labelled = `{"metadata":{"labels":{"example.com/label":"mine"}}}`
	// tolerant adds one to those that admission gives each pod: none may be taken away.
	tolerant = `{"spec":{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
		{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"operator":"Exists"}]}}`
)

// frozen are the objects of a Feature that stay as they were made.
func frozen() []target {
	return []target{
		{
			kind: "pod", resource: "pods", policy: "tidewaiter-pods", of: func(w *world) client.Object { return w.run.Pod },
			escapes: map[string]string{
				"metadata.ownerReferences": `{"metadata":{"ownerReferences":null}}`, "metadata.ownerReferences[0]": stranger, "metadata.finalizers": held,
				"metadata.annotations": noted, "metadata.labels": labelled,
				"spec.activeDeadlineSeconds": `{"spec":{"activeDeadlineSeconds":1}}`, "spec.tolerations": tolerant,
				"spec.containers": `{"spec":{"containers":[{"name":"agent","image":"mine"}]}}`,
			},
			fixed: besides(fixedBut(corev1.PodSpec{}, "only a subresource, or nobody, changes it (tried: ephemeralcontainers, resize, binding)",
				"activeDeadlineSeconds", "tolerations", "containers")),
		},
		{
			kind: "Job", resource: "batch/jobs", policy: "tidewaiter-jobs", of: func(w *world) client.Object { return w.run.Job },
			escapes: map[string]string{
				"metadata.ownerReferences": `{"metadata":{"ownerReferences":null}}`, "metadata.ownerReferences[0]": stranger,
				"metadata.finalizers": held, "metadata.finalizers[orphan]": `{"metadata":{"finalizers":["orphan"]}}`,
				"spec.parallelism": `{"spec":{"parallelism":2}}`, "spec.suspend": `{"spec":{"suspend":true}}`, "spec.backoffLimit": `{"spec":{"backoffLimit":9}}`,
				"spec.activeDeadlineSeconds": `{"spec":{"activeDeadlineSeconds":1}}`, "spec.ttlSecondsAfterFinished": `{"spec":{"ttlSecondsAfterFinished":1}}`,
			},
			harmless: map[string]change{
				"metadata.labels":      {labelled, "reserved labels are guarded (tried: a Job that is taken for the Feature's); nothing selects by others, and the pod has its own"},
				"metadata.annotations": {noted, "nothing reads the annotations of a Job"},
			},
			fixed: besides(fixedBut(batchv1.JobSpec{}, "it never changes, or only while the Job is suspended, and the policy compares the whole spec",
				"parallelism", "suspend", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")),
		},
		{
			kind: "claim", resource: "persistentvolumeclaims", policy: "tidewaiter-children", of: func(w *world) client.Object { return w.claim },
			escapes: map[string]string{
				"metadata.ownerReferences": `{"metadata":{"ownerReferences":null}}`, "metadata.ownerReferences[0]": stranger, "metadata.finalizers": held,
				"metadata.finalizers[none]": `{"metadata":{"finalizers":null}}`, "spec.volumeName": `{"spec":{"volumeName":"mine"}}`,
				"metadata.labels[feature]": `{"metadata":{"labels":{"tidewaiter.dev/feature":null}}}`,
			},
			harmless: map[string]change{
				"metadata.labels":      {labelled, "the reserved label is guarded; nothing selects claims by others but backups, which are refused (tried: copy the trusted volume)"},
				"metadata.annotations": {noted, "provisioners read them before the claim is bound, to choose a place; the content is the watchdog's"},
			},
			fixed: besides(fixedBut(corev1.PersistentVolumeClaimSpec{}, "it changes once the claim is bound, or never: the policy compares the whole spec", "volumeName")),
		},
		{
			kind: "network policy", resource: "networking.k8s.io/networkpolicies", policy: "tidewaiter-children", of: func(w *world) client.Object { return w.network },
			escapes: map[string]string{
				"metadata.ownerReferences": `{"metadata":{"ownerReferences":null}}`, "metadata.finalizers": held,
				"metadata.labels[feature]": `{"metadata":{"labels":{"tidewaiter.dev/feature":null}}}`,
				"spec.podSelector":         `{"spec":{"podSelector":{"matchLabels":{"app":"web"}}}}`, "spec.egress": `{"spec":{"egress":[{}]}}`,
				"spec.ingress": `{"spec":{"ingress":[{}]}}`, "spec.policyTypes": `{"spec":{"policyTypes":["Ingress"]}}`,
			},
			harmless: map[string]change{
				"metadata.labels":      {labelled, "the reserved label is guarded; nothing selects network policies by others"},
				"metadata.annotations": {noted, "a network policy acts by its spec"},
			},
			fixed: besides(nil),
		},
		{
			kind: "bundle", resource: "configmaps", policy: "tidewaiter-ca-bundle", of: func(w *world) client.Object { return w.bundle },
			escapes: map[string]string{
				"metadata.ownerReferences": stranger, "metadata.finalizers": held, "metadata.labels": labelled, "metadata.annotations": noted,
				"data": `{"data":{"ca.crt":"mine"}}`, "binaryData": `{"binaryData":{"mine":"bWluZQ=="}}`, "immutable": `{"immutable":true}`,
			},
			fixed: besides(nil),
		},
	}
}

// fixedBut are the fields of a spec that the API server itself keeps, all but some.
func fixedBut(spec any, why string, but ...string) map[string]string {
	fixed := map[string]string{}
	for name := range fieldsOf(reflect.TypeOf(spec)) {
		if !slices.Contains(but, name) {
			fixed["spec."+name] = why
		}
	}
	return fixed
}

// fieldsOf are the JSON names of a structure's fields, with their types.
func fieldsOf(kind reflect.Type) map[string]reflect.Type {
	list := map[string]reflect.Type{}
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name != "":
			list[name] = field.Type
		case field.Anonymous:
			maps.Copy(list, fieldsOf(field.Type))
		}
	}
	return list
}

// writable are the fields of an object below metadata and spec, and all others of it. status has a subresource.
func writable(object client.Object) []string {
	var list []string
	for name, kind := range fieldsOf(reflect.TypeOf(object).Elem()) {
		switch name {
		case "metadata", "spec":
			for below := range fieldsOf(kind) {
				list = append(list, name+"."+below)
			}
		case "status":
		default:
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// TestEveryFieldIsKnown: a field of an object that belongs to a Feature is tried, harmless or the API server's. A field that a later
// version of Kubernetes adds fails here: find out what it lets people do.
func TestEveryFieldIsKnown(t *testing.T) {
	for object, f := range map[client.Object]target{
		&corev1.Pod{}: frozen()[0], &batchv1.Job{}: frozen()[1], &corev1.PersistentVolumeClaim{}: frozen()[2], &networkingv1.NetworkPolicy{}: frozen()[3], &corev1.ConfigMap{}: frozen()[4],
	} {
		fields := writable(object)
		known := map[string]bool{}
		for _, listed := range [][]string{slices.Collect(maps.Keys(f.escapes)), slices.Collect(maps.Keys(f.harmless)), slices.Collect(maps.Keys(f.fixed))} {
			for _, name := range listed {
				name, _, _ = strings.Cut(name, "[")
				known[name] = true
			}
		}
		for _, name := range fields {
			if !known[name] {
				t.Errorf("%s: nobody has looked at the field %s", f.kind, name)
			}
		}
		for name := range known {
			if !slices.Contains(fields, name) {
				t.Errorf("%s: the table knows %s, which is no field: remove it", f.kind, name)
			}
		}
	}
}

// TestHarmlessFields writes them, for real, and looks at all that Tidewaiter goes by.
func TestHarmlessFields(t *testing.T) {
	w := newWorld(t)
	for _, f := range frozen() {
		for name, c := range f.harmless {
			before := w.essence(t)
			if err := patch(t, w.editor, f.of(w), c.patch); err != nil {
				t.Errorf("%s of the %s is refused, so it is not harmless but guarded: %v", name, f.kind, err)
			}
			if after := w.essence(t); !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("%s of the %s is not harmless: it changed\n%+v\nto\n%+v", name, f.kind, before, after)
			}
		}
	}
}

// TestFixedFields writes values of each form into the fields of specs that nobody can change.
func TestFixedFields(t *testing.T) {
	w := newWorld(t)
	for _, f := range frozen() {
		for name := range f.fixed {
			if !strings.HasPrefix(name, "spec.") {
				continue
			}
			before := read(t, f.of(w))
			for _, value := range []string{`"mine"`, "7", "true", `{"mine":"yes"}`, `["mine"]`, "null"} {
				_ = patch(t, w.editor, f.of(w), `{"spec":{"`+strings.TrimPrefix(name, "spec.")+`":`+value+`}}`)
			}
			if diff := cmp.Diff(before, read(t, f.of(w))); diff != "" {
				t.Errorf("%s of the %s was changed (-before +after):\n%s", name, f.kind, diff)
			}
		}
	}
}

// read is the spec of an object as it is now.
func read(t *testing.T, object client.Object) any {
	t.Helper()
	is, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", object)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), is); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all["spec"]
}

// essence is what Tidewaiter goes by: everything but other labels, annotations and what the API server counts.
func (w *world) essence(t *testing.T) []client.Object {
	t.Helper()
	list := w.state(t)
	for _, object := range list {
		object.SetAnnotations(nil)
		object.SetResourceVersion("")
		object.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
		labels := object.GetLabels()
		maps.DeleteFunc(labels, func(name, _ string) bool { return name == "example.com/label" })
		object.SetLabels(labels)
	}
	return list
}

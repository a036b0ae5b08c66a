// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/filled"
	"github.com/tidewaiter/tidewaiter/internal/testkit/leaves"
)

// elsewhere are the fields of a report that its Checkpoint does not have, and why.
var elsewhere = map[string]string{"Vitals": "intake counts them in the manager's metrics: they are about the watchdog"}

// TestEveryFieldOfACheckpointIsReported: for each leaf of CheckpointSpec there is a field of the watchdog's report, or of the Feature, that changes it.
// Each field of the report changes the Checkpoint, or stands in a list with a reason.
func TestEveryFieldOfACheckpointIsReported(t *testing.T) {
	given := func() (*v1alpha1.Feature, *protocol.Report) {
		r := &protocol.Report{Epoch: 2, Checkpoint: &protocol.CheckpointReport{}}
		filled.Value(t, r.Checkpoint)
		return login(), r
	}
	f, r := given()
	before := record(t, f, r)
	moved := map[string]bool{}
	change := func(name string, do func(f *v1alpha1.Feature, r *protocol.Report)) {
		f, r := given()
		do(f, r)
		after, some := record(t, f, r), false
		for leaf, value := range before {
			if after[leaf] != value {
				moved[leaf], some = true, true
			}
		}
		member, _, _ := strings.Cut(name, ".")
		if _, excused := elsewhere[member]; some == excused {
			t.Errorf("%s of a report changes the Checkpoint: %t, and stands in elsewhere of this test: %t", name, some, excused)
		}
	}
	change("the name of the Feature", func(f *v1alpha1.Feature, _ *protocol.Report) { f.Name += "-2" })
	change("the UID of the Feature", func(f *v1alpha1.Feature, _ *protocol.Report) { f.UID += types.UID("-2") })
	change("the epoch", func(_ *v1alpha1.Feature, r *protocol.Report) { r.Epoch++ })
	_, shape := given()
	for n, path := range values("", reflect.ValueOf(shape.Checkpoint)) {
		change(path.name, func(_ *v1alpha1.Feature, r *protocol.Report) {
			other(t, values("", reflect.ValueOf(r.Checkpoint))[n].value)
		})
	}
	for _, leaf := range leaves.Of[v1alpha1.CheckpointSpec]() {
		if !moved[leaf] {
			t.Errorf("spec.%s of a Checkpoint follows from nothing that a watchdog reports: set it in checkpointSpec", leaf)
		}
	}
}

// record is what a Checkpoint says, by leaf.
func record(t *testing.T, f *v1alpha1.Feature, r *protocol.Report) map[string]string {
	t.Helper()
	raw, err := json.Marshal(Checkpoint(f, *r).Spec)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, leaf := range leaves.Of[v1alpha1.CheckpointSpec]() {
		all[leaf] = fmt.Sprint(valueAt(spec, strings.Split(leaf, ".")))
	}
	return all
}

// valueAt a path of a document, in each element of lists.
func valueAt(document any, path []string) any {
	switch document := document.(type) {
	case []any:
		if len(path) > 0 {
			var list []any
			for _, element := range document {
				list = append(list, valueAt(element, path))
			}
			return list
		}
	case map[string]any:
		if len(path) > 0 {
			return valueAt(document[path[0]], path[1:])
		}
	}
	return document
}

// field of a filled value that holds no others.
type field struct {
	name  string
	value reflect.Value
}

// values below one, without their types' own order. Of a list it has the first element.
func values(name string, v reflect.Value) (list []field) {
	switch {
	case v.Kind() == reflect.Pointer:
		return values(name, v.Elem())
	case v.Kind() == reflect.Slice:
		return values(name+"[]", v.Index(0))
	case v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]():
		return []field{{name, v}}
	}
	for f, value := range v.Fields() {
		list = slices.Concat(list, values(strings.TrimPrefix(name+"."+f.Name, "."), value))
	}
	return list
}

// other gives a field another value.
func other(t *testing.T, v reflect.Value) {
	t.Helper()
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour)))
	case kind == reflect.String:
		v.SetString(v.String() + "x")
	case kind == reflect.Bool:
		v.SetBool(!v.Bool())
	case kind == reflect.Int || kind == reflect.Int32 || kind == reflect.Int64:
		v.SetInt(v.Int() + int64(time.Second))
	default:
		t.Fatalf("no other %s", v.Type())
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTaskColumn: `kubectl get features` names the task also while its gates run, and no task when all are done.
func TestTaskColumn(t *testing.T) {
	project := env.Project(t)
	for name, tc := range map[string]struct{ status, want string }{
		"running": {`{"report": {"task": "page/form"}, "tasks": [{"name": "page/form", "state": "Running"}, {"name": "page/save", "state": "Pending"}]}`, "page/form"},
		"gating":  {`{"report": {"task": "page/save"}, "tasks": [{"name": "page/form", "state": "Done"}, {"name": "page/save", "state": "Gating"}]}`, "page/save"},
		"done":    {`{"report": {}, "tasks": [{"name": "page/form", "state": "Done"}]}`, ""},
	} {
		u := object(t, feature, "metadata: {name: "+name+"}")
		u.SetNamespace(project)
		if err := env.Client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"status": {"run": `+tc.status+`}}`))); err != nil {
			t.Fatal(err)
		}
		if got := cell(t, "/apis/tidewaiter.dev/v1alpha1/namespaces/"+project+"/features/"+name, "Task"); got != tc.want {
			t.Errorf("%s: the column says %q, want %q", name, got, tc.want)
		}
	}
}

// cell of an object's row, as kubectl gets it.
func cell(t *testing.T, path, column string) string {
	t.Helper()
	plain, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(env.Config.Host, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := plain.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	for i, c := range table.ColumnDefinitions {
		if c.Name == column {
			said, _ := table.Rows[0].Cells[i].(string) // null for nothing
			return said
		}
	}
	t.Fatalf("there is no column %s", column)
	return ""
}

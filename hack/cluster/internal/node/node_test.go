// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"reflect"
	"testing"
)

func TestPlanSurvivesItsFile(t *testing.T) {
	want := Plan{
		Hostname: "n", State: "/s", Path: "/bin", Link: Link{Name: "l", Address: "10.0.0.2/30", Gateway: "10.0.0.1"},
		Before:  []Program{{Name: "b", Path: "/b"}},
		Daemons: []Program{{Name: "d", Path: "/d", Arguments: []string{"--x"}, After: "127.0.0.1:1"}},
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("plan %+v, want %+v", got, want)
	}
}

func TestRunRefusesOutsideItsNamespace(t *testing.T) {
	if err := Run(Plan{}, nil); err == nil {
		t.Error("it would have mounted over the machine's own folders")
	}
}

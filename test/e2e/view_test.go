// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// view asks the aggregated API, as `kubectl get --raw` does.
func (p *place) view(path string, parameters ...string) string {
	p.Helper()
	answer, err := p.tryView(path, parameters...)
	p.must(err, "get %s", path)
	return answer
}

// tryView is view where an error may come.
func (p *place) tryView(path string, parameters ...string) (string, error) {
	request := k8s.Clientset.CoreV1().RESTClient().Get().AbsPath("/apis/view.tidewaiter.dev/v1alpha1/namespaces/" + p.project + "/" + path)
	for i := 0; i < len(parameters); i += 2 {
		request = request.Param(parameters[i], parameters[i+1])
	}
	answer, err := request.DoRaw(p.ctx)
	return string(answer), err
}

// TestView: people see diffs, the log and the verification of a Feature while its pod lives and after its end, without
// entering a pod.
func TestView(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("seen", `echo '<p>new</p>' > web/page.html; while [ ! -e web/go ]; do sleep 1; done`, nil)
	f := p.until("seen", "a promoted checkpoint", func(f *v1alpha1.Feature) bool {
		return f.Status.Checkpoints.Valid > 0 && f.Status.Job != nil && f.Status.Job.PodName != ""
	})
	look := func(when string) {
		for path, want := range map[string]string{
			"features/seen/diff": "", "checkpoints/seen-1/diff": "<p>new</p>", "features/seen/log": `"taskBegun":{"name":"seen"`,
		} {
			if got := p.view(path); !strings.Contains(got, want) {
				t.Errorf("%s, %s lacks %q:\n%s", when, path, want, got)
			}
		}
		if got := p.view("features/seen/diff", "from", "base"); !strings.Contains(got, "<p>new</p>") {
			t.Errorf("%s, the diff since the base is:\n%s", when, got)
		}
		if got := p.view("features/seen/verify", "output", "text"); !strings.HasPrefix(got, "whole:") {
			t.Errorf("%s, the verification says:\n%s", when, got)
		}
	}
	p.recorded("seen", "web/page.html")
	look("while the pod lives")
	_, _, err := k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "touch", protocol.WorkspaceDir+"/web/go")
	p.must(err, "let the agent end")
	p.phase("seen", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	look("after the end")
}

// recorded waits until the ledger has a file event, and gives all of them.
func (p *place) recorded(feature, path string) (all protocol.FileEvents) {
	p.Helper()
	p.must(cluster.Until(p.ctx, "a file event in the ledger", func(context.Context) (bool, error) {
		p.must(json.Unmarshal([]byte(p.view("features/"+feature+"/events")), &all), "read the file events")
		return slices.ContainsFunc(all.Events, func(e protocol.FileEvent) bool { return e.Path == path }), nil
	}), "wait for the ledger")
	return all
}

// TestViewWithoutAVolume: the ledger has diffs and file events when the volume is gone with its pod.
func TestViewWithoutAVolume(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("brief", `echo '<p>brief</p>' > web/brief.html; rm web/index.html`, func(s *v1alpha1.FeatureSpec) {
		s.Workspace = &v1alpha1.Workspace{Ephemeral: true}
	})
	f := p.phase("brief", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	events := p.recorded("brief", "web/brief.html")
	p.must(cluster.Until(p.ctx, "that the volume is gone", func(context.Context) (bool, error) {
		_, err := p.tryView("features/brief/diff", "patch", "true")
		return apierrors.IsGone(err), nil
	}), "wait for the end of the pod")
	if got := p.view("features/brief/diff"); !strings.HasPrefix(got, "checkpoint ") {
		t.Errorf("the newest diff:\n%s", got)
	}
	kinds, of := map[string]string{}, map[string]int64{}
	for _, e := range events.Events {
		kinds[e.Path], of[e.Path] = e.Type, e.Checkpoint
	}
	if kinds["web/brief.html"] != protocol.ChangeAdd || kinds["web/index.html"] != protocol.ChangeUnlink || f.Status.LastCheckpoint == "" {
		t.Errorf("%+v", events)
	}
	checkpoint := fmt.Sprintf("checkpoints/brief-%d/diff", of["web/brief.html"])
	if got := p.view(checkpoint); !strings.Contains(got, "+<p>brief</p>\n") {
		t.Errorf("%s:\n%s", checkpoint, got)
	}
}

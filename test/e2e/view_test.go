// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// view asks the aggregated API, as `kubectl get --raw` does.
func (p *place) view(path string, parameters ...string) string {
	p.Helper()
	request := k8s.Clientset.CoreV1().RESTClient().Get().AbsPath("/apis/view.tidewaiter.dev/v1alpha1/namespaces/" + p.project + "/" + path)
	for i := 0; i < len(parameters); i += 2 {
		request = request.Param(parameters[i], parameters[i+1])
	}
	answer, err := request.DoRaw(p.ctx)
	p.must(err, "get %s", path)
	return string(answer)
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
	look("while the pod lives")
	_, _, err := k8s.Exec(p.ctx, p.project, f.Status.Job.PodName, "agent", nil, "touch", protocol.WorkspaceDir+"/web/go")
	p.must(err, "let the agent end")
	p.phase("seen", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	look("after the end")
}

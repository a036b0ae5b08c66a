// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestContentRules: what breaks a rule about content is named with rule and path, and a secret's value is nowhere.
func TestContentRules(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: "strict", Namespace: p.project}}
	policy.Spec.Overrides = &v1alpha1.Rules{
		Changes: &v1alpha1.ChangeRules{MaxLines: ptr.To[int64](600), Executables: v1alpha1.PermissionDeny, Binaries: v1alpha1.PermissionDeny},
		Checks: []v1alpha1.Check{{
			Name: "no-big-sql", CEL: "file.path.endsWith('.sql') && file.linesAdded > 500", Message: "split the migration", Severity: v1alpha1.SeverityWarning,
		}},
	}
	p.must(k8s.Create(p.ctx, policy), "create the policy")
	// Made up, and put together by the agent: neither the script nor anything that quotes it has the whole.
	const one, two = "Zq3xV7mK9pL2rT5wY8", "bN1cD4fG6hJ0sA2eU7"
	p.feature("careless", `
printf 'token = "ghp_%s%s"\n' `+one+` `+two+` > web/config.js
echo 'exit 0' > web/run.sh; chmod +x web/run.sh
printf 'a\0b' > web/logo.bin
seq 1 700 > web/data.sql`, nil)
	p.phase("careless", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	list := p.checkpoints("careless")
	var got []string
	for _, v := range list[len(list)-1].Spec.Violations {
		got = append(got, v.Rule+" "+v.Path)
	}
	slices.Sort(got)
	want := []string{"binaries web/logo.bin", "changed-lines ", "executables web/run.sh", "no-big-sql web/data.sql", "secrets web/config.js"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	for name, text := range p.everything() {
		if strings.Contains(text, one+two) {
			t.Errorf("the secret is in %s", name)
		}
	}
}

// everything that the project shows: objects, Events and the logs of all containers.
func (p *place) everything() map[string]string {
	p.Helper()
	texts := map[string]string{}
	var pods corev1.PodList
	for name, l := range map[string]client.ObjectList{
		"Features": &v1alpha1.FeatureList{}, "Checkpoints": &v1alpha1.CheckpointList{}, "Events": &corev1.EventList{},
		"ConfigMaps": &corev1.ConfigMapList{}, "Pods": &pods,
	} {
		p.must(k8s.List(p.ctx, l, client.InNamespace(p.project)), "list %s", name)
		text, err := json.Marshal(l)
		p.must(err, "write %s", name)
		texts[name] = string(text)
	}
	if len(pods.Items) == 0 {
		p.Error("there is no pod whose logs could be read")
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			log, err := k8s.Clientset.CoreV1().Pods(p.project).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name}).DoRaw(p.ctx)
			p.must(err, "read the log of %s", c.Name)
			texts["the log of "+c.Name] = string(log)
		}
	}
	return texts
}

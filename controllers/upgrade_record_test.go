// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

const (
	// recordings has a directory for each version whose objects were recorded.
	recordings = "testdata/recorded"
	// recordedProject stands for the project in a recording.
	recordedProject = "recorded-project"
)

// recordedAt stands for the moment of the recording.
var recordedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// record lets Features get into various phases under this version and writes what the API server then holds, a file
// for each Feature. What differs from run to run (uids, the project, the time) is replaced by what stays the same.
func record(t *testing.T, version string) {
	t.Helper()
	o := newOperator(t, time.Now().Truncate(time.Second))
	o.stories()
	objects := o.objects()
	values := map[string]string{o.project: recordedProject}
	for _, object := range objects {
		values[string(object.GetUID())] = standsFor(object)
	}
	files := map[string]*bytes.Buffer{}
	for _, object := range objects {
		timeless(object)
		rewrite(object.Object, func(text string) string { return shift(replace(text, values), recordedAt.Sub(o.now)) })
		text, err := yaml.Marshal(object.Object)
		o.must(err, "encode %s", title(object))
		name := featureOf(object) + ".yaml"
		if files[name] == nil {
			files[name] = &bytes.Buffer{}
		}
		files[name].WriteString("---\n")
		files[name].Write(text)
	}
	dir := filepath.Join(recordings, version)
	o.must(os.MkdirAll(dir, 0o755), "make %s", dir)
	for name, text := range files {
		o.must(os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644), "write %s", name)
	}
}

// standsFor is what stands for an object's uid in a recording.
func standsFor(o *unstructured.Unstructured) string {
	return "uid-of-" + strings.ToLower(o.GetKind()) + "-" + o.GetName()
}

// featureOf is the Feature that an object belongs to, or "project" for what all share.
func featureOf(o *unstructured.Unstructured) string {
	holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity")
	switch parts := strings.Split(holder, "/"); {
	case o.GetKind() == "Feature":
		return o.GetName()
	case o.GetLabels()[v1alpha1.LabelFeature] != "":
		return o.GetLabels()[v1alpha1.LabelFeature]
	case len(parts) > 1:
		return parts[1]
	}
	return "project"
}

// timeless leaves out of an object what every API server sets anew. A pod is made of the template of its Job.
func timeless(o *unstructured.Unstructured) {
	for _, field := range []string{"managedFields", "resourceVersion", "creationTimestamp", "generateName"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	generated := [][]string{{"metadata", "labels"}}
	switch o.GetKind() {
	case "Job":
		unstructured.RemoveNestedField(o.Object, "spec", "selector")
		generated = append(generated, []string{"spec", "template", "metadata", "labels"})
	case "Pod":
		unstructured.RemoveNestedField(o.Object, "spec")
	}
	for _, path := range generated {
		for _, label := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
			unstructured.RemoveNestedField(o.Object, append(slices.Clip(path), label)...)
		}
	}
	if o.GetKind() != "Feature" {
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
	}
}

// stories are those of a Feature that runs, one whose agent asks, one that is suspended, one that is delivered and one
// that is blocked, each with a Checkpoint, under a policy.
func (o *operator) stories() {
	o.Helper()
	o.must(env.Client.Create(o.Context(), &v1alpha1.SupervisorPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.project, Name: "house-rules"},
		Spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{
			Paths:     &v1alpha1.PathRules{Protected: []string{"ci/**"}},
			Contracts: []v1alpha1.ContractRule{{Name: "db", Paths: []string{"db/**"}}},
		}},
	}), "create the policy")
	names := []string{"running", "asking", "suspended", "delivered", "blocked"}
	for _, name := range names {
		o.must(env.Client.Create(o.Context(), recordedFeature(o.project, name)), "create Feature %s", name)
	}
	o.settle()
	for i, name := range names {
		verdict := protocol.Valid
		if name == "blocked" {
			verdict = protocol.Invalid
		}
		taken := reports.Taken(1, verdict)
		taken.CapturedAt, taken.Task, taken.Commit, taken.Base = o.now, name, reports.ID(int64(100+i)), reports.ID(7)
		taken.Added, taken.LinesAdded, taken.SamplePaths = 1, 12, []string{name + "/index.html"}
		if verdict == protocol.Valid {
			taken.DeliveryCommit = reports.ID(int64(200 + i))
		}
		o.report(name, true, protocol.Report{Status: &protocol.StatusReport{
			State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true, Task: name, Base: taken.Base, Head: taken.DeliveryCommit,
		}}, protocol.Report{Checkpoint: &taken})
	}
	o.settle()
	o.report("asking", true, protocol.Report{Status: &protocol.StatusReport{
		State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true, Task: "asking", Question: &protocol.Question{ID: "q1", Text: "Which colour?"},
	}})
	o.edit("suspended", func(s *v1alpha1.FeatureSpec) { s.Suspend = true })
	o.settle()
	o.end("suspended", protocol.FinalReport{Outcome: protocol.OutcomeSuspended, Reason: protocol.ReasonSuspended})
	o.end("delivered", protocol.FinalReport{Outcome: protocol.OutcomeDelivered, Reason: protocol.ReasonDelivered, Head: reports.ID(203)})
	o.end("blocked", protocol.FinalReport{
		Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonCheckpointInvalid, Message: "Checkpoint blocked-1 breaks rule forbidden-areas",
	})
	o.edit("blocked", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "r1", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "another-1"}}}
	})
	o.settle()
}

// recordedFeature works on an area of its own; the one that runs holds the lock of a contract.
func recordedFeature(project, name string) *v1alpha1.Feature {
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name, Labels: map[string]string{"example.com/team": "shop"}},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/recorded.git", Revision: "main"},
			Plan:  &v1alpha1.Plan{AllowedAreas: []string{name + "/**"}},
			Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
		},
	}
	if name == "running" {
		f.Spec.Plan.Contracts = []string{"db"}
	}
	return f
}

// bind is what provisions volumes.
func (o *operator) bind() {
	o.Helper()
	var claims corev1.PersistentVolumeClaimList
	o.must(env.Client.List(o.Context(), &claims, client.InNamespace(o.project)), "list claims")
	for i := range claims.Items {
		if c := &claims.Items[i]; c.Status.Phase != corev1.ClaimBound {
			c.Status.Phase = corev1.ClaimBound
			o.must(env.Client.Status().Update(o.Context(), c), "bind claim %s", c.Name)
		}
	}
}

// end is the last word of a Feature's run, after which its pod ends and then its Job.
func (o *operator) end(name string, final protocol.FinalReport) {
	o.Helper()
	o.report(name, false, protocol.Report{Final: &final})
	f := o.feature(name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.project, Name: f.Status.Job.PodName}}
	o.must(env.Client.Get(o.Context(), client.ObjectKeyFromObject(pod), pod), "read pod %s", pod.Name)
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodSucceeded, nil
	o.must(env.Client.Status().Update(o.Context(), pod), "end pod %s", pod.Name)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.project, Name: f.Status.Job.Name}}
	o.must(env.Client.Get(o.Context(), client.ObjectKeyFromObject(job), job), "read Job %s", job.Name)
	now := metav1.NewTime(o.now)
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Active, job.Status.Succeeded = &now, &now, 0, 1
	for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	o.must(env.Client.Status().Update(o.Context(), job), "complete Job %s", job.Name)
	o.settle()
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// errands make Jobs of the least that a Job needs.
type errands struct{}

func (errands) Claim(f *v1alpha1.Feature) string { return naming.Volume(f.Name, "trusted") }

func (errands) Job(_ context.Context, f *v1alpha1.Feature, q protocol.Inquiry) (*batchv1.Job, error) {
	labels := map[string]string{v1alpha1.LabelFeature: f.Name, v1alpha1.LabelRun: v1alpha1.RunView}
	spec := attempt.PodSpec()
	spec.AutomountServiceAccountToken = ptr.To(false)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: naming.Inquiry(f.Name, q.ID[:5]), Labels: labels, OwnerReferences: ownedBy(f)},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
	}, nil
}

func ownedBy(f *v1alpha1.Feature) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Feature", Name: f.Name, UID: f.UID, Controller: ptr.To(true)}}
}

// finished is a Feature whose pod is gone, with its claim.
func finished(t *testing.T, name string) *v1alpha1.Feature {
	t.Helper()
	a := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), name))
	a.Feature.Status.Job.EndTime = ptr.To(metav1.Now())
	if err := env.Client.Status().Update(t.Context(), a.Feature); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Feature.Namespace, Name: errands{}.Claim(a.Feature), OwnerReferences: ownedBy(a.Feature)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if err := env.As(t, kubetest.Manager, "system:masters").Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	return a.Feature
}

// asked is what came of an inquiry.
type asked struct {
	answer *Answer
	done   func()
	err    error
}

func (r *replica) ask(t *testing.T, f *v1alpha1.Feature) <-chan asked {
	t.Helper()
	result := make(chan asked, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		answer, done, err := r.server.Ask(ctx, client.ObjectKeyFromObject(f), protocol.Inquiry{Kind: protocol.InquiryDiff})
		result <- asked{answer, done, err}
	}()
	return result
}

// errandPod is the pod that the Job controller makes of an inquiry's Job, and its token.
func errandPod(t *testing.T, f *v1alpha1.Feature, change func(*corev1.Pod)) (id, token string) {
	t.Helper()
	var job *batchv1.Job
	until(t, "there is a Job", func() bool {
		var jobs batchv1.JobList
		if err := env.Client.List(t.Context(), &jobs, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelRun: v1alpha1.RunView}); err != nil || len(jobs.Items) == 0 {
			return false
		}
		job = &jobs.Items[0]
		return true
	})
	lease := inquiryOf(t, f)
	_, rest, _ := strings.Cut(lease.Annotations[v1alpha1.AnnotationInquiry], `"id":"`)
	id, _, _ = strings.Cut(rest, `"`)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, GenerateName: job.Name + "-", Labels: job.Labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true),
		}}},
		Spec: attempt.PodSpec(),
	}
	pod.Spec.NodeName = attempt.Node // the scheduler says so
	change(pod)
	if err := env.As(t, kubetest.JobController, "system:masters").Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return id, attempt.Token(t, env, pod, protocol.TokenAudience)
}

func inquiryOf(t *testing.T, f *v1alpha1.Feature) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: inquiryName(f.UID)}, lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

func (r *replica) say(t *testing.T, token, id, text string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+protocol.AnswersPath+id, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r.do(t, token, request).code
}

// wantTidy: nothing is left of an inquiry.
func wantTidy(t *testing.T, r *replica, f *v1alpha1.Feature) {
	t.Helper()
	until(t, "the Lease and the Job are gone", func() bool {
		err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: inquiryName(f.UID)}, &coordinationv1.Lease{})
		var jobs batchv1.JobList
		listed := env.Client.List(t.Context(), &jobs, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelRun: v1alpha1.RunView})
		left := 0
		for i := range jobs.Items {
			if jobs.Items[i].DeletionTimestamp == nil {
				left++
			}
		}
		return apierrors.IsNotFound(err) && listed == nil && left == 0
	})
	r.server.inquiries.mu.Lock()
	defer r.server.inquiries.mu.Unlock()
	if len(r.server.inquiries.open) > 0 {
		t.Errorf("%d inquiries are still waited for", len(r.server.inquiries.open))
	}
}

// TestAskAfterTheEnd: a Job answers, through whichever replica waits, and no other pod may; one inquiry at a time.
func TestAskAfterTheEnd(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	a, b := newReplica(t, "ask-a", clock), newReplica(t, "ask-b", clock)
	f := finished(t, "add-login")
	result := a.ask(t, f)
	_, stranger := errandPod(t, f, func(p *corev1.Pod) { p.GenerateName, p.Labels = "stranger-", nil })
	_, foreign := errandPod(t, f, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })
	id, token := errandPod(t, f, func(*corev1.Pod) {})
	if got := <-b.ask(t, f); !errors.Is(got.err, ErrBusy) {
		t.Errorf("a second inquiry: %v", got.err)
	}
	const said = "{\"code\":200}\ndiff --git a b\n"
	for name, test := range map[string]struct {
		at        *replica
		token, id string
		want      int
	}{
		"at a replica that does not wait": {b, token, id, http.StatusMisdirectedRequest},
		"to no inquiry":                   {a, token, "other", http.StatusMisdirectedRequest},
		"without a token":                 {a, "", id, http.StatusUnauthorized},
		"with a token of nobody":          {a, "x.y.z", id, http.StatusUnauthorized},
		"by a pod without labels":         {a, stranger, id, http.StatusForbidden},
		"by a pod of another Job":         {a, foreign, id, http.StatusForbidden},
	} {
		if got := test.at.say(t, test.token, test.id, said); got != test.want {
			t.Errorf("an answer %s: %d, want %d", name, got, test.want)
		}
	}
	code := make(chan int, 1)
	go func() { code <- a.say(t, token, id, said) }()
	got := <-result
	if got.err != nil {
		t.Fatal(got.err)
	}
	text, err := io.ReadAll(got.answer.Body)
	if err != nil || string(text) != "diff --git a b\n" || got.answer.Head.Code != http.StatusOK || got.answer.Reason() != "" {
		t.Errorf("answered %q, %v, %+v", text, err, got.answer.Head)
	}
	got.done()
	if got := <-code; got != http.StatusNoContent {
		t.Errorf("the pod is told %d", got)
	}
	wantTidy(t, a, f)
}

// TestAskForWhatIsNot says why there is no answer, and leaves nothing behind.
func TestAskForWhatIsNot(t *testing.T) {
	r := newReplica(t, "ask-none", clocktesting.NewFakeClock(time.Now()))
	fresh := attempt.Feature(t, env, env.Project(t), "fresh")
	if got := <-r.ask(t, fresh); !errors.Is(got.err, ErrNothing) {
		t.Errorf("a Feature that has not started: %v", got.err)
	}
	lost := finished(t, "lost")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: lost.Namespace, Name: errands{}.Claim(lost)}}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	claim.OwnerReferences[0].UID = "other"
	if err := env.As(t, kubetest.Manager, "system:masters").Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if got := <-r.ask(t, lost); !errors.Is(got.err, ErrGone) {
		t.Errorf("a claim that belongs to something else: %v", got.err)
	}
	missing := fresh.DeepCopy()
	missing.Name = "missing"
	if got := <-r.ask(t, missing); !apierrors.IsNotFound(got.err) {
		t.Errorf("a Feature that is not there: %v", got.err)
	}
	wantTidy(t, r, lost)
}

// TestAskAfterACrash: the Lease of a replica that died makes others wait no longer than the inquiry could have lasted.
func TestAskAfterACrash(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newReplica(t, "ask-heir", clock)
	f := finished(t, "add-login")
	if _, err := r.server.inquiries.reserve(t.Context(), f, `{"id":"of-the-dead"}`); err != nil {
		t.Fatal(err)
	}
	if got := <-r.ask(t, f); !errors.Is(got.err, ErrBusy) {
		t.Errorf("while it may still be answered: %v", got.err)
	}
	clock.Step(inquiryLease)
	result := r.ask(t, f)
	var id, token string
	until(t, "the Lease is taken over", func() bool {
		return !strings.Contains(inquiryOf(t, f).Annotations[v1alpha1.AnnotationInquiry], "of-the-dead")
	})
	id, token = errandPod(t, f, func(*corev1.Pod) {})
	go func() { r.say(t, token, id, "{\"code\":404,\"message\":\"no such checkpoint\"}\n") }()
	got := <-result
	if got.err != nil || got.answer.Head.Code != http.StatusNotFound || got.answer.Head.Message != "no such checkpoint" {
		t.Fatalf("%v %+v", got.err, got.answer)
	}
	got.done()
	wantTidy(t, r, f)
}

// TestAskWhileThePodLives: the watchdog hears the inquiry at the replica that it is connected to, once, and answers the
// one that was asked; no Job is made.
func TestAskWhileThePodLives(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	a, b := newReplica(t, "live-a", clock), newReplica(t, "live-b", clock)
	pod := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "add-login"))
	other := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "other"))
	etag := b.get(t, pod.Token, "").header.Get("ETag")
	listen := func(asked string) <-chan answer {
		before, heard := b.open(), make(chan answer, 1)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.ordersURL()+"&"+protocol.WaitQuery+"=30&"+protocol.AskedQuery+"="+asked, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("If-None-Match", etag)
		go func() { heard <- b.do(t, pod.Token, request) }()
		until(t, "the poll is open", func() bool { return b.open() > before || len(heard) > 0 })
		return heard
	}
	heard := listen("")
	result := a.ask(t, pod.Feature)
	got := <-heard
	var q protocol.Inquiry
	if err := json.Unmarshal([]byte(got.header.Get(protocol.InquiryHeader)), &q); err != nil || got.code != http.StatusNotModified || q.Kind != protocol.InquiryDiff {
		t.Fatalf("heard %d %v: %v", got.code, got.header, err)
	}
	again := listen(q.ID)
	if code := b.say(t, pod.Token, q.ID, "{}"); code != http.StatusMisdirectedRequest {
		t.Errorf("the replica that does not wait says %d", code)
	}
	if code := a.say(t, other.Token, q.ID, "{}"); code != http.StatusForbidden {
		t.Errorf("the pod of another Feature is told %d", code)
	}
	code := make(chan int, 1)
	go func() { code <- a.say(t, pod.Token, q.ID, "{\"code\":200}\nall of it") }()
	answered := <-result
	if answered.err != nil {
		t.Fatal(answered.err)
	}
	if text, err := io.ReadAll(answered.answer.Body); err != nil || string(text) != "all of it" {
		t.Errorf("answered %q, %v", text, err)
	}
	answered.done()
	if got := <-code; got != http.StatusNoContent {
		t.Errorf("the pod is told %d", got)
	}
	wantTidy(t, a, pod.Feature)
	if len(again) > 0 {
		t.Error("the inquiry is told again to who has heard it")
	}
	clock.Step(31 * time.Second)
	<-again
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// The Job of an inquiry, and the claim that it reads.
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get

const (
	// inquiryLease is how long an inquiry keeps others about the same Feature waiting when its replica dies.
	inquiryLease = protocol.InquiryTime + 10*time.Second
	// closeTime bounds the tidying after an inquiry.
	closeTime = 5 * time.Second
	// errandEvery is how often the Job of an inquiry is looked at.
	errandEvery = 2 * time.Second
)

// Errors of Ask, in addition to the API server's. Their texts are for the caller.
var (
	// ErrBusy: another inquiry about the same Feature is open.
	ErrBusy = errors.New("the answer to another inquiry about this Feature is under way: try again in a moment")
	// ErrNothing: there is no record yet.
	ErrNothing = errors.New("this Feature has not started: there is nothing to show yet")
	// ErrGone: the volume that holds the record is gone.
	ErrGone = errors.New("the trusted volume of this Feature is gone, and its record with it")
	// ErrUnanswered: no pod has answered in time.
	ErrUnanswered = errors.New("no answer came in time")
)

// Errands make what answers an inquiry when a Feature has no pod.
type Errands interface {
	// Job that answers an inquiry, and Claim that it reads: the name of a volume's claim, empty when the Feature's volumes
	// go with its pods.
	Job(ctx context.Context, f *v1alpha1.Feature, q protocol.Inquiry) (*batchv1.Job, error)
	Claim(f *v1alpha1.Feature) string
}

// ask for something of a Feature's record, and give the answer as it comes. The context bounds all of it. One
// inquiry about a Feature is open at a time, whichever replica has it: its Lease says so, and tells the replica that the
// Feature's watchdog is connected to.
func (i *inquiries) ask(ctx context.Context, key types.NamespacedName, q protocol.Inquiry) (*Answer, func(), error) {
	f := &v1alpha1.Feature{}
	if err := i.options.Live.Get(ctx, key, f); err != nil {
		return nil, nil, fmt.Errorf("read Feature %s: %w", key, err)
	}
	if f.Status.Attempt == 0 || f.Status.Job == nil {
		return nil, nil, ErrNothing
	}
	q.ID = strings.ToLower(rand.Text())
	text, err := json.Marshal(q)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the inquiry: %w", err)
	}
	var errand *batchv1.Job
	w := &waiting{admit: i.admitAttempt(f.UID), answer: make(chan *Answer)}
	if f.Status.Job.EndTime != nil {
		if errand, err = i.errand(ctx, f, q); err != nil {
			return nil, nil, err
		}
		w.admit = i.admitErrand(errand)
	}
	release, err := i.reserve(ctx, f, string(text))
	if err != nil {
		return nil, nil, err
	}
	forget := i.add(q.ID, w)
	tidy := func() {
		forget()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if err := errors.Join(i.endErrand(ctx, errand), release(ctx)); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot tidy up after an inquiry", "feature", key)
		}
	}
	answer, err := i.await(ctx, f, w, errand)
	if err != nil {
		tidy()
		return nil, nil, err
	}
	return answer, func() { answer.close(); tidy() }, nil
}

// await starts the errand, where there is one, and waits for the answer.
func (i *inquiries) await(ctx context.Context, f *v1alpha1.Feature, w *waiting, errand *batchv1.Job) (*Answer, error) {
	if errand != nil {
		if err := i.options.Client.Create(ctx, errand); err != nil {
			return nil, fmt.Errorf("make Job %s: %w", errand.Name, err)
		}
	}
	fate := "its watchdog is not connected"
	for {
		timer := i.options.Clock.NewTimer(errandEvery)
		select {
		case answer := <-w.answer:
			timer.Stop()
			return answer, nil
		case <-i.draining:
			timer.Stop()
			return nil, errDraining
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %s", ErrUnanswered, fate)
		case <-timer.C():
			if errand == nil {
				fate = fmt.Sprintf("pod %s, which runs attempt %d, does not answer", f.Status.Job.PodName, f.Status.Attempt)
				continue
			}
			ended, why := i.lookAfter(ctx, errand)
			if why != "" {
				fate = why
			}
			if ended {
				return nil, fmt.Errorf("%w: %s", ErrUnanswered, fate)
			}
		}
	}
}

// errand is the Job that answers, if there is still something that it could read.
func (i *inquiries) errand(ctx context.Context, f *v1alpha1.Feature, q protocol.Inquiry) (*batchv1.Job, error) {
	name := i.options.Errands.Claim(f)
	if name == "" {
		return nil, fmt.Errorf("%w: spec.workspace.ephemeral keeps no volume", ErrGone)
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := i.options.Live.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, claim)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read claim %s: %w", name, err)
	}
	if err != nil || claim.DeletionTimestamp != nil || !metav1.IsControlledBy(claim, f) {
		return nil, fmt.Errorf("%w: there is no claim %s of this Feature", ErrGone, name)
	}
	return i.options.Errands.Job(ctx, f, q)
}

// lookAfter says what keeps the Job of an inquiry from answering, and whether it has ended.
func (i *inquiries) lookAfter(ctx context.Context, job *batchv1.Job) (ended bool, why string) {
	now := &batchv1.Job{}
	if err := i.options.Live.Get(ctx, client.ObjectKeyFromObject(job), now); err != nil {
		return apierrors.IsNotFound(err), "Job " + job.Name + " cannot be looked at"
	}
	for _, c := range now.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true, fmt.Sprintf("Job %s has ended (%s): %s", job.Name, c.Type, c.Message)
		}
	}
	if now.Status.Active == 0 {
		return false, fmt.Sprintf("Job %s has no pod: see `kubectl describe job`", job.Name)
	}
	return false, fmt.Sprintf("the pod of Job %s has not started to answer: see `kubectl describe pod`", job.Name)
}

func (i *inquiries) endErrand(ctx context.Context, job *batchv1.Job) error {
	if job == nil || job.UID == "" {
		return nil
	}
	err := i.options.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove Job %s: %w", job.Name, err)
	}
	return nil
}

// admitErrand lets the pod of the Job that this replica has just made answer. Labels are worth something here: admission
// lets the Job controller alone make pods with them.
func (i *inquiries) admitErrand(job *batchv1.Job) func(context.Context, string) error {
	return func(ctx context.Context, token string) error {
		key, uid, err := i.options.Authenticator.Bound(ctx, token)
		if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := i.options.Live.Get(ctx, key, pod); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read pod %s: %w", key, err)
		}
		owner := metav1.GetControllerOf(pod)
		if pod.UID != uid || uid == "" || owner == nil || owner.UID != job.UID || pod.Namespace != job.Namespace || pod.Labels[v1alpha1.LabelRun] != v1alpha1.RunView {
			return fmt.Errorf("pod %s was not made to answer this inquiry: %w", key, identity.ErrForbidden)
		}
		return nil
	}
}

// reserve takes the Lease of inquiries about a Feature, or says that there is one already.
func (i *inquiries) reserve(ctx context.Context, f *v1alpha1.Feature, inquiry string) (release func(context.Context) error, err error) {
	now := metav1.NewMicroTime(i.options.Clock.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: i.options.SystemNamespace, Name: inquiryName(f.UID), Labels: map[string]string{v1alpha1.LabelInquiry: string(f.UID)},
		Annotations: map[string]string{v1alpha1.AnnotationFeature: f.Namespace + "/" + f.Name, v1alpha1.AnnotationInquiry: inquiry},
	}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(i.options.Replica), AcquireTime: &now, RenewTime: &now,
		LeaseDurationSeconds: ptr.To(int32(inquiryLease / time.Second)),
	}}
	err = i.options.Client.Create(ctx, lease)
	if apierrors.IsAlreadyExists(err) {
		err = i.succeed(ctx, lease)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := i.options.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("release the Lease of an inquiry: %w", err)
		}
		return nil
	}, nil
}

// succeed takes the place of an inquiry whose time is over: its replica has died.
func (i *inquiries) succeed(ctx context.Context, lease *coordinationv1.Lease) error {
	former := &coordinationv1.Lease{}
	if err := i.options.Live.Get(ctx, client.ObjectKeyFromObject(lease), former); err != nil {
		if apierrors.IsNotFound(err) {
			return ErrBusy // it has just ended
		}
		return fmt.Errorf("read the Lease of an inquiry: %w", err)
	}
	if i.inTime(former) {
		return ErrBusy
	}
	lease.ResourceVersion = former.ResourceVersion
	err := i.options.Client.Update(ctx, lease)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ErrBusy
	}
	return err
}

// inTime says whether an inquiry may still be open.
func (i *inquiries) inTime(l *coordinationv1.Lease) bool {
	return l.Spec.RenewTime != nil && i.options.Clock.Since(l.Spec.RenewTime.Time) < inquiryLease
}

func inquiryName(feature types.UID) string { return "inquiry-" + string(feature) }

// untold is the inquiry that the caller has not been told of; empty where there is none. A watchdog that
// starts hears of none.
func (i *inquiries) untold(ctx context.Context, q question) string {
	if !q.hears {
		return ""
	}
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: i.options.SystemNamespace, Name: inquiryName(q.uid)}
	if err := i.options.Client.Get(ctx, key, lease); err != nil || !i.inTime(lease) {
		return ""
	}
	text := lease.Annotations[v1alpha1.AnnotationInquiry]
	var inquiry protocol.Inquiry
	if len(text) > protocol.MaxInquiryHeader || json.Unmarshal([]byte(text), &inquiry) != nil || inquiry.ID == q.asked {
		return ""
	}
	return text
}

// watch wakes the polls of a Feature when something is asked about it, at whichever replica.
func (i *inquiries) watch(ctx context.Context, informers cache.Informers, wake func(types.NamespacedName)) error {
	informer, err := informers.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch inquiries: %w", err)
	}
	notify := func(object any) {
		lease, ok := object.(*coordinationv1.Lease)
		if !ok || lease.Labels[v1alpha1.LabelInquiry] == "" {
			return
		}
		if namespace, name, ok := strings.Cut(lease.Annotations[v1alpha1.AnnotationFeature], "/"); ok {
			wake(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch inquiries: %w", err)
	}
	return nil
}

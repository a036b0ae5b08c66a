// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Extra of a token that is bound to a pod (k8s.io/apiserver/pkg/authentication/serviceaccount).
const (
	extraPodName  = "authentication.kubernetes.io/pod-name"
	extraPodUID   = "authentication.kubernetes.io/pod-uid"
	extraNodeName = "authentication.kubernetes.io/node-name"
	// extraCredential is the id that the API server gave to the token: only tokens that it signed for a TokenRequest have one.
	extraCredential = "authentication.kubernetes.io/credential-id"
)

// proof is what a token and the objects behind it say at one time: which pod it is bound to, and whose that pod claims
// to be. The claim holds when the Feature names the pod.
type proof struct {
	pod    types.NamespacedName
	podUID types.UID
	// account and node that the token names.
	account    string
	node       string
	job        string
	attempt    int64
	feature    types.NamespacedName
	featureUID types.UID
}

// prove reviews a token and reads, from the API server, the pod that it is bound to and the Job that owns the pod.
func (a *Authenticator) prove(ctx context.Context, token string) (proof, error) {
	p, err := a.review(ctx, token)
	if err != nil {
		return proof{}, err
	}
	owner, err := a.livePod(ctx, &p)
	if err != nil {
		return proof{}, err
	}
	return p, a.ownerJob(ctx, owner, &p)
}

// review asks the API server whose the token is.
func (a *Authenticator) review(ctx context.Context, token string) (proof, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{protocol.TokenAudience}}}
	if err := a.options.Client.Create(ctx, review); err != nil {
		return proof{}, fmt.Errorf("review token: %w", err)
	}
	// A server that knows no audiences answers without any, and would let every token through.
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, protocol.TokenAudience) {
		return proof{}, fmt.Errorf("token for audience %q: %w", protocol.TokenAudience, ErrUnauthenticated)
	}
	user := review.Status.User
	account, ok := serviceAccount(user.Username)
	name, uid, node := one(user.Extra[extraPodName]), one(user.Extra[extraPodUID]), one(user.Extra[extraNodeName])
	if !ok || name == "" || uid == "" {
		return proof{}, fmt.Errorf("the token of %q is not bound to a pod: %w", user.Username, ErrForbidden)
	}
	if node == "" || one(user.Extra[extraCredential]) == "" {
		return proof{}, fmt.Errorf("the token of %q was not made for a pod that runs on a node: %w", user.Username, ErrForbidden)
	}
	return proof{
		pod: types.NamespacedName{Namespace: account.Namespace, Name: name}, podUID: types.UID(uid), account: account.Name, node: node,
	}, nil
}

// one is the only value of a claim; empty where there is none, or more than one.
func one(values authenticationv1.ExtraValue) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

func serviceAccount(username string) (types.NamespacedName, bool) {
	parts := strings.Split(username, ":")
	if len(parts) != 4 || parts[0] != "system" || parts[1] != "serviceaccount" || parts[2] == "" || parts[3] == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: parts[2], Name: parts[3]}, true
}

// livePod checks that the pod still runs and gives the Job that controls it.
func (a *Authenticator) livePod(ctx context.Context, p *proof) (metav1.OwnerReference, error) {
	pod := &corev1.Pod{}
	if err := a.options.Live.Get(ctx, p.pod, pod); client.IgnoreNotFound(err) != nil {
		return metav1.OwnerReference{}, fmt.Errorf("read pod %s: %w", p.pod, err)
	} else if apierrors.IsNotFound(err) || pod.UID != p.podUID {
		return metav1.OwnerReference{}, fmt.Errorf("pod %s is gone: %w", p.pod, ErrForbidden)
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return metav1.OwnerReference{}, fmt.Errorf("pod %s has ended: %w", p.pod, ErrForbidden)
	}
	if pod.Spec.NodeName != p.node || pod.Spec.ServiceAccountName != p.account {
		return metav1.OwnerReference{}, fmt.Errorf("the token names node %q and service account %q, and pod %s has others: %w", p.node, p.account, p.pod, ErrForbidden)
	}
	attempt, err := strconv.ParseInt(pod.Labels[v1alpha1.LabelAttempt], 10, 64)
	owner := metav1.GetControllerOf(pod)
	if err != nil || attempt < 1 || owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return metav1.OwnerReference{}, fmt.Errorf("pod %s is not that of a Feature's Job: %w", p.pod, ErrForbidden)
	}
	p.attempt = attempt
	return *owner, nil
}

// ownerJob checks that the Job exists and notes which Feature controls it.
func (a *Authenticator) ownerJob(ctx context.Context, owner metav1.OwnerReference, p *proof) error {
	key := types.NamespacedName{Namespace: p.pod.Namespace, Name: owner.Name}
	job := &batchv1.Job{}
	if err := a.options.Live.Get(ctx, key, job); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Job %s: %w", key, err)
	} else if apierrors.IsNotFound(err) || job.UID != owner.UID {
		return fmt.Errorf("Job %s of pod %s is gone: %w", key, p.pod, ErrForbidden)
	}
	feature := metav1.GetControllerOf(job)
	if feature == nil || feature.Kind != "Feature" || feature.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("Job %s is not that of a Feature: %w", key, ErrForbidden)
	}
	p.job = job.Name
	p.feature = types.NamespacedName{Namespace: key.Namespace, Name: feature.Name}
	p.featureUID = feature.UID
	return nil
}

// check says whether a Feature names the pod as that of its current attempt.
func (p proof) check(f *v1alpha1.Feature) error {
	job := f.Status.Job
	switch {
	case f.UID != p.featureUID:
		return fmt.Errorf("Feature %s is another one of the same name: %w", p.feature, ErrForbidden)
	case f.Status.Attempt > p.attempt:
		return fmt.Errorf("pod %s runs attempt %d of Feature %s, which is at %d: %w", p.pod, p.attempt, p.feature, f.Status.Attempt, ErrForbidden)
	case f.Status.Attempt < p.attempt || job == nil || job.PodUID == "":
		return fmt.Errorf("pod %s of Feature %s: %w", p.pod, p.feature, ErrTooEarly)
	case job.Name != p.job || job.PodUID != string(p.podUID):
		return fmt.Errorf("Feature %s runs in another pod than %s: %w", p.feature, p.pod, ErrForbidden)
	}
	return nil
}

func (p proof) caller(f *v1alpha1.Feature) Caller {
	return Caller{Feature: f, Attempt: p.attempt, Pod: p.pod, PodUID: p.podUID}
}

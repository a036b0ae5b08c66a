// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// counted is an API server whose token reviews and reads are counted, and which can be made to fail.
type counted struct {
	mu      sync.Mutex
	reviews int
	down    error
	// alter changes what a review says; nil leaves it as it is.
	alter func(*authenticationv1.TokenReviewStatus)
}

func (c *counted) review(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	c.mu.Lock()
	c.reviews++
	down := c.down
	c.mu.Unlock()
	if down != nil {
		return down
	}
	err := w.Create(ctx, o, opts...)
	if review, ok := o.(*authenticationv1.TokenReview); ok && c.alter != nil {
		c.alter(&review.Status)
	}
	return err
}

func (c *counted) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

func (c *counted) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reviews
}

func newAuthenticator(t *testing.T) (*identity.Authenticator, *clocktesting.FakeClock, *counted) {
	t.Helper()
	c := &counted{}
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Now())
	a, err := identity.New(identity.Options{
		Client: interceptor.NewClient(watching, interceptor.Funcs{Create: c.review}), Live: env.Client, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, clock, c
}

func TestPinnedPodIsItsFeature(t *testing.T) {
	a, _, _ := newAuthenticator(t)
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	caller, err := a.Authenticate(t.Context(), run.Token)
	if err != nil {
		t.Fatal(err)
	}
	if caller.Feature.UID != run.Feature.UID || caller.Attempt != 1 || caller.Pod.Name != run.Pod.Name || caller.PodUID != run.Pod.UID {
		t.Errorf("it is %+v of %s", caller, caller.Feature.Name)
	}
}

func TestOthersAreRefused(t *testing.T) {
	project := env.Project(t)
	run := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "stranger"}, Spec: attempt.PodSpec()}
	if err := env.Client.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	// A pod that claims to be of the Feature's Job, made past admission: the claim is as good as any that can be written.
	forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "twf-login-1-forged", Labels: run.Pod.Labels, OwnerReferences: run.Pod.OwnerReferences}, Spec: attempt.PodSpec()}
	if err := env.As(t, "system:serviceaccount:kube-system:job-controller", "system:masters").Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	ended := attempt.Start(t, env, attempt.Feature(t, env, project, "ended"))
	ended.Pod.Status.Phase = corev1.PodSucceeded
	if err := env.Client.Status().Update(t.Context(), ended.Pod); err != nil {
		t.Fatal(err)
	}
	unpinned := attempt.Launch(t, env, attempt.Feature(t, env, project, "unpinned"))
	superseded := attempt.Start(t, env, attempt.Feature(t, env, project, "superseded"))
	attempt.Start(t, env, superseded.Feature)
	orphan := attempt.Start(t, env, attempt.Feature(t, env, project, "orphan"))
	if err := env.Client.Delete(t.Context(), orphan.Feature); err != nil {
		t.Fatal(err)
	}
	jobless := attempt.Start(t, env, attempt.Feature(t, env, project, "jobless"))
	if err := env.Client.Delete(t.Context(), jobless.Job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		token string
		want  error
	}{
		"nothing":                             {"", identity.ErrUnauthenticated},
		"no token":                            {"password", identity.ErrUnauthenticated},
		"line breaks":                         {run.Token + "\r\nX: y", identity.ErrUnauthenticated},
		"far too long":                        {strings.Repeat("a", 20<<10), identity.ErrUnauthenticated},
		"signature of another token":          {run.Token[:strings.LastIndexByte(run.Token, '.')] + stolenSignature(t, stranger), identity.ErrUnauthenticated},
		"audience of the API server":          {attempt.Token(t, env, run.Pod), identity.ErrUnauthenticated},
		"another audience":                    {attempt.Token(t, env, run.Pod, "llm-gateway"), identity.ErrUnauthenticated},
		"bound to no pod":                     {unbound(t, project), identity.ErrForbidden},
		"pod of nobody":                       {attempt.Token(t, env, stranger, protocol.TokenAudience), identity.ErrForbidden},
		"pod that claims the Job":             {attempt.Token(t, env, forged, protocol.TokenAudience), identity.ErrForbidden},
		"pod that has ended":                  {ended.Token, identity.ErrForbidden},
		"pod of an earlier attempt":           {superseded.Token, identity.ErrForbidden},
		"pod whose Feature is gone":           {orphan.Token, identity.ErrForbidden},
		"pod whose Job is gone":               {jobless.Token, identity.ErrForbidden},
		"pod that is on no node":              {attempt.Token(t, env, homeless(t, superseded), protocol.TokenAudience), identity.ErrForbidden},
		"pod that is not pinned yet":          {unpinned.Token, identity.ErrTooEarly},
		"several audiences, ours among them":  {attempt.Token(t, env, run.Pod, "other", protocol.TokenAudience), nil},
		"the same token as a person might do": {run.Token, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, _, _ := newAuthenticator(t)
			for range 2 { // the second answer comes from memory
				if caller, err := a.Authenticate(t.Context(), test.token); !errors.Is(err, test.want) {
					t.Errorf("got %v, %+v; want %v", err, caller.Pod, test.want)
				}
			}
		})
	}
	t.Run("pinned meanwhile", func(t *testing.T) {
		a, _, _ := newAuthenticator(t)
		if _, err := a.Authenticate(t.Context(), unpinned.Token); !errors.Is(err, identity.ErrTooEarly) {
			t.Fatalf("before: %v", err)
		}
		unpinned.Pin(t)
		if _, err := a.Authenticate(t.Context(), unpinned.Token); err != nil {
			t.Errorf("after: %v", err)
		}
	})
}

// TestWhatATokenSaysMustFitItsPod: the pod's own token names its node, its service account, and is one that the API server
// made for a request.
func TestWhatATokenSaysMustFitItsPod(t *testing.T) {
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	const (
		nodeName   = "authentication.kubernetes.io/node-name"
		credential = "authentication.kubernetes.io/credential-id"
		podUID     = "authentication.kubernetes.io/pod-uid"
	)
	set := func(claim string, values ...string) func(*authenticationv1.TokenReviewStatus) {
		return func(s *authenticationv1.TokenReviewStatus) { s.User.Extra[claim] = values }
	}
	tests := map[string]struct {
		alter func(*authenticationv1.TokenReviewStatus)
		want  error
	}{
		"as it is":          {nil, nil},
		"another node":      {set(nodeName, "node-2"), identity.ErrForbidden},
		"two nodes":         {set(nodeName, "node-1", "node-2"), identity.ErrForbidden},
		"no node":           {set(nodeName), identity.ErrForbidden},
		"no credential id":  {set(credential), identity.ErrForbidden},
		"another pod's uid": {set(podUID, "0b5f8f5e-0000-4000-8000-000000000000"), identity.ErrForbidden},
		"another account":   {func(s *authenticationv1.TokenReviewStatus) { s.User.Username += "-2" }, identity.ErrForbidden},
		"an account of no name": {func(s *authenticationv1.TokenReviewStatus) {
			s.User.Username = "system:serviceaccount:" + run.Pod.Namespace + ":"
		}, identity.ErrForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, _, server := newAuthenticator(t)
			server.alter = test.alter
			if _, err := a.Authenticate(t.Context(), run.Token); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// stolenSignature is the last part of another good token.
func stolenSignature(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	other := attempt.Token(t, env, pod, protocol.TokenAudience)
	return other[strings.LastIndexByte(other, '.'):]
}

// unbound is a token for our audience that anyone with the right to make tokens can have.
func unbound(t *testing.T, project string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "unbound"}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{protocol.TokenAudience}, ExpirationSeconds: ptr.To[int64](600)}}
	if err := kubelet(t).SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// kubelet asks for tokens of our audience: admission lets nobody else.
func kubelet(t *testing.T) client.Client {
	t.Helper()
	return env.As(t, "system:node:node-1", "system:nodes", "system:masters")
}

// homeless is a pod of the attempt's Job that has no node yet.
func homeless(t *testing.T, a *attempt.Attempt) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.Pod.Namespace, Name: a.Pod.Name + "-homeless", Labels: a.Pod.Labels, OwnerReferences: a.Pod.OwnerReferences,
	}, Spec: attempt.PodSpec()}
	if err := env.As(t, "system:serviceaccount:kube-system:job-controller", "system:masters").Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestStolenTokens: a token outlives neither its pod nor its attempt by more than 30 seconds.
func TestStolenTokens(t *testing.T) {
	a, clock, _ := newAuthenticator(t)
	lost := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "lost"))
	if _, err := a.Authenticate(t.Context(), lost.Token); err != nil {
		t.Fatal(err)
	}
	if err := lost.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(30 * time.Second)
	if _, err := a.Authenticate(t.Context(), lost.Token); !errors.Is(err, identity.ErrUnauthenticated) && !errors.Is(err, identity.ErrForbidden) {
		t.Errorf("30 seconds after its pod was deleted: %v", err)
	}
	old := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "old"))
	if _, err := a.Authenticate(t.Context(), old.Token); err != nil {
		t.Fatal(err)
	}
	attempt.Start(t, env, old.Feature)
	if _, err := a.Authenticate(t.Context(), old.Token); !errors.Is(err, identity.ErrForbidden) {
		t.Errorf("at once after the next attempt has begun: %v", err)
	}
}

func TestTheAPIServerIsAskedOnce(t *testing.T) {
	a, clock, server := newAuthenticator(t)
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, err := a.Authenticate(t.Context(), run.Token); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := server.total(); got != 1 {
		t.Errorf("%d reviews for 20 callers with one token", got)
	}
	bad := run.Token[:len(run.Token)-4] + "AAAA"
	for range 5 {
		if _, err := a.Authenticate(t.Context(), bad); !errors.Is(err, identity.ErrUnauthenticated) {
			t.Error(err)
		}
	}
	if got := server.total(); got != 2 {
		t.Errorf("%d reviews after a bad token was shown 5 times", got)
	}
	clock.Step(time.Minute)
	if _, err := a.Authenticate(t.Context(), run.Token); err != nil || server.total() != 3 {
		t.Errorf("after a minute: %v, %d reviews", err, server.total())
	}
}

// TestAnAPIServerThatIsDownRefusesNobody: the error is none of ours, and is not remembered.
func TestAnAPIServerThatIsDownRefusesNobody(t *testing.T) {
	a, _, server := newAuthenticator(t)
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	server.fail(errors.New("connection refused"))
	_, err := a.Authenticate(t.Context(), run.Token)
	if err == nil || errors.Is(err, identity.ErrUnauthenticated) || errors.Is(err, identity.ErrForbidden) || errors.Is(err, identity.ErrTooEarly) {
		t.Errorf("while it is down: %v", err)
	}
	server.fail(nil)
	if _, err := a.Authenticate(t.Context(), run.Token); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

// TestAnImpatientCallerSpoilsNothing: the first caller hangs up while the second waits for the same answer.
func TestAnImpatientCallerSpoilsNothing(t *testing.T) {
	a, _, _ := newAuthenticator(t)
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	impatient, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := a.Authenticate(impatient, run.Token); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	if _, err := a.Authenticate(t.Context(), run.Token); err != nil {
		t.Errorf("the second: %v", err)
	}
}

// TestTheTokenIsNothingToTheAPIServer: a thief who has it from the pod cannot even ask who they are.
func TestTheTokenIsNothingToTheAPIServer(t *testing.T) {
	run := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = run.Token
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpClient.Get(env.Config.Host + "/api/v1/namespaces/" + run.Pod.Namespace + "/pods")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API server answers %d, want 401", response.StatusCode)
	}
}

// TestEffective: intake and gateway hold a Feature to the policies of its project and of the system, and no others.
func TestEffective(t *testing.T) {
	project, other := env.Project(t), env.Project(t)
	for _, namespace := range []string{project, other, kubetest.SystemNamespace} {
		p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "egress-of-" + project}, Spec: v1alpha1.SupervisorPolicySpec{
			Defaults: &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"of-" + namespace + "/**"}}},
		}}
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), p) })
	}
	effective, err := identity.Effective(t.Context(), env.Client, attempt.Feature(t, env, project, "login"), kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	protected := strings.Join(effective.Paths.Protected, " ")
	for namespace, want := range map[string]bool{project: true, kubetest.SystemNamespace: true, other: false} {
		if got := strings.Contains(protected, "of-"+namespace+"/**"); got != want {
			t.Errorf("policy of %s counts: %v", namespace, got)
		}
	}
}

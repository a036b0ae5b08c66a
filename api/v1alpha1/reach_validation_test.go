// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestTokensForTidewaiterAreKubelets: role edit lets people ask for tokens that are bound to a Feature's pod. With one for
// Tidewaiter's audience they would speak as its watchdog.
func TestTokensForTidewaiterAreKubelets(t *testing.T) {
	project := env.Project(t)
	ours := object(t, pod, "metadata: {"+ourName+", "+ourLabels+", "+jobOwner+"}")
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, ours))
	bound := &corev1.Pod{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: project, Name: ours.GetName()}, bound); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "default"}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	ask := func(who client.Client, audiences ...string) error {
		return who.SubResource("token").Create(t.Context(), account.DeepCopy(), &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: audiences, ExpirationSeconds: ptr.To[int64](600),
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: bound.Name, UID: bound.UID},
		}})
	}
	const message = `tokens for the audience "tidewaiter" are for the pods of Features, and kubelets ask for them: leave this audience out of spec.audiences`
	person, kubelet := editor(t, project), env.As(t, "system:node:node-1", "system:nodes", "system:masters")
	for name, who := range map[string]client.Client{
		"editor": person, "cluster admin": env.Client, "manager": env.As(t, kubetest.Manager, "system:masters"),
		"called like a node": env.As(t, "system:node:node-1", "system:masters"), "in the group": env.As(t, "somebody", "system:nodes", "system:masters"),
	} {
		t.Run(name, func(t *testing.T) {
			wantDenied(t, ask(who, "tidewaiter"), "tidewaiter-tokens", message)
			wantDenied(t, ask(who, "https://kubernetes.default.svc", "tidewaiter"), "tidewaiter-tokens", message)
			wantAllowed(t, ask(who, "vault"))
			wantAllowed(t, ask(who))
		})
	}
	wantAllowed(t, ask(kubelet, "tidewaiter"))
}

// TestOnlyTheAgentsContainerIsEntered tries every way into a pod. There is no kubelet here: what admission lets through
// ends with another error.
func TestOnlyTheAgentsContainerIsEntered(t *testing.T) {
	project := env.Project(t)
	ours := object(t, pod, "metadata: {"+ourName+", "+ourLabels+", "+jobOwner+"}")
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, ours))
	theirs := existing(t, project, pod, "")
	editor(t, project)
	person, err := kubernetes.NewForConfig(env.ConfigAs("editor@" + project))
	if err != nil {
		t.Fatal(err)
	}
	const (
		named   = `only the container "agent" of a Feature's pod can be entered, and it must be named: use --container agent`
		another = `only the container "agent" of a Feature's pod can be entered, not "`
		port    = "no connection to a port of a Feature's pod is possible"
	)
	cases := map[string]struct {
		pod, subresource, container string
		wantDenied                  string
	}{
		"exec into the agent":               {ours.GetName(), "exec", "agent", ""},
		"exec into the watchdog":            {ours.GetName(), "exec", "watchdog", another + "watchdog"},
		"exec into prepare":                 {ours.GetName(), "exec", "prepare", another + "prepare"},
		"exec into seal":                    {ours.GetName(), "exec", "seal", another + "seal"},
		"exec into what the server chooses": {ours.GetName(), "exec", "", named},
		"attach to the agent":               {ours.GetName(), "attach", "agent", ""},
		"attach to the watchdog":            {ours.GetName(), "attach", "watchdog", another + "watchdog"},
		"attach to what the server chooses": {ours.GetName(), "attach", "", named},
		"forward a port":                    {ours.GetName(), "portforward", "", port},
		"proxy":                             {ours.GetName(), "proxy", "", port},
		"proxy to a port":                   {ours.GetName() + ":8080", "proxy", "", port},
		"proxy with TLS":                    {"https:" + ours.GetName() + ":8443", "proxy", "", port},
		"exec into another pod":             {theirs.GetName(), "exec", "agent", ""},
		"exec into the only container":      {theirs.GetName(), "exec", "", ""},
		"forward a port of another pod":     {theirs.GetName(), "portforward", "", ""},
		"proxy to another pod":              {theirs.GetName(), "proxy", "", ""},
	}
	for name, c := range cases {
		for _, verb := range []string{"GET", "POST"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				err := connect(t, person.CoreV1().RESTClient(), verb, project, c.pod, c.subresource, c.container)
				if c.wantDenied != "" {
					wantDenied(t, err, "tidewaiter-connect", c.wantDenied)
				} else if err != nil && strings.Contains(err.Error(), "tidewaiter-") {
					t.Errorf("want allowed, got %v", err)
				}
			})
		}
	}
	masters, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(t, masters.CoreV1().RESTClient(), "POST", project, ours.GetName(), "exec", "watchdog"); err == nil || strings.Contains(err.Error(), "tidewaiter-") {
		t.Errorf("a cluster admin looks for what is wrong: %v", err)
	}
}

func connect(t *testing.T, who rest.Interface, verb, project, pod, subresource, container string) error {
	t.Helper()
	request := who.Verb(verb).Resource("pods").Namespace(project).Name(pod).SubResource(subresource)
	if container != "" {
		request = request.Param("container", container)
	}
	if subresource == "exec" {
		request = request.Param("command", "true").Param("stdout", "true")
	}
	if subresource == "attach" {
		request = request.Param("stdout", "true")
	}
	return request.Do(t.Context()).Error()
}

// TestTheSchedulerPlacesPods: a binding can carry labels and annotations into the pod.
func TestTheSchedulerPlacesPods(t *testing.T) {
	project := env.Project(t)
	ours := object(t, pod, "metadata: {"+ourName+", "+ourLabels+", "+jobOwner+"}")
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, ours))
	bind := func(who client.Client) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: ours.GetName()}}
		return who.SubResource("binding").Create(t.Context(), p, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: ours.GetName()}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		})
	}
	owner := env.Person(t, project, "owner", "cluster-admin")
	wantDenied(t, bind(owner), "tidewaiter-connect", "the scheduler of Kubernetes alone assigns a Feature's pod to a node")
	wantAllowed(t, bind(env.As(t, "system:kube-scheduler")))
}

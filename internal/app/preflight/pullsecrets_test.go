// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

// TestPullSecrets: every pod of a preflight can pull the image with the Secrets that a flag names, or else with those of the installation.
func TestPullSecrets(t *testing.T) {
	refer := func(names ...string) (list []corev1.LocalObjectReference) {
		for _, name := range names {
			list = append(list, corev1.LocalObjectReference{Name: name})
		}
		return list
	}
	elsewhere := env.Project(t)
	created(t, pullSecret(elsewhere, "far"))
	for name, tc := range map[string]struct {
		flags               []string
		deployment, account []corev1.LocalObjectReference
		notInstalled        bool
		// want are the Secrets whose content the pods have, by their names.
		want []string
		// refused is why no pod is made.
		refused string
	}{
		"none":                             {},
		"no installation":                  {notInstalled: true},
		"flags":                            {flags: []string{"near", elsewhere + "/far"}, deployment: refer("other"), want: []string{"near", "far"}},
		"flags without an installation":    {flags: []string{"near"}, notInstalled: true, want: []string{"near"}},
		"of the Deployment":                {deployment: refer("near", "other"), account: refer("third"), want: []string{"near", "other"}},
		"of the service account":           {account: refer("near"), want: []string{"near"}},
		"of the Deployment, one missing":   {deployment: refer("gone", "near"), want: []string{"near"}},
		"a flag that names none":           {flags: []string{"gone"}, refused: `secrets "gone" not found`},
		"a flag that names another Secret": {flags: []string{"plain"}, refused: "plain has the type Opaque"},
		"of the Deployment, one of no use": {deployment: refer("plain", "near"), want: []string{"near"}},
	} {
		t.Run(name, func(t *testing.T) {
			system := env.Project(t)
			for _, name := range []string{"near", "other", "third"} {
				created(t, pullSecret(system, name))
			}
			created(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "plain"}, StringData: map[string]string{"password": "secret"}})
			if !tc.notInstalled {
				created(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "tidewaiter-manager"}, ImagePullSecrets: tc.account})
				labels := map[string]string{"app": "manager"}
				created(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "tidewaiter-manager"}, Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
						ServiceAccountName: "tidewaiter-manager", ImagePullSecrets: tc.deployment, Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/tidewaiter:1"}},
					}},
				}})
			}
			l := &look{client: env.Client, progress: io.Discard, options: Options{SystemNamespace: system, PullSecrets: tc.flags, Git: []string{"https://git.example.com/shop.git"}}}
			f := &preflight.Facts{Unread: map[string]string{}}
			l.read(t.Context(), f)
			pods := probed(t, l, f, tc.refused == "")
			if tc.refused != "" {
				if got := f.Unread[preflight.NetworkPolicy]; !strings.Contains(got, tc.refused) || len(pods) > 0 || f.PodSecurity.Error != "" {
					t.Errorf("%d pods, and %q, want none, and %q", len(pods), got, tc.refused)
				}
				return
			}
			for _, pod := range pods {
				var got []string
				for _, s := range pod.Spec.ImagePullSecrets {
					var secret corev1.Secret
					if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: s.Name}, &secret); err != nil {
						t.Fatal(err)
					}
					got = append(got, content(secret))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("pod %s (-want +got):\n%s", pod.Name, diff)
				}
			}
		})
	}
}

// probed runs the probes until all pods that need no StorageClass are there, and returns these. It does what the rest of a cluster would do for that.
func probed(t *testing.T, l *look, f *preflight.Facts, wait bool) []corev1.Pod {
	t.Helper()
	known := preflightNamespaces(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.probe(ctx, f)
	}()
	var namespace string
	await(t, "the namespace", func() bool {
		for _, name := range preflightNamespaces(t) {
			if !slices.Contains(known, name) {
				namespace = name
			}
		}
		return namespace != ""
	})
	created(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	var pods corev1.PodList
	listed := func(names ...string) func() bool {
		return func() bool {
			if err := env.Client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(names, func(name string) bool {
				return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == name })
			})
		}
	}
	if wait {
		await(t, "the pods", listed(probe.Serve, probe.Users, probe.Processes, reachName(0)))
		var server corev1.Pod
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: probe.Serve}, &server); err != nil {
			t.Fatal(err)
		}
		server.Status.Phase, server.Status.PodIP, server.Status.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
		if err := env.Client.Status().Update(t.Context(), &server); err != nil {
			t.Fatal(err)
		}
		await(t, "the pods that connect", listed(probe.Connect, probe.Refused))
		cancel()
	}
	<-done
	listed()()
	return pods.Items
}

func preflightNamespaces(t *testing.T) (names []string) {
	t.Helper()
	var list corev1.NamespaceList
	if err := env.Client.List(t.Context(), &list, client.MatchingLabels{labelName: product}); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := until(t.Context(), time.Now().Add(time.Minute), func() (bool, error) { return done(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func created(t *testing.T, o client.Object) {
	t.Helper()
	if err := env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// pullSecret has its own name as the user.
func pullSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{"registry.example.com":{"username":%q}}}`, name)},
	}
}

// content is the user of a pull secret.
func content(s corev1.Secret) string {
	return strings.Split(string(s.Data[corev1.DockerConfigJsonKey]), `"`)[7]
}

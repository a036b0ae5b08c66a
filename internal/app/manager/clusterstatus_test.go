// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestClusterStatus looks at a cluster with the rights of the manager: what it finds is written once, and a change is an Event.
func TestClusterStatus(t *testing.T) {
	key := client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: protocol.StatusConfigMap}
	if err := client.IgnoreNotFound(env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})); err != nil {
		t.Fatal(err)
	}
	var gateway error
	var s *clusterStatus
	env.StartManager(t, nil, func(mgr ctrl.Manager) (err error) {
		s, err = newClusterStatus(mgr, env.As(t, kubetest.Manager), gatewayLedger{}, kubetest.SystemNamespace, logr.Discard())
		if err == nil {
			s.gateway = func(context.Context) error { return gateway }
		}
		return err
	})
	look := func() *corev1.ConfigMap {
		t.Helper()
		if _, err := s.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		status := &corev1.ConfigMap{}
		if err := env.Client.Get(t.Context(), key, status); err != nil {
			t.Fatal(err)
		}
		return status
	}
	wantEvent := func(reason, note string) {
		t.Helper()
		until(t, "an Event "+reason+" of "+note, func() bool {
			var list eventsv1.EventList
			if err := env.Client.List(t.Context(), &list, client.InNamespace(key.Namespace)); err != nil {
				return false
			}
			for _, e := range list.Items {
				if e.Regarding.Name == key.Name && e.Reason == reason && strings.HasPrefix(e.Note, note) {
					return true
				}
			}
			return false
		})
	}

	first := look()
	for id, want := range map[string]string{
		preflight.KubernetesVersion: "ok: Kubernetes v1.", preflight.DefaultClass: "failed: there is no StorageClass.", preflight.PodSecurityLevel: "ok: ",
		preflight.Features: "ok: ", preflight.Gateway: "ok: the gateway answers.",
	} {
		if !strings.HasPrefix(first.Data[id], want) {
			t.Errorf("%s is %q, want %q", id, first.Data[id], want)
		}
	}
	wantEvent("CheckFailed", preflight.DefaultClass+" is failed")
	if second := look(); second.ResourceVersion != first.ResourceVersion {
		t.Errorf("the same was written again: %v", second.Data)
	}

	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.com/disk",
	}
	if err := env.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Client.Delete(context.WithoutCancel(t.Context()), class); err != nil {
			t.Error(err)
		}
	})
	gateway = errors.New("dial: connection refused")
	now := look()
	if !strings.HasPrefix(now.Data[preflight.DefaultClass], "ok: standard is the default") || !strings.Contains(now.Data[preflight.Gateway], "connection refused") {
		t.Errorf("%v", now.Data)
	}
	wantEvent("CheckPassed", preflight.DefaultClass+" is ok")
	wantEvent("CheckFailed", preflight.Gateway+" is failed")
}

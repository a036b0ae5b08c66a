// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desired renders the objects that a Feature needs as apply configurations: Job, volumes, network policy, CA
// bundle. It is pure, and its results are kept as golden files: what runs next to an agent is reviewed line by line.
package desired

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// Options are values that the manager has and the Feature does not.
type Options struct {
	// SystemNamespace that manager and gateway run in.
	SystemNamespace string
	// Image of prepare, watchdog and seal, and of agents whose program is in it.
	Image string
	// UserNamespaces gives the pod a user namespace of its own (hostUsers: false).
	UserNamespaces bool
	// Pod has the values of the policy in effect for the Feature's pods, including the Feature's own.
	Pod policy.Pod
	// Intake and Gateway are the addresses that the pod may talk to; it has no DNS.
	Intake, Gateway netip.Addr
	// Dialect of the agent's backend and ContextWindow of its model in tokens, for agents of runtimes that speak every dialect; zero for others.
	Dialect       string
	ContextWindow int64
}

// Names of a Feature's volumes; its claims are called twf-<feature>-<volume>.
const (
	volumeTrusted   = "trusted"
	volumeWorkspace = "workspace"
	volumeHome      = "home"
)

// TrustedClaim is the name of the claim that holds a Feature's repository and checkpoints.
func TrustedClaim(feature string) string { return naming.Volume(feature, volumeTrusted) }

var (
	defaultSize = resource.MustParse("5Gi")
	// homeSize bounds the agent's HOME: sessions and caches, not the work.
	homeSize = resource.MustParse("1Gi")
)

// size of the workspace and trusted volumes.
func size(f *v1alpha1.Feature) resource.Quantity {
	if f.Spec.Workspace != nil && f.Spec.Workspace.Size != nil {
		return *f.Spec.Workspace.Size
	}
	return defaultSize
}

func sizeOf(f *v1alpha1.Feature, volume string) resource.Quantity {
	s := size(f)
	if volume == volumeHome && s.Cmp(homeSize) > 0 {
		return homeSize
	}
	return s
}

// Claims are the volumes of a Feature; none if they live as long as its pod.
func Claims(f *v1alpha1.Feature) []*corev1ac.PersistentVolumeClaimApplyConfiguration {
	if features.Ephemeral(f) {
		return nil
	}
	var claims []*corev1ac.PersistentVolumeClaimApplyConfiguration
	for _, volume := range []string{volumeTrusted, volumeWorkspace, volumeHome} {
		spec := corev1ac.PersistentVolumeClaimSpec().
			WithAccessModes(corev1.ReadWriteOnce).
			WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: sizeOf(f, volume)}))
		if f.Spec.Workspace != nil && f.Spec.Workspace.StorageClassName != nil {
			spec = spec.WithStorageClassName(*f.Spec.Workspace.StorageClassName)
		}
		claims = append(claims, corev1ac.PersistentVolumeClaim(naming.Volume(f.Name, volume), f.Namespace).
			WithLabels(map[string]string{v1alpha1.LabelFeature: f.Name}).
			WithOwnerReferences(owner(f)).
			WithSpec(spec))
	}
	return claims
}

// CABundle vouches for intake and gateway in one project. It belongs to no single Feature.
func CABundle(namespace string, pem []byte) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(protocol.CAConfigMap, namespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "tidewaiter"}).
		WithData(map[string]string{protocol.CAKey: string(pem)})
}

// owner makes the Feature the controller of a child, so that the child goes with it.
func owner(f *v1alpha1.Feature) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("Feature").
		WithName(f.Name).WithUID(f.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}

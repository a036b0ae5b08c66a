// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// Volumes that live and die with the pod, or come from the API server.
const (
	volumeRun         = "run"
	volumeCheckout    = "checkout"
	volumeAgentTmp    = "agent-tmp"
	volumeWatchdogTmp = "watchdog-tmp"
	volumeToken       = "token"
	volumeCA          = "ca"
	volumeGit         = "git"
)

var (
	// agentVolumes are those of a pod with an agent, sealVolumes those of a pod without; volumeGit is added where the
	// Feature names a Secret.
	agentVolumes = []string{volumeTrusted, volumeWorkspace, volumeHome, volumeRun, volumeAgentTmp, volumeWatchdogTmp, volumeToken, volumeCA}
	// gateVolumes have no claim of the Feature but the trusted one, which the gate's container does not mount.
	gateVolumes = []string{volumeTrusted, volumeCheckout, volumeRun, volumeAgentTmp, volumeWatchdogTmp, volumeToken, volumeCA}
	sealVolumes = []string{volumeTrusted, volumeWorkspace, volumeWatchdogTmp, volumeToken, volumeCA}

	// runSize holds the runner and a socket.
	runSize = resource.MustParse("32Mi")
)

func volumes(f *v1alpha1.Feature, names []string) []*corev1ac.VolumeApplyConfiguration {
	var list []*corev1ac.VolumeApplyConfiguration
	for _, name := range names {
		list = append(list, volume(f, name))
	}
	if f.Spec.Repository.CredentialsSecretRef != nil {
		list = append(list, volume(f, volumeGit))
	}
	return list
}

func volume(f *v1alpha1.Feature, name string) *corev1ac.VolumeApplyConfiguration {
	v := corev1ac.Volume().WithName(name)
	switch name {
	case volumeTrusted, volumeWorkspace, volumeHome:
		if features.Ephemeral(f) {
			return v.WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(sizeOf(f, name)))
		}
		return v.WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(naming.Volume(f.Name, name)))
	case volumeRun:
		return v.WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).WithSizeLimit(runSize))
	case volumeToken:
		return v.WithProjected(corev1ac.ProjectedVolumeSource().WithDefaultMode(0o440).WithSources(
			corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().
				WithAudience(protocol.TokenAudience).WithExpirationSeconds(protocol.TokenTTLSeconds).WithPath(path.Base(protocol.TokenPath)))))
	case volumeCA:
		return v.WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(protocol.CAConfigMap))
	case volumeGit:
		// Optional: a Secret that is missing is reported by prepare, and taken up by the kubelet when it appears.
		return v.WithSecret(corev1ac.SecretVolumeSource().WithSecretName(f.Spec.Repository.CredentialsSecretRef.Name).
			WithDefaultMode(0o440).WithOptional(true))
	default:
		return v.WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(size(f)))
	}
}

// trustedSide are the mounts that no agent ever has.
func trustedSide(f *v1alpha1.Feature) []*corev1ac.VolumeMountApplyConfiguration {
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		mount(volumeTrusted, protocol.TrustedDir),
		mount(volumeToken, path.Dir(protocol.TokenPath)).WithReadOnly(true),
		mount(volumeCA, path.Dir(protocol.CAPath)).WithReadOnly(true),
		mount(volumeWatchdogTmp, tmpDir),
	}
	if f.Spec.Repository.CredentialsSecretRef != nil {
		mounts = append(mounts, mount(volumeGit, protocol.GitSecretDir).WithReadOnly(true))
	}
	return mounts
}

// workspaceMount is read-only for an agent in Deterministic mode: what it wants changed it asks the watchdog for.
func workspaceMount(readOnly bool) *corev1ac.VolumeMountApplyConfiguration {
	m := mount(volumeWorkspace, protocol.WorkspaceDir)
	if readOnly {
		return m.WithReadOnly(true)
	}
	return m
}

// checkoutMount is what a gate in a pod of its own has in place of the workspace.
func checkoutMount() *corev1ac.VolumeMountApplyConfiguration {
	return mount(volumeCheckout, protocol.WorkspaceDir)
}

func homeMount() *corev1ac.VolumeMountApplyConfiguration { return mount(volumeHome, protocol.HomeDir) }

// runMount holds the runner and the watchdog's socket; the agent may connect to the socket but change nothing.
func runMount(readOnly bool) *corev1ac.VolumeMountApplyConfiguration {
	m := mount(volumeRun, protocol.RunDir)
	if readOnly {
		return m.WithReadOnly(true)
	}
	return m
}

func mount(name, at string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(name).WithMountPath(at)
}

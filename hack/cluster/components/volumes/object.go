// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// The controller manager sets this on a claim when the provisioner that it names is to act.
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// The mark of a volume that a provisioner made, and therefore may remove.
	provisionedAnnotation = "pv.kubernetes.io/provisioned-by"
)

// wantsVolume reports whether this provisioner is to make a volume for the claim.
func wantsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending &&
		claim.DeletionTimestamp == nil &&
		claim.Spec.VolumeName == "" &&
		claim.Spec.StorageClassName != nil &&
		claim.Annotations[provisionerAnnotation] == Provisioner
}

// isFinished reports whether the volume was made here and its claim, now gone, left its data to be deleted.
func isFinished(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedAnnotation] == Provisioner &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.DeletionTimestamp == nil
}

// volumeName is the same each time the claim is seen, so that one claim never gets two volumes.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// volumeFor describes the volume of a claim, mounted on the node at path.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node, path string) (*corev1.PersistentVolume, error) {
	if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode != corev1.PersistentVolumeFilesystem {
		return nil, fmt.Errorf("volumeMode %s: only Filesystem is provisioned", *claim.Spec.VolumeMode)
	}
	if claim.Spec.DataSourceRef != nil || claim.Spec.DataSource != nil {
		return nil, errors.New("dataSource: volumes begin empty here; leave it out")
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        volumeName(claim),
			Annotations: map[string]string{provisionedAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
					}},
				}},
			}},
		},
	}, nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testClaim() *corev1.PersistentVolumeClaim {
	class := "standard"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u", Annotations: map[string]string{provisionerAnnotation: Provisioner}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

func TestWantsVolume(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"pending":               {func(*corev1.PersistentVolumeClaim) {}, true},
		"bound":                 {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }, false},
		"of another class":      {func(c *corev1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotation] = "x" }, false},
		"not yet handed over":   {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"asks for a volume":     {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "x" }, false},
		"being deleted":         {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }, false},
		"without class at all":  {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }, false},
		"lost its first volume": {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim := testClaim()
			test.change(claim)
			if got := wantsVolume(claim); got != test.want {
				t.Errorf("wantsVolume = %t, want %t", got, test.want)
			}
		})
	}
}

func TestVolumeFor(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}}
	volume, err := volumeFor(testClaim(), class, "node", "/mounts/pvc-u")
	if err != nil {
		t.Fatal(err)
	}
	if volume.Name != "pvc-u" || volume.Spec.ClaimRef.UID != "u" || volume.Spec.Local.Path != "/mounts/pvc-u" {
		t.Errorf("volume %+v", volume)
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.String() != "64Mi" {
		t.Errorf("size %s", size.String())
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("reclaim policy %s", volume.Spec.PersistentVolumeReclaimPolicy)
	}

	block := corev1.PersistentVolumeBlock
	claim := testClaim()
	claim.Spec.VolumeMode = &block
	if _, err := volumeFor(claim, class, "node", "/x"); err == nil || !strings.Contains(err.Error(), "Filesystem") {
		t.Errorf("a block volume was promised: %v", err)
	}
	claim = testClaim()
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "s"}
	if _, err := volumeFor(claim, class, "node", "/x"); err == nil || !strings.Contains(err.Error(), "dataSource") {
		t.Errorf("a copy was promised: %v", err)
	}
}

func TestIsFinished(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"released":        {func(*corev1.PersistentVolume) {}, true},
		"bound":           {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"made by another": {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		"to be kept": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"not yet bound once": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{provisionedAnnotation: Provisioner}},
				Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
				Status:     corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
			}
			test.change(volume)
			if got := isFinished(volume); got != test.want {
				t.Errorf("isFinished = %t, want %t", got, test.want)
			}
		})
	}
}

func TestStoreListsOnlyCompleteVolumes(t *testing.T) {
	disk, err := newStore(filepath.Join(t.TempDir(), "files"), filepath.Join(t.TempDir(), "mounts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pvc-1.ext4", "pvc-2.ext4.partial", "other"} {
		if err := os.WriteFile(filepath.Join(disk.files, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := disk.names()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"pvc-1"}) {
		t.Errorf("volumes %v, want pvc-1 alone", names)
	}
	for range 2 { // the second time there is nothing
		if err := disk.remove("pvc-1"); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := disk.names(); len(names) != 0 {
		t.Errorf("volumes %v, want none", names)
	}
}

func TestSmallVolumesHaveNoJournal(t *testing.T) {
	for bytes, want := range map[int64]bool{16 << 20: true, 64 << 20: false} {
		if got := slices.Contains(formatArguments("f", bytes), "^has_journal"); got != want {
			t.Errorf("%d bytes: without a journal: %t, want %t", bytes, got, want)
		}
	}
}

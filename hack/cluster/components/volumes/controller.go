// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// A volume that is still in use is tried again at this pace.
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second
)

// item names a claim (both parts set) or a volume (no namespace).
type item struct{ namespace, name string }

// controller makes a volume for each claim that asks for one, and removes the volumes of claims that are gone.
type controller struct {
	client   kubernetes.Interface
	disk     *store
	node     string
	factory  informers.SharedInformerFactory
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	classes  storagelisters.StorageClassLister
	queue    workqueue.TypedRateLimitingInterface[item]
	recorder record.EventRecorder
}

func newController(client kubernetes.Interface, disk *store, node string) *controller {
	factory := informers.NewSharedInformerFactory(client, 0)
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	c := &controller{
		client:   client,
		disk:     disk,
		node:     node,
		factory:  factory,
		claims:   factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:  factory.Core().V1().PersistentVolumes().Lister(),
		classes:  factory.Storage().V1().StorageClasses().Lister(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](retryMin, retryMax)),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "volumes"}),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, object any) { c.enqueue(object) },
		DeleteFunc: c.enqueue,
	}
	// A handler can only be refused by an informer that has been stopped.
	_, _ = factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(handler)
	_, _ = factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(handler)
	return c
}

func (c *controller) enqueue(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		klog.ErrorS(err, "Object without a name")
		return
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		klog.ErrorS(err, "Object without a name")
		return
	}
	c.queue.Add(item{namespace, name})
}

// run serves claims until ctx ends. It calls ready when it begins to.
func (c *controller) run(ctx context.Context, ready func() error) error {
	c.factory.Start(ctx.Done())
	c.factory.WaitForCacheSync(ctx.Done())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := c.removeOrphans(ctx); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		next, stopped := c.queue.Get()
		if stopped {
			return ctx.Err()
		}
		c.handle(ctx, next)
	}
}

// removeOrphans removes volumes whose objects went, or were never made, while nobody watched. It runs before any claim
// is served: later, a volume without an object may be one whose object is on its way.
func (c *controller) removeOrphans(ctx context.Context) error {
	names, err := c.disk.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.reconcileVolume(ctx, item{name: name}); err != nil {
			klog.ErrorS(err, "Orphan not removed", "name", name)
		}
	}
	return nil
}

func (c *controller) handle(ctx context.Context, i item) {
	defer c.queue.Done(i)
	reconcile := c.reconcileVolume
	if i.namespace != "" {
		reconcile = c.reconcileClaim
	}
	if err := reconcile(ctx, i); err != nil {
		klog.ErrorS(err, "Volume not reconciled", "namespace", i.namespace, "name", i.name)
		c.queue.AddRateLimited(i)
		return
	}
	c.queue.Forget(i)
}

// reconcileClaim makes the volume of a claim that waits for one.
func (c *controller) reconcileClaim(ctx context.Context, i item) error {
	claim, err := c.claims.PersistentVolumeClaims(i.namespace).Get(i.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if !wantsVolume(claim) {
		return nil
	}
	class, err := c.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return fmt.Errorf("storage class: %w", err)
	}
	volume, err := volumeFor(claim, class, c.node, c.disk.path(volumeName(claim)))
	if err != nil {
		c.recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return nil // only another claim can help; a retry cannot
	}
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	if err := c.disk.create(ctx, volume.Name, size.Value()); err != nil {
		c.recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	if _, err := c.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the volume's object: %w", err)
	}
	return nil
}

// reconcileVolume removes a volume whose claim is gone, and the file of a volume whose object is gone.
func (c *controller) reconcileVolume(ctx context.Context, i item) error {
	volume, err := c.volumes.Get(i.name)
	if apierrors.IsNotFound(err) {
		return c.disk.remove(i.name)
	}
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if !isFinished(volume) {
		return nil
	}
	if err := c.disk.remove(i.name); err != nil {
		return err
	}
	err = c.client.CoreV1().PersistentVolumes().Delete(ctx, i.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the volume's object: %w", err)
	}
	return nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// byAddress is the name of the pod informer's index by pod address.
const byAddress = "byAddress"

// resolver finds the pod that has an address now. A finished pod keeps its address in its status while the address is
// given to the next pod; judging that one by the labels of the finished one would be wrong, so finished pods have none.
type resolver struct {
	pods cache.Indexer
}

func newResolver(pods cache.SharedIndexInformer) *resolver {
	// AddIndexers fails only for an index that exists already or a stopped informer; this informer is new.
	if err := pods.AddIndexers(cache.Indexers{byAddress: addresses}); err != nil {
		panic(err)
	}
	return &resolver{pods: pods.GetIndexer()}
}

// LookupPod returns the key ("namespace/name") of the pod with the address.
func (r *resolver) LookupPod(address string) (string, bool) {
	keys, err := r.pods.IndexKeys(byAddress, address)
	if err != nil || len(keys) == 0 {
		return "", false
	}
	return keys[0], true
}

func addresses(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	var all []string
	for _, ip := range pod.Status.PodIPs {
		all = append(all, ip.IP)
	}
	return all, nil
}

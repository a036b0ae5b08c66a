// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

// copyPullSecrets copies the Secrets to pull the image with into the namespace of the preflight, because a pod can use only those of its own namespace.
// One that a flag names must be there. One of the installation may be missing: the kubelet then pulls without it, too.
func (l *look) copyPullSecrets(ctx context.Context) error {
	if len(l.options.PullSecrets) == 0 {
		for _, from := range l.installedPullSecrets(ctx) {
			if err := l.copyPullSecret(ctx, from); err != nil {
				l.say("Continuing without a pull secret of the installation: %s", preflight.Line(err.Error()))
			}
		}
		return nil
	}
	for _, name := range l.options.PullSecrets {
		from := client.ObjectKey{Namespace: l.options.SystemNamespace, Name: name}
		if namespace, name, has := strings.Cut(name, "/"); has {
			from = client.ObjectKey{Namespace: namespace, Name: name}
		}
		if err := l.copyPullSecret(ctx, from); err != nil {
			return err
		}
	}
	return nil
}

// installedPullSecrets are what the manager's pods have: the Secrets of its Deployment, or else of its service account, as Kubernetes takes them.
func (l *look) installedPullSecrets(ctx context.Context) (keys []client.ObjectKey) {
	if l.installed == nil {
		return nil
	}
	list := l.installed.Spec.ImagePullSecrets
	if len(list) == 0 {
		var account corev1.ServiceAccount
		key := client.ObjectKey{Namespace: l.options.SystemNamespace, Name: cmp.Or(l.installed.Spec.ServiceAccountName, "default")}
		if err := l.client.Get(ctx, key, &account); err != nil {
			l.say("Cannot read which pull secrets the installation has: %s", preflight.Line(err.Error()))
		}
		list = account.ImagePullSecrets
	}
	for _, s := range list {
		keys = append(keys, client.ObjectKey{Namespace: l.options.SystemNamespace, Name: s.Name})
	}
	return keys
}

func (l *look) copyPullSecret(ctx context.Context, from client.ObjectKey) error {
	var secret corev1.Secret
	if err := l.client.Get(ctx, from, &secret); err != nil {
		return fmt.Errorf("read pull secret %s: %w", from, err)
	}
	if secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg {
		return fmt.Errorf("secret %s has the type %s: make a pull secret with kubectl create secret docker-registry", from, secret.Type)
	}
	name := fmt.Sprintf("pull-%d", len(l.pull))
	if err := l.create(ctx, &corev1.Secret{ObjectMeta: l.meta(name), Type: secret.Type, Data: secret.Data}); err != nil {
		return err
	}
	l.pull = append(l.pull, corev1.LocalObjectReference{Name: name})
	return nil
}

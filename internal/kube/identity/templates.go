// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
)

// Templates are the Input templates that apply to the Features of a namespace now, by what is in force of each.
func Templates(ctx context.Context, reader client.Reader, namespace, systemNamespace string) (compose.Layers, error) {
	var l compose.Layers
	var err error
	if l.Global, err = inputs(ctx, reader, systemNamespace); err != nil {
		return compose.Layers{}, err
	}
	if namespace != systemNamespace {
		if l.Project, err = inputs(ctx, reader, namespace); err != nil {
			return compose.Layers{}, err
		}
	}
	return l, nil
}

// inputs of a namespace in their order.
func inputs(ctx context.Context, reader client.Reader, namespace string) ([]string, error) {
	var list v1alpha1.TemplateList
	if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Templates of %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Template) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Name, b.Name))
	})
	var texts []string
	for _, t := range list.Items {
		if in := t.Status.InForce; in != nil && in.Direction == v1alpha1.DirectionInput && t.DeletionTimestamp == nil {
			texts = append(texts, in.Text)
		}
	}
	return texts, nil
}

func order(t v1alpha1.Template) int32 {
	if t.Status.InForce == nil {
		return 0
	}
	return t.Status.InForce.Order
}

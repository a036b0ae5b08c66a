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
	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/kube/templates"
)

// Outputs are the Output templates that apply to a Feature: the checks of all of them, and the texts of each scope, both in their order.
type Outputs struct {
	Checks          []answers.Checks
	Global, Project []string
}

// Templates are the templates in force for the Features of a namespace now: the texts before what agents send, and the rules and formats of
// final answers.
func Templates(ctx context.Context, reader client.Reader, namespace, systemNamespace string) (compose.Layers, Outputs, error) {
	var l compose.Layers
	var r Outputs
	global, err := inForce(ctx, reader, systemNamespace)
	if err != nil {
		return l, r, err
	}
	var project []v1alpha1.TemplateContent
	if namespace != systemNamespace {
		if project, err = inForce(ctx, reader, namespace); err != nil {
			return l, r, err
		}
	}
	l.Global, l.Project = inputs(global), inputs(project)
	for _, t := range append(global, project...) {
		if t.Direction != v1alpha1.DirectionOutput {
			continue
		}
		if checks, some := templates.Checks(t.AnswerChecks); some {
			r.Checks = append(r.Checks, checks)
		}
	}
	r.Global, r.Project = formats(global), formats(project)
	return l, r, nil
}

// inForce are the contents of a namespace's templates in their order.
func inForce(ctx context.Context, reader client.Reader, namespace string) ([]v1alpha1.TemplateContent, error) {
	var list v1alpha1.TemplateList
	if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Templates of %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Template) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Name, b.Name))
	})
	var contents []v1alpha1.TemplateContent
	for _, t := range list.Items {
		if in := t.Status.InForce; in != nil && t.DeletionTimestamp == nil {
			contents = append(contents, *in)
		}
	}
	return contents, nil
}

func inputs(contents []v1alpha1.TemplateContent) []string {
	return texts(contents, v1alpha1.DirectionInput)
}

// formats are put around answers; a text of nothing but white space is none.
func formats(contents []v1alpha1.TemplateContent) []string {
	return slices.DeleteFunc(texts(contents, v1alpha1.DirectionOutput), func(t string) bool { return strings.TrimSpace(t) == "" })
}

func texts(contents []v1alpha1.TemplateContent, d v1alpha1.Direction) []string {
	var list []string
	for _, t := range contents {
		if t.Direction == d {
			list = append(list, t.Text)
		}
	}
	return list
}

func order(t v1alpha1.Template) int32 {
	if t.Status.InForce == nil {
		return 0
	}
	return t.Status.InForce.Order
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/leaves"
)

// changes of a Template, by the leaf of its spec that differs between both.
var changes = map[string]struct{ before, after string }{
	"direction":                      {`{direction: Input, text: Be brief.}`, `{direction: Output, text: Be brief.}`},
	"order":                          {`{direction: Input, text: Be brief., order: -1}`, `{direction: Input, text: Be brief., order: 1}`},
	"text":                           {`{direction: Input, text: Be brief.}`, `{direction: Input, text: Be polite.}`},
	"configMapKeyRef.name":           {`{direction: Input, configMapKeyRef: {name: first, key: a}}`, `{direction: Input, configMapKeyRef: {name: second, key: a}}`},
	"configMapKeyRef.key":            {`{direction: Input, configMapKeyRef: {name: first, key: a}}`, `{direction: Input, configMapKeyRef: {name: first, key: b}}`},
	"requiredSections":               {`{direction: Output, requiredSections: [Summary]}`, `{direction: Output, requiredSections: [Summary, Risks]}`},
	"requiredPatterns":               {`{direction: Output, requiredPatterns: [done]}`, `{direction: Output, requiredPatterns: [tested]}`},
	"forbiddenPhrases":               {`{direction: Output, forbiddenPhrases: [never]}`, `{direction: Output, forbiddenPhrases: [done]}`},
	"jsonSchema":                     {`{direction: Output, jsonSchema: {type: object}}`, `{direction: Output, jsonSchema: {type: array}}`},
	"autoCorrect.trimSpace":          {`{direction: Output, autoCorrect: {trimSpace: false}}`, `{direction: Output, autoCorrect: {trimSpace: true}}`},
	"autoCorrect.addMissingSections": {`{direction: Output, requiredSections: [Risks], autoCorrect: {trimSpace: true}}`, `{direction: Output, requiredSections: [Risks], autoCorrect: {trimSpace: true, addMissingSections: true}}`},
	"autoCorrect.stripCodeFence":     {`{direction: Output, autoCorrect: {trimSpace: true}}`, `{direction: Output, autoCorrect: {trimSpace: true, stripCodeFence: true}}`},
}

// TestEveryFieldOfATemplateActs: each leaf of TemplateSpec changes what the gateway puts before prompts, or what agents get of an answer.
func TestEveryFieldOfATemplateActs(t *testing.T) {
	want := leaves.Of[v1alpha1.TemplateSpec]()
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(changes))); diff != "" {
		t.Errorf("changes of this test are not the leaves of TemplateSpec (-want +got): give each leaf two values that agents notice\n%s", diff)
	}
	manager := env.As(t, kubetest.Manager)
	for leaf, c := range changes {
		t.Run(leaf, func(t *testing.T) {
			project := env.Project(t)
			at := metav1.ObjectMeta{Namespace: project, Name: "subject"}
			fixed := metav1.ObjectMeta{Namespace: project, Name: "fixed"}
			for _, o := range []client.Object{
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "first"}, Data: map[string]string{"a": "first a", "b": "first b"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "second"}, Data: map[string]string{"a": "second a"}},
				&v1alpha1.Template{ObjectMeta: fixed, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To("Answer in English.")}},
				&v1alpha1.Template{ObjectMeta: at, Spec: spec(t, c.before)},
			} {
				if err := env.Client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			reconciled(t, manager, client.ObjectKey{Namespace: project, Name: "fixed"})
			subject := reconciled(t, manager, client.ObjectKey{Namespace: project, Name: "subject"})
			before := noticed(t, project)
			subject.Spec = spec(t, c.after)
			if err := env.Client.Update(t.Context(), subject); err != nil {
				t.Fatal(err)
			}
			reconciled(t, manager, client.ObjectKeyFromObject(subject))
			if noticed(t, project) == before {
				t.Errorf("spec.%s changes nothing: what the gateway does is\n%s", leaf, before)
			}
		})
	}
}

func spec(t *testing.T, text string) v1alpha1.TemplateSpec {
	t.Helper()
	var s v1alpha1.TemplateSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// noticed is what agents of a project notice of its templates: the texts before their prompts, and what they get of three answers of a model.
func noticed(t *testing.T, project string) string {
	t.Helper()
	layers, outputs, err := identity.Templates(t.Context(), env.Client, project, kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	rules := answers.Rules{Checks: outputs.Checks, Formats: outputs.Project}
	text := fmt.Sprintf("%q\n", layers.Project)
	for _, answer := range []string{"\n# Summary\n\nAll is done.\n", "```json\n{\"done\": true}\n```\n", `{"done": true}`} {
		text += fmt.Sprintf("%+v\n", rules.Judge(answer, false))
	}
	return text
}

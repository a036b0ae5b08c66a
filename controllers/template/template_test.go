// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// reconciled creates or reads a Template after the controller saw it.
func reconciled(t *testing.T, manager client.Client, key client.ObjectKey) *v1alpha1.Template {
	t.Helper()
	r := reconcile.AsReconciler(manager, &Reconciler{Client: manager, Live: manager, Clock: clocktesting.NewFakePassiveClock(time.Now()), SystemNamespace: kubetest.SystemNamespace})
	version := ""
	var tmpl v1alpha1.Template
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Get(t.Context(), key, &tmpl); err != nil {
			t.Fatal(err)
		}
		if version != "" && version != tmpl.ResourceVersion {
			t.Error("a reconcile without news writes")
		}
		version = tmpl.ResourceVersion
	}
	return &tmpl
}

func TestStatus(t *testing.T) {
	project, manager := env.Project(t), env.As(t, kubetest.Manager)
	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "texts"}, Data: map[string]string{"intro": "Be brief.", "blank": " \n"}}
	if err := env.Client.Create(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	from := func(name, key string) v1alpha1.TemplateSpec {
		return v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: name, Key: key}}
	}
	tests := map[string]struct {
		spec       v1alpha1.TemplateSpec
		wantReason string
		wantInMsg  string
	}{
		"text":          {spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To("Be brief.")}},
		"config-map":    {spec: from("texts", "intro")},
		"no-config-map": {spec: from("nothing", "intro"), wantReason: v1alpha1.ReasonConfigMapNotFound, wantInMsg: "ConfigMap nothing"},
		"no-key":        {spec: from("texts", "nothing"), wantReason: v1alpha1.ReasonConfigMapNotFound, wantInMsg: `"nothing"`},
		"blank":         {spec: from("texts", "blank"), wantReason: v1alpha1.ReasonInvalid, wantInMsg: "empty"},
		"output-once":   {spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, Text: ptr.To("<{{OUTPUT}}>")}},
		"output-twice":  {spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, Text: ptr.To("{{OUTPUT}}{{OUTPUT}}")}, wantReason: v1alpha1.ReasonInvalid, wantInMsg: "2 times"},
		"schema":        {spec: withSchema(t, `{"type": "object"}`)},
		"recursion":     {spec: withSchema(t, `{"items": {"$ref": "#/items"}}`), wantReason: v1alpha1.ReasonInvalid, wantInMsg: "leads back to itself"},
		"checks":        {spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, AnswerChecks: v1alpha1.AnswerChecks{RequiredPatterns: []string{"(?m)^Risk"}, ForbiddenPhrases: []string{"TODO"}}}},
		"no-pattern":    {spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, AnswerChecks: v1alpha1.AnswerChecks{RequiredPatterns: []string{"("}}}, wantReason: v1alpha1.ReasonInvalid, wantInMsg: `the pattern "(" is invalid`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, Spec: tc.spec}
			if err := env.Client.Create(t.Context(), tmpl); err != nil {
				t.Fatal(err)
			}
			got := reconciled(t, manager, client.ObjectKeyFromObject(tmpl))
			for _, condition := range []string{v1alpha1.ConditionValid, v1alpha1.ConditionReady} {
				c := meta.FindStatusCondition(got.Status.Conditions, condition)
				if c == nil || (c.Status == metav1.ConditionTrue) != (tc.wantReason == "") || tc.wantReason != "" && c.Reason != tc.wantReason || !strings.Contains(c.Message, tc.wantInMsg) {
					t.Errorf("%s is %+v, want reason %q and a message with %q", condition, c, tc.wantReason, tc.wantInMsg)
				}
			}
			if (got.Status.Hash != "") != (tc.wantReason == "") {
				t.Errorf("hash is %q", got.Status.Hash)
			}
		})
	}
}

func TestHashFollowsTheText(t *testing.T) {
	project, manager := env.Project(t), env.As(t, kubetest.Manager)
	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "texts"}, Data: map[string]string{"intro": "Be brief."}}
	referring := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "referring"}, Spec: v1alpha1.TemplateSpec{
		Direction: v1alpha1.DirectionInput, ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: "texts", Key: "intro"},
	}}
	inline := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "inline"}, Spec: v1alpha1.TemplateSpec{
		Direction: v1alpha1.DirectionInput, Text: ptr.To("Be brief."),
	}}
	for _, o := range []client.Object{texts, referring, inline} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first := reconciled(t, manager, client.ObjectKeyFromObject(referring)).Status.Hash
	if same := reconciled(t, manager, client.ObjectKeyFromObject(inline)).Status.Hash; same != first {
		t.Error("the same text has another hash where it is kept elsewhere")
	}
	texts.Data["intro"] = "Be very brief."
	if err := env.Client.Update(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	if changed := reconciled(t, manager, client.ObjectKeyFromObject(referring)).Status.Hash; changed == first {
		t.Error("another text has the same hash")
	}
}

// withSchema is an Output template with a schema, as it is stored.
func withSchema(t *testing.T, raw string) v1alpha1.TemplateSpec {
	t.Helper()
	var spec v1alpha1.TemplateSpec
	if err := json.Unmarshal([]byte(`{"direction": "Output", "jsonSchema": `+raw+`}`), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestSchemaThatIsNoObject(t *testing.T) {
	// The CRD refuses it too; an object that was stored before must not be taken for valid.
	for raw, want := range map[string]string{`"object"`: "it is not an object", `[]`: "it is not an object", `{}`: ""} {
		if got := problemOf(withSchema(t, raw), ""); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("schema %s: %q, want %q", raw, got, want)
		}
	}
	broken := withSchema(t, `{}`)
	broken.JSONSchema.Raw = []byte("{")
	if got := problemOf(broken, ""); !strings.Contains(got, "unexpected end of JSON") {
		t.Errorf("a schema that is not JSON: %q", got)
	}
}

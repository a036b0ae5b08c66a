// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestAProjectBringsItsKey: the gateway reads the Secret that the policy names only where the project lets it, no other one, and says
// what to do where it cannot.
func TestAProjectBringsItsKey(t *testing.T) {
	// The answer has the key that the backend was asked with.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","model":"large","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, "key "+r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := fmt.Sprintf(`backends:
- {name: main, dialects: [anthropic], baseURL: %q, ca: %s, key: shared, models: [{name: large}]}
- {name: plain, dialects: [anthropic], baseURL: "http://127.0.0.1:1", models: [{name: large}]}
`, server.URL, strconv.Quote(string(ca)))
	configure(t, config)
	keep(t, map[string]string{"shared": "of the gateway"})
	g := start(t)
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(g.ready, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	until := func(text string) {
		t.Helper()
		gomega.NewWithT(t).Eventually(func() string {
			_, _, _, got := g.ask(t, login.Token, "")
			return got
		}, 60*time.Second, 50*time.Millisecond).Should(gomega.ContainSubstring(text))
	}
	until("key of the gateway")

	models := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "models"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "primary", Backend: "main", Model: "large", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "model-key", Key: "token"}}}},
	}}
	create := func(o client.Object) {
		t.Helper()
		o.SetNamespace(project)
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(models)
	until("the gateway may not read the Secret " + project + "/model-key: bind a Role that allows to get it to the service account tidewaiter-system/tidewaiter-gateway")
	create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "model-key"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"model-key"}, Verbs: []string{"get"}}}})
	create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "model-key"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "model-key"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: kubetest.SystemNamespace, Name: protocol.GatewayAccount}},
	})
	until("the Secret " + project + "/model-key of the policy's models does not exist")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "model-key"}, StringData: map[string]string{"other": "x"}}
	create(secret)
	until(`has no key \"token\"`)
	secret.StringData = map[string]string{"token": "of the project\n", "long": strings.Repeat("x", maxKey+1)}
	if err := env.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	until("key of the project")
	change := func(ref v1alpha1.ModelRef) {
		t.Helper()
		models.Spec.Defaults.Models[0] = ref
		if err := env.Client.Update(t.Context(), models); err != nil {
			t.Fatal(err)
		}
	}
	of := func(secret, key string) *v1alpha1.SecretKeyRef { return &v1alpha1.SecretKeyRef{Name: secret, Key: key} }
	change(v1alpha1.ModelRef{Role: "primary", Backend: "main", Model: "large", SecretKeyRef: of("model-key", "long")})
	until("and the limit is")
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "another"}, StringData: map[string]string{"token": "of nobody"}})
	change(v1alpha1.ModelRef{Role: "primary", Backend: "main", Model: "large", SecretKeyRef: of("another", "token")})
	until("the gateway may not read the Secret " + project + "/another")
	change(v1alpha1.ModelRef{Role: "primary", Backend: "plain", Model: "large", SecretKeyRef: of("model-key", "token")})
	until("the gateway sends no key there")
}

// counting reads of the API server.
type counting struct {
	client.Reader

	reads int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, obj, opts...)
}

// TestAKeyThatCannotBeRead is asked for once and not with every call of an agent; a call that is given up says nothing of it.
func TestAKeyThatCannotBeRead(t *testing.T) {
	reader := &counting{Reader: env.Client}
	keys := newProjectKeys(reader, types.NamespacedName{})
	of := projectKey{env.Project(t), policy.SecretKey{Secret: "missing", Key: "token"}}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keys.read(given, of); err == nil || strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a call that was given up: %v", err)
	}
	for range 100 {
		if _, err := keys.read(t.Context(), of); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Fatal(err)
		}
	}
	// The time it is remembered may pass in between on a slow machine, not a hundred times.
	if reader.reads > 50 {
		t.Errorf("%d reads", reader.reads)
	}
}

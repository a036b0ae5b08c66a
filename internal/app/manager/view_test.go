// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/view"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

// raw is `kubectl get --raw` of somebody.
func raw(t *testing.T, config *rest.Config, path string) (string, error) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := clients.RESTClient().Get().RequestURI(path).Stream(t.Context())
	if err != nil {
		return "", err
	}
	defer stream.Close()
	body, err := io.ReadAll(stream)
	return string(body), err
}

// TestAggregatedAPI goes through a real kube-apiserver: who may see what, what discovery says, and what becomes of
// discovery when the last replica ends.
func TestAggregatedAPI(t *testing.T) {
	p := &replica{name: "manager-view", intake: addresses.Free(), health: addresses.Free(), metrics: "0"}
	_, port, _ := net.SplitHostPort(addresses.Free())
	address := net.JoinHostPort("127.0.0.1", port) // the API server asks at localhost
	p.Program = program.Start(t,
		[]string{"KUBECONFIG=" + env.Kubeconfig(t, "tidewaiter-manager"), "POD_NAMESPACE=" + kubetest.SystemNamespace, "POD_NAME=" + p.name},
		"--image=tidewaiter:test", "--intake-bind-address="+p.intake, "--health-probe-bind-address="+p.health, "--metrics-bind-address=0", "--view-bind-address="+address)
	until(t, "the manager is ready", p.ready)
	env.Register(t, address)
	const version = "/apis/" + view.Group + "/" + view.Version
	until(t, "the API is registered", func() bool {
		_, err := raw(t, env.Config, version)
		return err == nil
	})

	project := env.Project(t)
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "add-login"}, Spec: v1alpha1.FeatureSpec{
		Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Suspend: true,
		Agent: v1alpha1.Agent{Runtime: "command", Image: "agent", Command: []string{"true"}},
	}}
	if err := env.Client.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	path := version + "/namespaces/" + project + "/features/" + f.Name + "/diff"
	env.Person(t, project, "viewer", "tidewaiter-viewer")
	viewer, stranger := env.ConfigAs("viewer@"+project), env.ConfigAs("stranger@"+project)
	until(t, "a Feature that has not started has nothing to show", func() bool {
		_, err := raw(t, viewer, path)
		return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "has not started")
	})
	if _, err := raw(t, viewer, strings.Replace(path, f.Name, "other", 1)); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `features.tidewaiter.dev "other" not found`) {
		t.Errorf("a Feature that is not there: %v", err)
	}
	if _, err := raw(t, stranger, path); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger is told: %v", err)
	}
	if _, err := raw(t, viewer, strings.Replace(path, project, "default", 1)); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer of another project is told: %v", err)
	}
	if _, err := raw(t, viewer, path+"?to=x"); !apierrors.IsBadRequest(err) {
		t.Errorf("a bad parameter: %v", err)
	}
	wantNoWrites(t, viewer, path)
	wantPrompt(t, viewer, version, project)
	wantOnlyTheFrontProxy(t, address, path)
	wantDiscovery(t)

	p.End(t)
	if strings.Contains(p.Log(), "forbidden") {
		t.Errorf("the manager lacks a right, see its log")
	}
	wantIncompleteDiscovery(t)
}

// wantPrompt: a viewer sees what a task would be told, composed as the gateway does, and no text of a ConfigMap, which the
// viewer may not be allowed to read.
func wantPrompt(t *testing.T, viewer *rest.Config, version, project string) {
	t.Helper()
	path := version + "/namespaces/" + project + "/features/"
	spec := func(change func(*v1alpha1.FeatureSpec)) v1alpha1.FeatureSpec {
		s := v1alpha1.FeatureSpec{
			Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Suspend: true,
			Agent: v1alpha1.Agent{Runtime: "command", Image: "agent", Command: []string{"true"}},
		}
		change(&s)
		return s
	}
	input := func(namespace, name, text string) *v1alpha1.Template {
		return &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: &text}}
	}
	for _, o := range []client.Object{
		&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "planned"}, Spec: spec(func(s *v1alpha1.FeatureSpec) {
			s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, Milestones: []v1alpha1.Milestone{{Name: "login", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "The form."}, {Name: "save", Instructions: "The store."}}}}}
		})},
		&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "from"}, Spec: spec(func(s *v1alpha1.FeatureSpec) {
			s.Prompt, s.PromptFrom = "", &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}}
		})},
		&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "loud"}, Spec: spec(func(s *v1alpha1.FeatureSpec) { s.Prompt = "Clear\x1b[2J the page.\u202e" })},
		&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "strict"}, Spec: spec(func(s *v1alpha1.FeatureSpec) {
			s.Agent, s.Execution = v1alpha1.Agent{Runtime: "codex", Image: "agent"}, &v1alpha1.Execution{Mode: v1alpha1.ModeDeterministic}
		})},
		&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "directed"}, Spec: spec(func(s *v1alpha1.FeatureSpec) {
			s.Agent, s.Directives = v1alpha1.Agent{Runtime: "codex", Image: "agent"}, []v1alpha1.Directive{{ID: "use-form", Description: "Use a form."}}
		})},
		input(kubetest.SystemNamespace, "kind", "Be kind."), input(project, "tabs", "Use tabs."),
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), o)) })
	}
	const composed = "<!-- GLOBAL_TEMPLATE_START -->\nBe kind.\n<!-- GLOBAL_TEMPLATE_END -->\n<!-- PROJECT_TEMPLATE_START -->\nUse tabs.\n<!-- PROJECT_TEMPLATE_END -->\n<!-- USER_PROMPT_START -->\n"
	const context = "## PROJECT CONTEXT\n\n- Repository: https://git.example.com/shop.git, revision main.\n- The supervisor delivers valid work to the branch tidewaiter/planned." +
		"\n\n## CURRENT MILESTONE\n\nMilestone login, 1 of 1. Your task is save. The tasks of the milestone:\n- form: to do\n- save: your task"
	const where = "\n\nYou may write within these bounds. The supervisor does not deliver what breaks them, and may put it back:\n"
	until(t, "the templates are in force", func() bool {
		text, err := raw(t, viewer, path+"planned/prompt")
		return err == nil && strings.HasPrefix(text, composed+"## PROJECT CONTEXT\n") && strings.Contains(text, "\n\nAdd a login page.\n\nThe form."+where+"- Write only to these areas: web/**.\n")
	})
	want := func(target, expected string) {
		t.Helper()
		text, err := raw(t, viewer, path+target)
		before, bounds, told := strings.Cut(text, where)
		if err != nil || before != expected || !told || !strings.Contains(bounds, "- Limits: a changed file has at most ") {
			t.Errorf("%s: %q, %v; want %q and where it may write", target, text, err, expected)
		}
	}
	want("planned/prompt?task=login/save", composed+context+"\n\nAdd a login page.\n\nThe store.")
	if text, err := raw(t, viewer, path+"directed/prompt"); err != nil || !strings.HasPrefix(text, composed+"## PROJECT CONTEXT\n") || strings.Count(text, "\n## ") != 3 ||
		!strings.Contains(text, "] (Normal, when the current step is done): Use a form.\n\n## INSTRUCTIONS\n\nAdd a login page.\n") {
		t.Errorf("with a directive: %q, %v", text, err)
	}
	if text, err := raw(t, viewer, path+"strict/prompt"); err != nil || !strings.HasPrefix(text, composed+"Add a login page."+where) || !strings.Contains(text, "\n\nThe workspace is read-only: ") {
		t.Errorf("in Deterministic mode: %q, %v", text, err)
	}
	want("loud/prompt", composed+`Clear\u001b[2J the page.\u202e`)
	want("from/prompt", composed+"(the text of key \"login\" of ConfigMap prompts)")
	for target, message := range map[string]string{
		"planned/prompt?task=none": `no task "none": it has login/form, login/save`, "planned/prompt?model=x": "use task", "other/prompt": `"other" not found`,
	} {
		if text, err := raw(t, viewer, path+target); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %q, %v; want an error with %q", target, text, err, message)
		}
	}
	// No gateway runs here: that the ledger cannot be read is said, and no right is missing.
	for target, message := range map[string]string{
		"planned/turns": "ledger at the moment", "planned/turns?after=x": "is not a number of 0 or more", "planned/turns?all=1": "use after, limit, call, output",
		"planned/events": "ledger at the moment", "planned/events?turn=1": "use after, limit, output",
		"other/turns": `"other" not found`,
	} {
		if text, err := raw(t, viewer, path+target); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %q, %v; want an error with %q", target, text, err, message)
		}
	}
	off := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "off"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{Enabled: new(bool)}},
	}}
	if err := env.Client.Create(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	want("from/prompt", "(supervision.enabled is false: the gateway puts no template before this)\n(the text of key \"login\" of ConfigMap prompts)")
	for _, o := range []client.Object{off, input(kubetest.SystemNamespace, "kind", ""), input(project, "tabs", "")} {
		if err := env.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want("from/prompt", "(no Input template applies)\n(the text of key \"login\" of ConfigMap prompts)")
}

// wantNoWrites: a person who may see the record may do nothing else.
func wantNoWrites(t *testing.T, who *rest.Config, path string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(who)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := clients.RESTClient().Verb(verb).RequestURI(path).Body([]byte("{}")).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
			t.Errorf("%s by a viewer: %v", verb, err)
		}
		if err := admin.RESTClient().Verb(verb).RequestURI(path).Body([]byte("{}")).Do(t.Context()).Error(); !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s by the admin: %v", verb, err)
		}
	}
}

// wantOnlyTheFrontProxy: a client without the front-proxy certificate is refused, whatever its headers say.
func wantOnlyTheFrontProxy(t *testing.T, address, path string) {
	t.Helper()
	bundle := &corev1.ConfigMap{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: protocol.CAConfigMap}, bundle); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(bundle.Data[protocol.CAKey]))
	admin, err := tls.X509KeyPair(env.Config.CertData, env.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "the admin's certificate": {admin}} {
		direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: pool, ServerName: protocol.ViewService + "." + kubetest.SystemNamespace + ".svc", Certificates: certificates, MinVersion: tls.VersionTLS12,
		}}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Remote-User", "admin")
		request.Header.Set("X-Remote-Group", "system:masters")
		response, err := direct.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		var status metav1.Status
		if err != nil || response.StatusCode != http.StatusUnauthorized || json.Unmarshal(text, &status) != nil || status.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s %v", name, response.StatusCode, text, err)
		}
	}
}

// wantDiscovery: kubectl finds the group in each form of discovery, and nothing in it that could be listed or deleted.
func wantDiscovery(t *testing.T) {
	t.Helper()
	clients, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	var lists []*metav1.APIResourceList
	until(t, "discovery has the group", func() bool {
		_, lists, err = clients.ServerGroupsAndResources()
		return err == nil && slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == view.Group+"/"+view.Version })
	})
	for _, list := range lists {
		for _, r := range list.APIResources {
			if list.GroupVersion == view.Group+"/"+view.Version && (!strings.Contains(r.Name, "/") || !slices.Equal(r.Verbs, metav1.Verbs{"get"})) {
				t.Errorf("discovery offers %s with %v", r.Name, r.Verbs)
			}
		}
	}
	// This is what the deletion of a namespace asks.
	lists, err = clients.ServerPreferredNamespacedResources()
	if err != nil {
		t.Errorf("preferred resources: %v", err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete"}}, lists) {
		if strings.HasPrefix(list.GroupVersion, view.Group) {
			t.Errorf("the deletion of a namespace looks through %+v", list)
		}
	}
}

// wantIncompleteDiscovery shows what the loss of every replica does: all other groups are found, but not without an error
// for ours, because of which the deletion of a namespace does not end. Without the APIService it is gone.
func wantIncompleteDiscovery(t *testing.T) {
	t.Helper()
	clients, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "discovery is incomplete", func() bool {
		lists, err := clients.ServerPreferredNamespacedResources()
		failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
		if !ok || len(lists) == 0 {
			return false
		}
		for group := range failed {
			if group.Group != view.Group {
				t.Errorf("group %s fails as well", group)
			}
		}
		return true
	})
	registration := &unstructured.Unstructured{}
	registration.SetAPIVersion("apiregistration.k8s.io/v1")
	registration.SetKind("APIService")
	registration.SetName(view.APIService)
	if err := env.Client.Delete(t.Context(), registration); err != nil {
		t.Fatal(err)
	}
	until(t, "discovery is complete without the APIService", func() bool {
		_, err := clients.ServerPreferredNamespacedResources()
		return err == nil
	})
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Names of the scripted provider and of its entry in the gateway's configuration.
const (
	ProviderService = "model-provider"
	providerPort    = 8443
	// BackendsConfigMap and KeysSecret configure the gateway.
	BackendsConfigMap = "tidewaiter-backends"
	KeysSecret        = "tidewaiter-model-keys"
	// Model is the provider's only model.
	Model = "scripted-1"
)

// Provider is a model provider in the cluster that plays the scripts of prompts.
type Provider struct {
	cluster   *Cluster
	namespace string
	// Backend is its name in the gateway's configuration; different in each run, so that a test sees when it is in use.
	Backend string
	// Key that it takes; nobody but the gateway has it.
	Key string
	// URL of the provider, and the certificate of its CA in PEM.
	URL, CA string
}

// Asked is a request that the provider got.
type Asked struct {
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
	// From is the address of the gateway's pod, and Status that of the answer; 0 while it is in progress.
	From   string `json:"from"`
	Status int    `json:"status"`
}

// Dialects that the provider speaks.
var Dialects = []string{"anthropic", "openai-responses", "openai-chat", "gemini"}

// Speaking is the name of a backend that speaks only one dialect.
func (p *Provider) Speaking(dialect string) string { return p.Backend + "-" + dialect }

// StartProvider runs a provider in a project and makes it the gateway's backend: one backend with all of its dialects, and one for each dialect.
func (c *Cluster) StartProvider(ctx context.Context, namespace string) (*Provider, error) {
	p, err := c.RunProvider(ctx, namespace)
	if err != nil {
		return nil, err
	}
	backend := func(name string, dialects ...string) any {
		return map[string]any{
			"name": name, "dialects": dialects, "baseURL": p.URL, "key": p.Backend, "ca": p.CA,
			"models": []any{map[string]any{"name": Model, "contextWindow": 200_000, "prices": map[string]any{"input": "3", "output": "15"}}},
		}
	}
	list := []any{backend(p.Backend, Dialects...)}
	for _, d := range Dialects {
		list = append(list, backend(p.Speaking(d), d))
	}
	backends, err := yaml.Marshal(map[string]any{"backends": list})
	if err != nil {
		return nil, fmt.Errorf("write the configuration of backends: %w", err)
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: BackendsConfigMap}, Data: map[string]string{"backends.yaml": string(backends)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: KeysSecret}, Data: map[string][]byte{p.Backend: []byte(p.Key)}},
	} {
		if err := c.replace(ctx, o); err != nil {
			return nil, err
		}
	}
	return p, Until(ctx, "the gateway to know the provider", p.Configured())
}

// RunProvider runs a provider in a project. The gateway does not know it yet.
func (c *Cluster) RunProvider(ctx context.Context, namespace string) (*Provider, error) {
	if err := c.Project(ctx, namespace); err != nil {
		return nil, err
	}
	host := ProviderService + "." + namespace + ".svc"
	cert, key, err := selfSigned(host)
	if err != nil {
		return nil, fmt.Errorf("make the provider's certificate: %w", err)
	}
	p := &Provider{
		cluster: c, namespace: namespace, Backend: "scripted-" + strings.ToLower(rand.Text()[:8]), Key: rand.Text(), URL: "https://" + host, CA: string(cert),
	}
	for _, o := range p.objects(cert, key) {
		if err := c.replace(ctx, o); err != nil {
			return nil, err
		}
	}
	return p, Until(ctx, "the provider to answer", p.ready)
}

// Add makes the provider a backend under one more name, as an administrator does.
func (p *Provider) Add(ctx context.Context, name string) error {
	return p.change(ctx, func(list []map[string]any) []map[string]any {
		added := maps.Clone(list[0])
		added["name"] = name
		return append(list, added)
	})
}

// Remove such a backend.
func (p *Provider) Remove(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.change(ctx, func(list []map[string]any) []map[string]any {
		return slices.DeleteFunc(list, func(b map[string]any) bool { return b["name"] == name })
	})
}

// change the list of backends, whatever others change meanwhile.
func (p *Provider) change(ctx context.Context, change func([]map[string]any) []map[string]any) error {
	return Until(ctx, "the change of backends", func(ctx context.Context) (bool, error) {
		var config corev1.ConfigMap
		if err := p.cluster.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: BackendsConfigMap}, &config); err != nil {
			return false, err
		}
		var backends struct {
			Backends []map[string]any `json:"backends"`
		}
		if err := yaml.Unmarshal([]byte(config.Data["backends.yaml"]), &backends); err != nil {
			return false, err
		}
		backends.Backends = change(backends.Backends)
		text, err := yaml.Marshal(backends)
		if err != nil {
			return false, err
		}
		config.Data["backends.yaml"] = string(text)
		err = p.cluster.Update(ctx, &config)
		return err == nil, err
	})
}

// replace makes an object in the place of an earlier one.
func (c *Cluster) replace(ctx context.Context, o client.Object) error {
	if err := c.Delete(ctx, o, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the old %T %s: %w", o, o.GetName(), err)
	}
	o.SetResourceVersion("")
	return Until(ctx, fmt.Sprintf("the old %T %s to go", o, o.GetName()), func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, o)
		return err == nil, err
	})
}

// Configured says whether every gateway has the provider as a backend, and its key.
func (p *Provider) Configured() func(context.Context) (bool, error) {
	c, token := p.cluster, ""
	return func(ctx context.Context) (bool, error) {
		if token == "" {
			var err error
			if token, err = c.Scraper(ctx, p.namespace); err != nil {
				return false, err
			}
		}
		var pods corev1.PodList
		err := c.List(ctx, &pods, client.InNamespace(SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "gateway"})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			_, metrics, err := c.Metrics(ctx, pod.Name, GatewayCertificate, token)
			if err != nil || !strings.Contains(metrics, fmt.Sprintf("tidewaiter_backend_ready{backend=%q} 1\n", p.Backend)) {
				return false, err
			}
		}
		return len(pods.Items) > 0, nil
	}
}

// get asks a pod for a page over plain HTTP.
func (c *Cluster) get(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
	local, stop, err := c.Forward(namespace, pod, port)
	if err != nil {
		return nil, err
	}
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d%s", local, path), nil)
	if err != nil {
		return nil, fmt.Errorf("ask pod %s: %w", pod, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask pod %s: %w", pod, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("ask pod %s: %w", pod, err)
	}
	return text, nil
}

// StopProvider takes the gateway's configuration back and removes the provider.
func (c *Cluster) StopProvider(ctx context.Context, namespace string) error {
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: BackendsConfigMap}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: KeysSecret}},
	} {
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the gateway's configuration: %w", err)
		}
	}
	return c.DeleteProject(ctx, namespace)
}

func (p *Provider) pod(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := p.cluster.List(ctx, &pods, client.InNamespace(p.namespace), client.MatchingLabels{"app": ProviderService}); err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		for _, cond := range pod.Status.Conditions {
			if pod.DeletionTimestamp == nil && cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				return pod.Name, nil
			}
		}
	}
	return "", apierrors.NewNotFound(corev1.Resource("pods"), ProviderService)
}

func (p *Provider) ready(ctx context.Context) (bool, error) {
	_, err := p.pod(ctx)
	return err == nil, client.IgnoreNotFound(err)
}

// Asked are the last requests that the provider got, of those whose bodies have a text.
func (p *Provider) Asked(ctx context.Context, about string) ([]Asked, error) {
	pod, err := p.pod(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the provider: %w", err)
	}
	text, err := p.cluster.get(ctx, p.namespace, pod, providerPort+1, "/?"+url.Values{"about": {about}}.Encode())
	if err != nil {
		return nil, err
	}
	var asked []Asked
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, fmt.Errorf("what the provider was asked: %w", err)
	}
	return asked, nil
}

func (p *Provider) objects(cert, key []byte) []client.Object {
	meta := metav1.ObjectMeta{Name: ProviderService, Namespace: p.namespace}
	labels := map[string]string{"app": ProviderService}
	return []client.Object{
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"tls.crt": cert, "tls.key": key, "key": []byte(p.Key)}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt(providerPort)}}}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.podSpec()},
		}},
	}
}

func (p *Provider) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](0),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), FSGroup: ptr.To[int64](1000),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: ProviderService, Image: p.cluster.Image,
			Command: []string{
				"/usr/local/bin/modelprovider", "--listen", fmt.Sprintf(":%d", providerPort), "--recorded", fmt.Sprintf("localhost:%d", providerPort+1),
				"--cert", "/tls/tls.crt", "--key", "/tls/tls.key", "--api-key", "$(KEY)",
			},
			Env: []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ProviderService}, Key: "key"},
			}}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(providerPort)}},
				PeriodSeconds: 1,
			},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			VolumeMounts:    []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}},
		}},
		Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ProviderService}}}},
	}
}

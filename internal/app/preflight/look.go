// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/clusterfacts"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
)

// removeTime bounds the removal of what the preflight made.
const removeTime = time.Minute

// Run looks at the cluster, and returns what its checks find. It says on progress what it does. The error says why it could not begin, or what it could
// not remove.
func Run(ctx context.Context, o Options, progress io.Writer) (findings []preflight.Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	l, err := connect(o)
	if err != nil {
		return nil, err
	}
	l.progress = progress
	f := &preflight.Facts{Unread: map[string]string{}}
	if err := l.version(ctx, f); err != nil {
		return nil, fmt.Errorf("ask the API server: %w", err)
	}
	l.read(ctx, f)
	defer func() {
		// On an interrupt and after the time is over, too.
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		err = errors.Join(err, l.remove(removing))
	}()
	l.probe(ctx, f)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, errors.New("interrupted")
	}
	return preflight.Run(f, preflight.InPreflight), nil
}

// look is a look at a cluster.
type look struct {
	options Options
	client  client.Client
	http    *http.Client
	// address of the API server.
	address  *url.URL
	progress io.Writer
	// ahead is how far the API server's clock is ahead of this machine's.
	ahead time.Duration
	// installed is the pod template of the manager; nil if Tidewaiter is not installed.
	installed *corev1.PodTemplateSpec
	// namespace that the pods are in; empty before it is made.
	namespace string
	// pull are the Secrets of the namespace that its pods pull the image with.
	pull []corev1.LocalObjectReference
	// began is when the pods were made.
	began time.Time
}

func connect(o Options) (*look, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make the scheme: %w", err)
	}
	l := &look{options: o}
	if l.address, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	if l.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	if l.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return l, nil
}

// maxVersion bounds the answer about the version, in bytes.
const maxVersion = 64 << 10

// version asks the API server for its version, and with it for its time.
func (l *look) version(ctx context.Context, f *preflight.Facts) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address.JoinPath("version").String(), nil)
	if err != nil {
		return err
	}
	asked := time.Now()
	answer, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	took := time.Since(asked)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with status %d", answer.StatusCode)
	}
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxVersion)).Decode(&info); err != nil {
		return fmt.Errorf("read its version: %w", err)
	}
	f.Version = info.GitVersion
	told, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		f.Unread[preflight.Clocks] = "the API server does not tell its time"
		return nil
	}
	// The header has whole seconds.
	l.ahead = told.Add(time.Second / 2).Sub(asked.Add(took / 2))
	f.Clock.Here = l.ahead
	return nil
}

// read gathers what needs no pods.
func (l *look) read(ctx context.Context, f *preflight.Facts) {
	note := func(err error, ids ...string) {
		for _, id := range ids {
			if err != nil {
				f.Unread[id] = err.Error()
			}
		}
	}
	var err error
	f.Classes, err = clusterfacts.Classes(ctx, l.client)
	note(err, preflight.DefaultClass)
	f.Nodes, err = clusterfacts.Room(ctx, l.client)
	note(err, preflight.Room, preflight.UserNamespace)
	var manager appsv1.Deployment
	err = l.client.Get(ctx, client.ObjectKey{Namespace: l.options.SystemNamespace, Name: "tidewaiter-manager"}, &manager)
	if f.Installed = err == nil; f.Installed {
		l.installed = &manager.Spec.Template
		if containers := l.installed.Spec.Containers; l.options.Image == "" && len(containers) > 0 {
			l.options.Image = containers[0].Image
		}
	}
	l.options.Image = cmp.Or(l.options.Image, defaultImage())
}

// gitProbe is what a client of Git asks first.
const gitProbe = "/info/refs?service=git-upload-pack"

// wanted are the servers to reach: Git servers first, then providers.
func (l *look) wanted(ctx context.Context) (git, providers []probe.Wanted, err error) {
	for _, u := range l.options.Git {
		git = append(git, probe.Wanted{URL: strings.TrimRight(u, "/") + gitProbe})
	}
	for _, u := range l.options.Providers {
		providers = append(providers, probe.Wanted{URL: u})
	}
	if len(providers) > 0 {
		return git, providers, nil
	}
	var config corev1.ConfigMap
	err = l.client.Get(ctx, client.ObjectKey{Namespace: l.options.SystemNamespace, Name: protocol.BackendsConfigMap}, &config)
	if apierrors.IsNotFound(err) {
		return git, nil, nil
	}
	if err != nil {
		return git, nil, fmt.Errorf("read the gateway's configuration: %w", err)
	}
	backends, err := modelbackends.Read(config.Data[protocol.BackendsKey])
	if err != nil {
		return git, nil, fmt.Errorf("read the gateway's configuration: %w", err)
	}
	known := map[probe.Wanted]bool{}
	for _, b := range backends.Backends {
		w := probe.Wanted{URL: b.BaseURL, CA: b.CA, Proxy: b.Proxy}
		if b.ProxyKey != "" {
			// The preflight has no password for the proxy: that it answers is what can be known.
			w = probe.Wanted{URL: b.Proxy, CA: b.CA}
		}
		if !known[w] && len(git)+len(providers) < maxTargets {
			providers = append(providers, w)
		}
		known[w] = true
	}
	return git, providers, nil
}

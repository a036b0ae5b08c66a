// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is a real cluster as the demo and the end-to-end tests use it: projects, a Git server and Features.
package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// SystemNamespace is where Tidewaiter itself runs.
const SystemNamespace = "tidewaiter-system"

// LabelTest marks every namespace that this package makes, so that they can be found and removed.
const LabelTest = "tidewaiter.dev/test-project"

// Cluster is a connection to a real cluster on which Tidewaiter is installed.
type Cluster struct {
	Config *rest.Config
	client.Client
	Clientset kubernetes.Interface
	// Image of agents and of the Git server.
	Image string
}

// Connect opens a connection with the kubeconfig file.
func Connect(kubeconfig, image string) (*Cluster, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// A test asks often and waits for answers: client-side throttling would only blur what it sees.
	cfg.QPS, cfg.Burst = 200, 400
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Cluster{Config: cfg, Client: c, Clientset: cs, Image: image}, nil
}

// Project makes a namespace in which Pod Security "restricted" is enforced.
func (c *Cluster) Project(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		LabelTest:                            "true",
		"pod-security.kubernetes.io/enforce": "restricted",
		"pod-security.kubernetes.io/warn":    "restricted",
	}}}
	if err := c.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create project %s: %w", name, err)
	}
	return nil
}

// DeleteProject removes a namespace made by Project and waits until it is gone.
func (c *Cluster) DeleteProject(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	if ns.Labels[LabelTest] != "true" {
		return fmt.Errorf("namespace %s was not made here: it is left alone", name)
	}
	if err := c.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete project %s: %w", name, err)
	}
	return Until(ctx, "namespace "+name+" to go", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: name}, ns)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// Until calls done every 500 ms until it returns true or ctx ends. An error is tried again.
func Until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	return Every(ctx, 500*time.Millisecond, what, done)
}

// Every is Until with a pause of the caller's, for what costs more than a request. To start a command in a container costs the node a tenth of a second of a
// processor.
func Every(ctx context.Context, pause time.Duration, what string, done func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("wait for %s: %w (last: %w)", what, context.Cause(ctx), err)
			}
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// Exec runs a command in a container and returns what it printed.
func (c *Cluster) Exec(ctx context.Context, namespace, pod, container string, stdin io.Reader, command ...string) (stdout, stderr string, err error) {
	req := c.Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: command, Stdin: stdin != nil, Stdout: true, Stderr: true,
		}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(c.Config, http.MethodPost, req.URL())
	if err != nil {
		return "", "", fmt.Errorf("exec in %s/%s: %w", namespace, pod, err)
	}
	var out, errs limitedBuffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &errs})
	if err != nil {
		err = fmt.Errorf("exec %q in %s/%s: %w: %s", command, namespace, pod, err, errs.String())
	}
	return out.String(), errs.String(), err
}

// Forward opens a port of a pod on this machine, until stop is called.
func (c *Cluster) Forward(namespace, pod string, port int) (local int, stop func(), err error) {
	req := c.Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward")
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return 0, nil, fmt.Errorf("forward to %s/%s: %w", namespace, pod, err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, req.URL())
	stopped, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, fmt.Errorf("forward to %s/%s: %w", namespace, pod, err)
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, nil, fmt.Errorf("forward to %s/%s: %w", namespace, pod, err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stopped)
		return 0, nil, fmt.Errorf("forward to %s/%s: %w", namespace, pod, err)
	}
	return int(ports[0].Local), func() { close(stopped) }, nil
}

// limitedBuffer keeps the first MiB: what a test wants to read, not what a runaway process prints.
type limitedBuffer struct{ b []byte }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if room := 1<<20 - len(l.b); room > 0 {
		l.b = append(l.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (l *limitedBuffer) String() string { return string(l.b) }

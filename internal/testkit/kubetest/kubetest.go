// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubetest gives tests a real API server on which dist/install.yaml is installed: CRDs, roles and admission policies are the
// shipped ones. There is no kubelet and no controller manager: a test does their work in their name (see Env.As).
package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// SystemNamespace is where dist/install.yaml puts Tidewaiter.
const SystemNamespace = "tidewaiter-system"

// startTimeout is generous: on a busy machine the API server takes its time, and a test that gives up early is flaky.
const startTimeout = 3 * time.Minute

// Env is a running API server.
type Env struct {
	// Config connects as a member of system:masters, whom RBAC does not restrict.
	Config *rest.Config
	// Client of Config, without a cache: it reads the current state.
	Client client.Client
	// Scheme knows the kinds of Kubernetes, CRDs and Tidewaiter.
	Scheme *runtime.Scheme

	server *envtest.Environment
	// files of the front proxy.
	files string
}

// Run is for TestMain: it starts an API server, hands it to use, runs the package's tests and returns the exit code.
// Without an API server the tests fail; they are never skipped.
func Run(m *testing.M, use func(*Env)) int {
	env, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubetest:", err)
		return 1
	}
	use(env)
	code := m.Run()
	if err := errors.Join(env.server.Stop(), os.RemoveAll(env.files)); err != nil {
		fmt.Fprintln(os.Stderr, "kubetest: stop the API server:", err)
		return 1
	}
	return code
}

func start() (*Env, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, fmt.Errorf("these tests need a real API server: run `make envtest-assets` and set KUBEBUILDER_ASSETS to the directory that it prints, or run `make test-envtest`")
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		Scheme:                   scheme,
		ControlPlaneStartTimeout: startTimeout,
	}
	files, err := aggregate(server)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(files))
	}
	cfg, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("start the API server from %s: %w", assets, err)
	}
	// A test asks often: client-side throttling would only make it slow.
	cfg.QPS, cfg.Burst = -1, 0
	env := &Env{Config: cfg, Scheme: scheme, server: server, files: files}
	if env.Client, err = client.New(cfg, client.Options{Scheme: scheme}); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		err = env.install(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("install Tidewaiter: %w", errors.Join(err, server.Stop()))
	}
	return env, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// install applies dist/install.yaml in its order (namespaces and CRDs come first) and waits until it is in effect.
func (e *Env) install(ctx context.Context) error {
	objects, err := readManifests("dist/install.yaml")
	if err != nil {
		return err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
				return fmt.Errorf("read %s: %w", object.GetName(), err)
			}
			crds = append(crds, crd)
		}
	}
	if _, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: startTimeout}); err != nil {
		return fmt.Errorf("install the CRDs: %w", err)
	}
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" || object.GetKind() == apiService {
			continue
		}
		if err := e.apply(ctx, object); err != nil {
			return err
		}
	}
	return e.awaitAdmission(ctx)
}

func (e *Env) apply(ctx context.Context, object *unstructured.Unstructured) error {
	err := e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubetest"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

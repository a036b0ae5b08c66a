// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/debian"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/image"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/verify"
)

// verify checks the running cluster with pods of two images that it makes for that.
func (d driver) verify(ctx context.Context, _ []string) error {
	if d.external != "" {
		return errors.New("verify: it checks the local cluster, and KUBECONFIG names another one")
	}
	folder, err := d.cluster.Assets(ctx)
	if err != nil {
		return err
	}
	probe, err := d.cluster.Probe()
	if err != nil {
		return err
	}
	files := []image.File{{Source: probe, Target: "/probe", Mode: 0o755}}
	base, err := debian.Layer(ctx, d.layout, debian.Set{Packages: []string{"ca-certificates", "dash", "coreutils", "git"}})
	if err != nil {
		return err
	}
	v := verify.Verifier{
		Kubectl:    filepath.Join(folder, "kubectl"),
		Kubeconfig: d.cluster.Kubeconfig(),
		Probe:      "local.test/probe:verify",
		Debian:     "local.test/debian:verify",
		Say:        func(format string, arguments ...any) { fmt.Printf(format+"\n", arguments...) },
	}
	if err := d.buildAndLoad(ctx, image.Spec{Name: v.Probe, User: "65532", Files: files}, ""); err != nil {
		return err
	}
	if err := d.buildAndLoad(ctx, image.Spec{Name: v.Debian, User: "65532", Files: files}, base); err != nil {
		return err
	}
	return v.Run(ctx)
}

func (d driver) buildAndLoad(ctx context.Context, spec image.Spec, base string) error {
	file, err := os.CreateTemp("", "image-*.tar")
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // a temporary file
	if err := errors.Join(image.Write(file, spec, base), file.Close()); err != nil {
		return err
	}
	return d.cluster.Load(ctx, file.Name())
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify checks on a running cluster that it does what the project's tests rely on, each promise by a pod that
// would fail if it were not kept.
package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	namespace    = "tidewaiter-verify"
	podPatience  = 90 * time.Second
	pollInterval = 200 * time.Millisecond
)

// object is a Kubernetes object, as JSON has it.
type object = map[string]any

// Verifier runs the checks.
type Verifier struct {
	// Kubectl and Kubeconfig are paths.
	Kubectl, Kubeconfig string
	// Probe is the image of the probe, and Debian one of Debian packages that has a shell and Git.
	Probe, Debian string
	// Say reports progress, a line at a time.
	Say func(format string, arguments ...any)
}

// check is one promise.
type check struct {
	promise string
	run     func(context.Context) error
}

// Run runs every check, and returns all that failed.
func (v Verifier) Run(ctx context.Context) error {
	if err := v.remove(ctx); err != nil {
		return err
	}
	if err := v.apply(ctx, v.world()...); err != nil {
		return err
	}
	var errs []error
	for _, c := range v.checks() {
		begin := time.Now()
		err := c.run(ctx)
		verdict := "ok  "
		if err != nil {
			verdict = "FAIL"
			errs = append(errs, fmt.Errorf("%s: %w", c.promise, err))
		}
		v.Say("%s %-70s %5.1fs", verdict, c.promise, time.Since(begin).Seconds())
	}
	return errors.Join(append(errs, v.remove(ctx))...)
}

func (v Verifier) remove(ctx context.Context) error {
	_, err := v.kubectl(ctx, nil, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s")
	return err
}

func (v Verifier) kubectl(ctx context.Context, input []byte, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, v.Kubectl, append([]string{"--kubeconfig", v.Kubeconfig}, arguments...)...)
	command.Stdin = bytes.NewReader(input)
	var out, message bytes.Buffer
	command.Stdout, command.Stderr = &out, &message
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, strings.TrimSpace(message.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// apply creates objects in the namespace of the checks.
func (v Verifier) apply(ctx context.Context, objects ...object) error {
	content, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	_, err = v.kubectl(ctx, content, "apply", "--server-side", "-f", "-")
	return err
}

// finish creates a pod, waits until it has ended well, and returns what it printed.
func (v Verifier) finish(ctx context.Context, pod object) (string, error) {
	name := pod["metadata"].(object)["name"].(string)
	if err := v.apply(ctx, pod); err != nil {
		return "", err
	}
	phase, err := v.await(ctx, name, "Succeeded", "Failed")
	if err != nil {
		return "", err
	}
	output, err := v.kubectl(ctx, nil, "logs", "-n", namespace, name)
	if err == nil && phase == "Failed" {
		err = fmt.Errorf("pod %s failed: %s", name, output)
	}
	return output, err
}

// await waits until the pod is in one of the phases.
func (v Verifier) await(ctx context.Context, name string, phases ...string) (string, error) {
	for deadline := time.Now().Add(podPatience); ; time.Sleep(pollInterval) {
		phase, err := v.kubectl(ctx, nil, "get", "pod", "-n", namespace, name, "-o", "jsonpath={.status.phase}")
		if err != nil {
			return "", err
		}
		for _, wanted := range phases {
			if phase == wanted {
				return phase, nil
			}
		}
		if time.Now().After(deadline) {
			events, _ := v.kubectl(ctx, nil, "describe", "pod", "-n", namespace, name)
			return "", fmt.Errorf("pod %s is %s after %s:\n%s", name, phase, podPatience, events)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// The volume is this large; a file system in it has a little less for files.
	volumeMiB    = 64
	volumeMinMiB = 48

	audience = "tidewaiter-verify"
)

func (v Verifier) checks() []check {
	return []check{
		{"a native sidecar runs before and beside the main container", v.sidecar},
		{"a Service answers by name", v.service},
		{"NetworkPolicy denies egress from a pod's first moment, DNS included", v.policy},
		{"a restricted namespace refuses a pod that is not", v.restricted},
		{"a volume has the size that was asked for", v.volumeSize},
		{"a pod in a user namespace uses a volume by fsGroup, and another pod after it", v.userNamespace},
		{"a removed claim takes its volume with it", v.reclaim},
		{"a projected token is good for its audience alone", v.token},
		{"an image of Debian packages has a shell, Git and certificates", v.debian},
	}
}

// world is what all checks need: a namespace where only restricted pods may run, and a server.
func (v Verifier) world() []object {
	server := v.pod("server", v.Probe, "/probe", "serve", ":8080")
	server["metadata"].(object)["labels"] = object{"app": "server"}
	return []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": object{
			"pod-security.kubernetes.io/enforce": "restricted",
		}}},
		{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "server", "namespace": namespace}, "spec": object{
			"selector": object{"app": "server"}, "ports": []object{{"port": 80, "targetPort": 8080}},
		}},
		{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": object{"name": "locked", "namespace": namespace}, "spec": object{
			"podSelector": object{"matchLabels": object{"locked": "true"}}, "policyTypes": []string{"Egress"},
		}},
		server,
	}
}

func (v Verifier) sidecar(ctx context.Context) error {
	pod := v.pod("sidecar", v.Probe, "/probe", "dial", "127.0.0.1:9090")
	spec := pod["spec"].(object)
	sidecar := container("side", v.Probe, "/probe", "serve", ":9090")
	sidecar["restartPolicy"] = "Always"
	sidecar["startupProbe"] = object{"tcpSocket": object{"port": 9090}, "periodSeconds": 1}
	spec["initContainers"] = []object{sidecar}
	_, err := v.finish(ctx, pod)
	return err
}

func (v Verifier) service(ctx context.Context) error {
	if _, err := v.await(ctx, "server", "Running"); err != nil {
		return err
	}
	_, err := v.finish(ctx, v.pod("client", v.Probe, "/probe", "dial", "server:80", "kubernetes.default:443"))
	return err
}

func (v Verifier) policy(ctx context.Context) error {
	server, err := v.kubectl(ctx, nil, "get", "pod", "-n", namespace, "server", "-o", "jsonpath={.status.podIP}")
	if err != nil {
		return err
	}
	service, err := v.kubectl(ctx, nil, "get", "service", "-n", namespace, "server", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return err
	}
	pod := v.pod("locked", v.Probe, "/probe", "refused", server+":8080", service+":80", "10.96.0.1:443", "10.200.0.2:6443", "udp/10.96.0.10:53")
	pod["metadata"].(object)["labels"] = object{"locked": "true"}
	_, err = v.finish(ctx, pod)
	return err
}

func (v Verifier) restricted(ctx context.Context) error {
	pod := v.pod("careless", v.Probe, "/probe", "read", "/etc/passwd")
	delete(pod["spec"].(object), "securityContext")
	err := v.apply(ctx, pod)
	if err == nil {
		return errors.New("the pod was accepted")
	}
	if !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		return err
	}
	return nil
}

func (v Verifier) volumeSize(ctx context.Context) error {
	if err := v.apply(ctx, claim("size")); err != nil {
		return err
	}
	output, err := v.finish(ctx, withClaim(v.pod("size", v.Probe, "/probe", "fill", "/data/file"), "size"))
	if err != nil {
		return err
	}
	written, err := strconv.Atoi(output)
	if err != nil || written < volumeMinMiB || written >= volumeMiB {
		return fmt.Errorf("%q MiB went into a volume of %d MiB", output, volumeMiB)
	}
	return nil
}

func (v Verifier) userNamespace(ctx context.Context) error {
	if err := v.apply(ctx, claim("shared")); err != nil {
		return err
	}
	writer := withClaim(v.pod("writer", v.Probe, "/probe", "write", "/data/file", "written in a user namespace"), "shared")
	writer["spec"].(object)["hostUsers"] = false
	if _, err := v.finish(ctx, writer); err != nil {
		return err
	}
	mapped := v.pod("mapped", v.Probe, "/probe", "read", "/proc/self/uid_map")
	mapped["spec"].(object)["hostUsers"] = false
	mapping, err := v.finish(ctx, mapped)
	if err != nil {
		return err
	}
	if fields := strings.Fields(mapping); len(fields) != 3 || fields[1] == "0" {
		return fmt.Errorf("hostUsers: false gave the map %q", mapping)
	}
	output, err := v.finish(ctx, withClaim(v.pod("reader", v.Probe, "/probe", "read", "/data/file"), "shared"))
	if err == nil && output != "written in a user namespace" {
		err = fmt.Errorf("the next pod read %q", output)
	}
	return err
}

func (v Verifier) reclaim(ctx context.Context) error {
	volume, err := v.kubectl(ctx, nil, "get", "pvc", "-n", namespace, "size", "-o", "jsonpath={.spec.volumeName}")
	if err != nil {
		return err
	}
	if _, err := v.kubectl(ctx, nil, "delete", "-n", namespace, "pod/size", "pvc/size"); err != nil {
		return err
	}
	_, err = v.kubectl(ctx, nil, "wait", "--for=delete", "pv/"+volume, "--timeout=30s")
	return err
}

func (v Verifier) token(ctx context.Context) error {
	pod := v.pod("token", v.Probe, "/probe", "read", "/token/token")
	spec := pod["spec"].(object)
	spec["volumes"] = []object{{"name": "token", "projected": object{"sources": []object{
		{"serviceAccountToken": object{"audience": audience, "expirationSeconds": 600, "path": "token"}},
	}}}}
	spec["containers"].([]object)[0]["volumeMounts"] = []object{{"name": "token", "mountPath": "/token"}}
	// The review must happen while the pod exists, and a finished pod still does.
	token, err := v.finish(ctx, pod)
	if err != nil {
		return err
	}
	for wanted, authenticated := range map[string]bool{audience: true, "another": false} {
		got, err := v.review(ctx, token, wanted)
		if err != nil {
			return err
		}
		if got != authenticated {
			return fmt.Errorf("for audience %q the token is authenticated: %t", wanted, got)
		}
	}
	return nil
}

func (v Verifier) review(ctx context.Context, token, audience string) (bool, error) {
	content, err := json.Marshal(object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": object{"token": token, "audiences": []string{audience}},
	})
	if err != nil {
		return false, fmt.Errorf("review: %w", err)
	}
	output, err := v.kubectl(ctx, content, "create", "-f", "-", "-o", "jsonpath={.status.authenticated}")
	return output == "true", err
}

func (v Verifier) debian(ctx context.Context) error {
	script := strings.Join([]string{
		"set -e", "cd /tmp", "git init -q repository", "cd repository", "echo content >file", "git add file",
		"git -c user.name=verify -c user.email=verify@localhost commit -q -m message",
		"git clone -q . ../clone", "cat ../clone/file", "test -s /etc/ssl/certs/ca-certificates.crt", "id -u",
	}, "\n")
	output, err := v.finish(ctx, v.pod("debian", v.Debian, "/bin/sh", "-c", script))
	if err == nil && output != "content\n65532" {
		err = fmt.Errorf("the pod printed %q", output)
	}
	return err
}

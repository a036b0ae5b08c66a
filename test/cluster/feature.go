// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// GitSecret is the name of the Secret that Script's Features use.
const GitSecret = "git-credentials"

// GitPolicy is the name of the SupervisorPolicy that AllowGit makes.
const GitPolicy = "git"

// Script is a Feature whose agent runs a bash script in the workspace, with small volumes.
func (c *Cluster) Script(project, name, url, script string) *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: project},
		Spec: v1alpha1.FeatureSpec{
			Prompt:     "Run the script.",
			Repository: v1alpha1.Repository{URL: url, Revision: "main", CredentialsSecretRef: &v1alpha1.SecretRef{Name: GitSecret}},
			Agent:      v1alpha1.Agent{Runtime: "command", Image: c.Image, Command: []string{"bash", "-euo", "pipefail", "-c"}, Args: []string{script}},
			Workspace:  &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("128Mi"))},
		},
	}
}

// roomy is how many Features of a project may run at once: more than a test, the demo or a bench starts.
const roomy = 100

// AllowGit makes the project's policy that lets the gateway reach a Git server inside the cluster, and leaves room for many Features.
func (c *Cluster) AllowGit(ctx context.Context, project, host string) error {
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: GitPolicy, Namespace: project}}
	policy.Spec.Defaults = &v1alpha1.Rules{
		Egress:   &v1alpha1.EgressRules{Git: []v1alpha1.EgressHost{{Host: host, AllowPrivate: true}}},
		Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](roomy)},
	}
	if err := c.Create(ctx, policy); err != nil {
		return fmt.Errorf("create policy %s: %w", policy.Name, err)
	}
	return nil
}

// Feature reads a Feature.
func (c *Cluster) Feature(ctx context.Context, project, name string) (*v1alpha1.Feature, error) {
	var f v1alpha1.Feature
	err := c.Get(ctx, client.ObjectKey{Namespace: project, Name: name}, &f)
	return &f, err
}

// Checkpoints of a Feature, oldest first.
func (c *Cluster) Checkpoints(ctx context.Context, project, feature string) ([]v1alpha1.Checkpoint, error) {
	var list v1alpha1.CheckpointList
	err := c.List(ctx, &list, client.InNamespace(project), client.MatchingLabels{v1alpha1.LabelFeature: feature})
	slices.SortFunc(list.Items, func(a, b v1alpha1.Checkpoint) int { return int(a.Spec.Sequence - b.Spec.Sequence) })
	return list.Items, err
}

// Reason of a Feature's condition, or "" if there is none.
func Reason(f *v1alpha1.Feature, condition string) string {
	if c := meta.FindStatusCondition(f.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// Message of a Feature's condition, or "" if there is none.
func Message(f *v1alpha1.Feature, condition string) string {
	if c := meta.FindStatusCondition(f.Status.Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}

func basicAuth(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

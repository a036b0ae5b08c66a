// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"fmt"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// attack is something that a role allows and that would have an effect on a verdict, a delivery, a record or the orders
// of a watchdog, or would take an agent out of supervision, were it not for an admission policy. do does it for real.
type attack struct {
	name string
	// policy that must refuse it.
	policy string
	// resource and verbs that it tries; empty for what no role of the table grants.
	resource, verbs string
	do              func(t *testing.T, w *world) error
}

func attacks() []attack {
	return slices.Concat(reach(), pods(), escapes(), objects(), work(), labels())
}

// reach is what gets into a pod, or speaks for it.
func reach() []attack {
	list := []attack{{
		name: "ask for a token that speaks for the pod", policy: "tidewaiter-tokens", resource: "serviceaccounts/token", verbs: "create",
		do: func(t *testing.T, w *world) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "default"}}
			return w.editor.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				Audiences: []string{"https://kubernetes.default.svc", protocol.TokenAudience}, ExpirationSeconds: ptr.To[int64](600),
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: w.run.Pod.Name, UID: w.run.Pod.UID},
			}})
		},
	}}
	for subresource, container := range map[string]string{"exec": "watchdog", "attach": "watchdog", "portforward": "", "proxy": ""} {
		verbs := map[string]string{"GET": "get", "POST": "create"}
		if subresource == "proxy" {
			verbs["PUT"], verbs["PATCH"], verbs["DELETE"] = "update", "patch", "delete"
		}
		for method, verb := range verbs {
			list = append(list, attack{
				name: verb + " " + subresource + " of the watchdog", policy: "tidewaiter-connect", resource: "pods/" + subresource, verbs: verb,
				do: func(t *testing.T, w *world) error {
					request := w.raw.Verb(method).Resource("pods").Namespace(w.project).Name(w.run.Pod.Name).SubResource(subresource)
					if container != "" {
						request = request.Param("container", container).Param("stdout", "true").Param("command", "true")
					}
					return request.Do(t.Context()).Error()
				},
			})
		}
	}
	for subresource := range map[string]bool{"exec": true, "attach": true} {
		list = append(list, attack{
			name: subresource + " into a gate before the delivery", policy: "tidewaiter-connect", resource: "pods/" + subresource, verbs: "create",
			do: func(t *testing.T, w *world) error {
				return w.raw.Verb("POST").Resource("pods").Namespace(w.project).Name(w.run.Pod.Name).SubResource(subresource).
					Param("container", "gate").Param("stdout", "true").Param("command", "true").Do(t.Context()).Error()
			},
		})
	}
	return list
}

// pods are attacks by pods and Jobs.
func pods() []attack {
	return []attack{
		{"make a pod that is taken for the Feature's", "tidewaiter-pods", "pods", "create", func(t *testing.T, w *world) error {
			return w.editor.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: w.project, Name: "mine", Labels: w.run.Pod.Labels, OwnerReferences: w.run.Pod.OwnerReferences,
			}, Spec: attempt.PodSpec()})
		}},
		{"mount the trusted volume", "tidewaiter-pods", "pods", "create", func(t *testing.T, w *world) error {
			spec := attempt.PodSpec()
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claim.Name},
			}}}
			return w.editor.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: spec})
		}},
		{"run another image beside the token", "tidewaiter-pods", "pods", "patch update", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.run.Pod, `{"spec":{"containers":[{"name":"agent","image":"mine"}]}}`)
		}},
		{"take the pod out of its network policy", "tidewaiter-pods", "pods", "patch update", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.run.Pod, `{"metadata":{"labels":{"tidewaiter.dev/feature":null}}}`)
		}},
		{"report that the pod has ended", "tidewaiter-pods", "", "", func(t *testing.T, w *world) error {
			return w.owner.Status().Patch(t.Context(), w.run.Pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`)))
		}},
		{"make a Job that is taken for the Feature's", "tidewaiter-jobs", "batch/jobs", "create", func(t *testing.T, w *world) error {
			return w.editor.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.run.Pod.Labels}, Spec: attempt.PodSpec()},
			}})
		}},
		{"run two agents on one workspace", "tidewaiter-jobs", "batch/jobs", "patch update", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.run.Job, `{"spec":{"parallelism":2}}`)
		}},
		{"run a pod on the host as the manager", "tidewaiter-manager-jobs", "", "", func(t *testing.T, w *world) error {
			spec := attempt.PodSpec()
			spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			return w.manager.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "mine"}, Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: spec},
			}})
		}},
		{"run a pod before those of the cluster as the manager", "tidewaiter-manager-jobs", "", "", func(t *testing.T, w *world) error {
			job := &batchv1.Job{ObjectMeta: w.run.Job.ObjectMeta, Spec: *w.run.Job.Spec.DeepCopy()}
			job.Name, job.UID, job.ResourceVersion = "twf-mine", "", ""
			job.Spec.Selector, job.Spec.Template.Labels = nil, map[string]string{v1alpha1.LabelFeature: w.run.Feature.Name}
			job.Spec.Template.Spec.PriorityClassName = "system-node-critical"
			return w.manager.Create(t.Context(), job)
		}},
	}
}

// escapes take a running agent out of supervision, or keep every later attempt waiting.
func escapes() []attack {
	list := []attack{
		{"delete the Job and leave its pod running", "tidewaiter-jobs", "batch/jobs", "delete", func(t *testing.T, w *world) error {
			return w.editor.Delete(t.Context(), w.run.Job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}},
		{"delete the Job and leave its pod running, as the API server does by itself", "tidewaiter-jobs", "batch/jobs", "delete", func(t *testing.T, w *world) error {
			return w.editor.Delete(t.Context(), w.run.Job.DeepCopy())
		}},
		{"delete all Jobs and leave their pods running, as the API server does by itself", "tidewaiter-jobs", "batch/jobs", "deletecollection", func(t *testing.T, w *world) error {
			return w.editor.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace(w.project))
		}},
		{"delete the Job and leave its pod running, by the older option", "tidewaiter-jobs", "batch/jobs", "delete", func(t *testing.T, w *world) error {
			return w.editor.Delete(t.Context(), w.run.Job.DeepCopy(), &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: ptr.To(true)}}) //nolint:staticcheck // it still works
		}},
		{"delete all Jobs and leave their pods running", "tidewaiter-jobs", "batch/jobs", "deletecollection", func(t *testing.T, w *world) error {
			return w.editor.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace(w.project), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}},
		{"delete the pod while its containers run", "tidewaiter-pods", "pods", "delete", func(t *testing.T, w *world) error {
			return w.editor.Delete(t.Context(), w.run.Pod.DeepCopy(), client.GracePeriodSeconds(0))
		}},
		{"delete all pods while their containers run", "tidewaiter-pods", "pods", "deletecollection", func(t *testing.T, w *world) error {
			return w.editor.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.project), client.GracePeriodSeconds(0))
		}},
		{"evict the pod while its containers run", "tidewaiter-pods", "pods/eviction", "create", func(t *testing.T, w *world) error {
			return w.editor.SubResource("eviction").Create(t.Context(), w.run.Pod.DeepCopy(), &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Name: w.run.Pod.Name, Namespace: w.project}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
			})
		}},
		{"report that the Job has ended", "tidewaiter-jobs", "", "", func(t *testing.T, w *world) error {
			return w.owner.Status().Patch(t.Context(), w.run.Job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"active":3}}`)))
		}},
		{"debug the pod", "tidewaiter-pods", "", "", func(t *testing.T, w *world) error {
			pod := w.run.Pod.DeepCopy()
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "mine", SecurityContext: pod.Spec.Containers[0].SecurityContext,
			}}}
			return w.owner.SubResource("ephemeralcontainers").Update(t.Context(), pod)
		}},
	}
	for _, object := range frozen() {
		for field, body := range object.escapes {
			list = append(list, attack{
				field + " of the " + object.kind + " is changed", object.policy, object.resource, "patch update", func(t *testing.T, w *world) error {
					return patch(t, w.editor, object.of(w), body)
				},
			})
		}
	}
	return list
}

// objects are attacks by volumes, networks and what the watchdog trusts.
func objects() []attack {
	return []attack{
		{"make the next Feature's volume beforehand", "tidewaiter-children", "persistentvolumeclaims", "create", func(t *testing.T, w *world) error {
			return w.editor.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "twf-next-trusted"}, Spec: w.claim.Spec})
		}},
		{"copy the trusted volume", "tidewaiter-children", "persistentvolumeclaims", "create", func(t *testing.T, w *world) error {
			spec := w.claim.Spec.DeepCopy()
			spec.DataSource, spec.DataSourceRef = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: w.claim.Name}, nil
			return w.editor.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "copy"}, Spec: *spec})
		}},
		{"hand the trusted volume to another owner", "tidewaiter-children", "persistentvolumeclaims", "patch update", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.claim, `{"metadata":{"ownerReferences":null}}`)
		}},
		{"delete the trusted volume", "tidewaiter-children", "persistentvolumeclaims", "delete deletecollection", func(t *testing.T, w *world) error {
			if err := w.editor.Delete(t.Context(), w.claim.DeepCopy()); err != nil {
				return err
			}
			return w.editor.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(w.project))
		}},
		{"make a network policy that is taken for the Feature's", "tidewaiter-children", "networking.k8s.io/networkpolicies", "create", func(t *testing.T, w *world) error {
			return w.editor.Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine", Labels: w.network.Labels}, Spec: w.network.Spec})
		}},
		{"open the network of the agent", "tidewaiter-children", "networking.k8s.io/networkpolicies", "patch update", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.network, `{"spec":{"egress":[{}]}}`)
		}},
		{"delete the isolation of the agent", "tidewaiter-children", "networking.k8s.io/networkpolicies", "delete deletecollection", func(t *testing.T, w *world) error {
			if err := w.editor.Delete(t.Context(), w.network.DeepCopy()); err != nil {
				return err
			}
			return w.editor.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace(w.project))
		}},
		{"let the watchdog trust another intake", "tidewaiter-ca-bundle", "configmaps", "create update patch", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.bundle, `{"data":{"ca.crt":"mine"}}`)
		}},
		{"write a record", "tidewaiter-records", "", "", func(t *testing.T, w *world) error {
			forged := &v1alpha1.Checkpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "login-2"}, Spec: checkpoint(w.run.Feature)}
			return w.owner.Create(t.Context(), forged)
		}},
		{"change a verdict's label", "tidewaiter-records", "", "", func(t *testing.T, w *world) error {
			return patch(t, w.owner, w.record, `{"metadata":{"labels":{"tidewaiter.dev/verdict":"Invalid"}}}`)
		}},
		{"report a delivery", "tidewaiter-records", "", "", func(t *testing.T, w *world) error {
			return w.owner.Status().Patch(t.Context(), w.run.Feature.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Delivered"}}`)))
		}},
	}
}

// work is what can be written into Features and Templates.
func work() []attack {
	return []attack{
		{"use a Secret that one may neither read nor use", "tidewaiter-feature-references", "tidewaiter.dev/features", "create", func(t *testing.T, w *world) error {
			f := feature(w, "mine")
			f.Spec.Repository.CredentialsSecretRef = &v1alpha1.SecretRef{Name: "bank-git"}
			return w.developer.Create(t.Context(), f)
		}},
		{"run on a node, or before others, without the right to make pods", "tidewaiter-feature-pods", "tidewaiter.dev/features", "create", func(t *testing.T, w *world) error {
			f := feature(w, "mine")
			f.Spec.Agent.Scheduling = &v1alpha1.Scheduling{PriorityClassName: ptr.To("high")}
			return w.developer.Create(t.Context(), f)
		}},
		{"move an agent without the right to make pods", "tidewaiter-feature-pods", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			return patch(t, w.developer, w.run.Feature, `{"spec":{"agent":{"scheduling":{"tolerations":[{"key":"node-role.kubernetes.io/control-plane","operator":"Exists"}]}}}}`)
		}},
		{"pull images with a Secret without the right to make pods", "tidewaiter-feature-pods", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			return patch(t, w.developer, w.run.Feature, `{"spec":{"agent":{"imagePullSecrets":[{"name":"bank-registry"}]}}}`)
		}},
		{"choose a runtime class without the right to make pods", "tidewaiter-feature-pods", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			return patch(t, w.developer, w.run.Feature, `{"spec":{"agent":{"runtimeClassName":"bank"}}}`)
		}},
		{"pull another image with a Secret that somebody else has set", "tidewaiter-feature-pods", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			f := feature(w, "")
			f.GenerateName, f.Spec.Agent.ImagePullSecrets = "private-", []v1alpha1.SecretRef{{Name: "bank-registry"}}
			if err := w.editor.Create(t.Context(), f); err != nil {
				return err
			}
			return patch(t, w.developer, f, `{"spec":{"agent":{"image":"bank.example.com/vault:1"}}}`)
		}},
		{"do away with the approval that a Feature requires", "tidewaiter-approval", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			f := feature(w, "")
			f.GenerateName, f.Spec.Delivery = "approved-", &v1alpha1.Delivery{Approval: v1alpha1.ApprovalRequired}
			if err := w.editor.Create(t.Context(), f); err != nil {
				return err
			}
			return patch(t, w.editor, f, `{"spec":{"delivery":{"approval":"None"}}}`)
		}},
		{"pull images by a policy without the right to make pods", "tidewaiter-policy-pods", "tidewaiter.dev/supervisorpolicies", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.SupervisorPolicySpec{
				Overrides: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{ImagePullSecrets: []v1alpha1.SecretRef{{Name: "bank-registry"}}}},
			}})
		}},
		{"run an image by a gate of a policy without the right to make pods", "tidewaiter-policy-pods", "tidewaiter.dev/supervisorpolicies", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.SupervisorPolicySpec{
				Defaults: &v1alpha1.Rules{Gates: []v1alpha1.PolicyGate{{Gate: v1alpha1.Gate{Name: "mine", Command: []string{"true"}}, Image: "registry.example.com/mine:1"}}},
			}})
		}},
		{"force an image by a gate of a policy without the right to make pods", "tidewaiter-policy-pods", "tidewaiter.dev/supervisorpolicies", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.SupervisorPolicySpec{
				Overrides: &v1alpha1.Rules{Gates: []v1alpha1.PolicyGate{{Gate: v1alpha1.Gate{Name: "mine", Command: []string{"true"}}, Image: "registry.example.com/mine:1"}}},
			}})
		}},
		{"force a place of pods by a policy without the right to make pods", "tidewaiter-policy-pods", "tidewaiter.dev/supervisorpolicies", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.SupervisorPolicySpec{
				Overrides: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{Scheduling: &v1alpha1.Scheduling{PriorityClassName: ptr.To("high")}}},
			}})
		}},
		{"place pods by a policy without the right to make pods", "tidewaiter-policy-pods", "tidewaiter.dev/supervisorpolicies", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.SupervisorPolicySpec{
				Defaults: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{Scheduling: &v1alpha1.Scheduling{PriorityClassName: ptr.To("high")}}},
			}})
		}},
		{"approve without the verb", "tidewaiter-approval", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
			return patch(t, w.editor, w.run.Feature, fmt.Sprintf(`{"spec":{"delivery":{"approvedCommit":%q}}}`, commit))
		}},
		{"let a Template read for one", "tidewaiter-template-references", "tidewaiter.dev/templates", "create update patch", func(t *testing.T, w *world) error {
			return w.author.Create(t.Context(), &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: "mine"}, Spec: v1alpha1.TemplateSpec{
				Direction: "Input", ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "k"},
			}})
		}},
	}
}

// labels are attacks by the labels that policies select Features by.
func labels() []attack {
	list := []attack{{
		"choose the policies of a new Feature", "tidewaiter-policy-labels", "tidewaiter.dev/features", "create", func(t *testing.T, w *world) error {
			f := feature(w, "mine")
			f.Labels = map[string]string{teamLabel: "sandbox"}
			return w.editor.Create(t.Context(), f)
		},
	}}
	for _, who := range []string{"edit", "admin", "every right in the project"} {
		for what, value := range map[string]string{"choose another policy": `"sandbox"`, "leave a policy": "null"} {
			list = append(list, attack{
				what + " with " + who, "tidewaiter-policy-labels", "tidewaiter.dev/features", "update patch", func(t *testing.T, w *world) error {
					person := map[string]client.Client{"edit": w.editor, "admin": w.admin}[who]
					if person == nil {
						person = w.owner
					}
					label := tierLabel // policies of the project are written by admins, global ones are not
					if who == "edit" {
						label = teamLabel
					}
					return patch(t, person, w.run.Feature, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value))
				},
			})
		}
	}
	return list
}

func patch(t *testing.T, who client.Client, object client.Object, body string) error {
	t.Helper()
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", object)
	}
	kind := types.StrategicMergePatchType
	if _, ours := object.(*v1alpha1.Feature); ours {
		kind = types.MergePatchType
	} else if _, ours := object.(*v1alpha1.Checkpoint); ours {
		kind = types.MergePatchType
	}
	return who.Patch(t.Context(), copied, client.RawPatch(kind, []byte(body)))
}

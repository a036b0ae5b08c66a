// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
)

const (
	// product is what all objects of a preflight are labelled with, so that they can be found.
	product = "tidewaiter-preflight"
	program = "/usr/local/bin/tidewaiter"
	// user is that of a Feature's pod.
	user = 1000
	// lifetime of a pod in seconds, whoever is there to remove it.
	lifetime = 300
	// dataDir is where a probe finds its volume.
	dataDir = "/data"
	// mappedName is the pod in a user namespace that uses the volume of the claim.
	mappedName = "mapped-volume"
	claimName  = "volume"

	labelName = "app.kubernetes.io/name"
	// labelProbe is by what the policies of the preflight select.
	labelProbe = "app.kubernetes.io/component"
)

func newNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: product + "-", Labels: map[string]string{
		labelName:                            product,
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
}

func (l *look) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{labelName: product, labelProbe: name}}
}

// policies allow one pod to connect to a port of the server, as a Feature's pod may connect to the gateway, and another one nothing at all.
func (l *look) policies() []*networkingv1.NetworkPolicy {
	policy := func(name string, egress ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: l.meta(name), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelProbe: name}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      egress,
		}}
	}
	return []*networkingv1.NetworkPolicy{policy(probe.Refused), policy(probe.Connect, networkingv1.NetworkPolicyEgressRule{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": l.namespace}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{labelProbe: probe.Serve}},
		}},
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(probe.AllowedPort))}},
	})}
}

// pod runs a probe as the containers of a Feature's pod run.
func (l *look) pod(name string, args ...string) *corev1.Pod {
	// Kubernetes replaces $(NAME) in arguments, and $$ by $.
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$", "$$")
	}
	return &corev1.Pod{ObjectMeta: l.meta(name), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: ptr.To[int64](lifetime), TerminationGracePeriodSeconds: ptr.To[int64](1),
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		ImagePullSecrets: l.pull, NodeSelector: map[string]string{corev1.LabelOSStable: string(corev1.Linux)},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user), FSGroup: ptr.To[int64](user),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "probe", Image: l.options.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: append([]string{program, "probe"}, args...),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}}
}

// with mounts a volume at dataDir.
func with(pod *corev1.Pod, source corev1.VolumeSource) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: dataDir}}
	return pod
}

var (
	scratch = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("16Mi"))}}
	claimed = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}}
)

func (l *look) server() *corev1.Pod { return l.pod(probe.Serve, probe.Serve) }

// clients of the server.
func (l *look) clients(server string) []client.Object {
	at := func(port int) string { return net.JoinHostPort(server, strconv.Itoa(port)) }
	return []client.Object{
		l.pod(probe.Refused, probe.Refused, at(probe.AllowedPort)),
		l.pod(probe.Connect, probe.Connect, at(probe.AllowedPort), at(probe.OtherPort)),
	}
}

// users is a pod with a user namespace, with the volume of the claim or one of its own.
func (l *look) users(name string, claim bool) *corev1.Pod {
	source := scratch
	if claim {
		source = claimed
	}
	pod := with(l.pod(name, probe.Users, dataDir), source)
	pod.Spec.HostUsers = ptr.To(false)
	return pod
}

func (l *look) processes() *corev1.Pod {
	return with(l.pod(probe.Processes, probe.Processes, dataDir), scratch)
}

func (l *look) volume() *corev1.Pod {
	return with(l.pod(probe.Volume, probe.Volume, dataDir), claimed)
}

func (l *look) claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: l.meta(claimName), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func reachName(number int) string { return fmt.Sprintf("reach-%d", number) }

func (l *look) reach(number int, servers []probe.Wanted) *corev1.Pod {
	text, _ := json.Marshal(servers) //nolint:errchkjson // it has strings only
	return l.pod(reachName(number), probe.Reach, string(text))
}

// privileged breaks Pod Security restricted, and baseline.
func (l *look) privileged() *corev1.Pod {
	pod := l.pod("privileged", probe.Serve)
	pod.Spec.Containers[0].SecurityContext.Privileged, pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true), ptr.To(true)
	return pod
}

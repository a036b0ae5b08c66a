// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Labels of the pods that serve intake and gateway (config/manager, config/gateway).
const (
	labelName          = "app.kubernetes.io/name"
	labelComponent     = "app.kubernetes.io/component"
	productName        = "tidewaiter"
	componentManager   = "manager"
	componentGateway   = "gateway"
	labelNamespaceName = "kubernetes.io/metadata.name"
)

// NetworkPolicy lets a Feature's pods connect only to intake and gateway, and lets nobody connect to them.
func NetworkPolicy(f *v1alpha1.Feature, systemNamespace string) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(naming.NetworkPolicy(f.Name), f.Namespace).
		WithLabels(map[string]string{v1alpha1.LabelFeature: f.Name}).
		WithOwnerReferences(owner(f)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{v1alpha1.LabelFeature: f.Name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithEgress(
				egress(systemNamespace, componentManager, protocol.IntakePort),
				egress(systemNamespace, componentGateway, protocol.GatewayPort),
			))
}

// Isolation is what every such policy allows, as plain values.
func Isolation(systemNamespace string) *isolation.Policy {
	rule := func(component string, port int32) isolation.Rule {
		return isolation.Rule{
			Peers: []isolation.Peer{{
				Namespaces: &isolation.Selector{Labels: map[string]string{labelNamespaceName: systemNamespace}},
				Pods:       &isolation.Selector{Labels: map[string]string{labelName: productName, labelComponent: component}},
			}},
			Ports: []isolation.Port{{Protocol: string(corev1.ProtocolTCP), First: port, Last: port}},
		}
	}
	return &isolation.Policy{
		Directions: []isolation.Direction{isolation.Ingress, isolation.Egress},
		Egress:     []isolation.Rule{rule(componentManager, protocol.IntakePort), rule(componentGateway, protocol.GatewayPort)},
	}
}

func egress(namespace, component string, port int32) *networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyEgressRule().
		WithTo(networkingv1ac.NetworkPolicyPeer().
			WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelNamespaceName: namespace})).
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelName: productName, labelComponent: component}))).
		WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
}

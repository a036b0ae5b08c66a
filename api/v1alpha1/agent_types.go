// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Agent is the agent that does the work.
// +kubebuilder:validation:XValidation:rule="self.runtime != 'command' || (has(self.command) && size(self.command) > 0)",message="runtime command needs agent.command: an image's entrypoint cannot be known"
// +kubebuilder:validation:XValidation:rule="!(self.runtime in ['command', 'claude-code', 'codex', 'opencode', 'qwen-code', 'gemini-cli']) || has(self.image)",message="this runtime needs agent.image: an image with the agent's program and your toolchain"
// +kubebuilder:validation:XValidation:rule="self.runtime != 'worker' || !has(self.image) && (!has(self.command) || size(self.command) == 0)",message="runtime worker is a program of Tidewaiter's own image: leave out agent.image and agent.command"
type Agent struct {
	// runtime says how Tidewaiter drives the agent. The runtime command runs any image with a command. Tidewaiter has support of its own for these: claude-code, codex, opencode, qwen-code, gemini-cli, worker. The condition Accepted reports an unknown runtime.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Runtime string `json:"runtime"`
	// image is the image of the agent's container. The runtime worker has none: it runs from Tidewaiter's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// command is the command to run, as an argument vector, without a shell around it. A runtime that knows its own program (claude-code) needs none, and worker takes none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Command []string `json:"command,omitempty"`
	// args are the arguments after command, or after what the runtime starts its own program with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Args []string `json:"args,omitempty"`
	// env are plain variables of the agent's environment. Put no secrets here, because the agent is untrusted.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Env []EnvVar `json:"env,omitempty"`
	// resources are the limits and requests of the agent's container. A policy can give defaults, and override them (agents.resources).
	// +optional
	Resources Resources `json:"resources,omitzero"`
	// imagePullSecrets are the names of Secrets in the namespace of the Feature. The kubelet pulls the images of the pods with them and with the Secrets of the policies. To set them you need permission to create pods in the namespace. A change applies to the next attempt.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretRef `json:"imagePullSecrets,omitempty"`
	// scheduling says which nodes run the pods of the Feature. To set it, you need permission to create pods in the namespace. A change applies to the next attempt. A policy can override it (agents.scheduling).
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// runtimeClassName selects a sandboxed container runtime (gVisor, Kata) for the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// runAsUser is the numeric user of the agent and of the watchdog.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// role is the name of a role profile of the policy: when the agent reports (doctrine), and what it does when its way fails (PACE plan).
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
}

// Resources of a container. Quantities have no exponents: one like 1e99999999 would keep the API server busy for minutes. Unlike a pod's they hold no claims: devices come with a resource name or not at all.
type Resources struct {
	// limits are what the container cannot exceed, for example {cpu: "2", memory: 4Gi}.
	// +optional
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[^eE-]{1,32}$'))",message="limits must be quantities such as 500m or 4Gi"
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// requests are what the scheduler sets aside. Defaults to the limits.
	// +optional
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[^eE-]{1,32}$'))",message="requests must be quantities such as 500m or 4Gi"
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// EnvVar is a plain environment variable.
type EnvVar struct {
	// name is the name of the variable. Tidewaiter reserves names that start with TIDEWAITER_.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('TIDEWAITER_')",message="environment names starting with TIDEWAITER_ are reserved"
	Name string `json:"name"`
	// value is the value of the variable. It has no zero byte, which no environment can hold.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:Pattern=`^[^\x00]*$`
	Value string `json:"value,omitempty"`
}

// Workspace sizes the volumes of a Feature.
// +kubebuilder:validation:XValidation:rule="!(has(self.ephemeral) && self.ephemeral && has(self.storageClassName))",message="storageClassName has no meaning when ephemeral is true"
type Workspace struct {
	// size is the size of the workspace volume, and of the trusted volume, which holds the repository and its checkpoints.
	// +optional
	// +kubebuilder:default="5Gi"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="size must be a quantity from 16Mi to 1Pi, for example 5Gi"
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClassName is the storage class of the volumes. Defaults to the cluster's default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	StorageClassName *string `json:"storageClassName,omitempty"`
	// ephemeral keeps the volumes in the pod: a lost pod starts again from the base revision.
	// +optional
	Ephemeral bool `json:"ephemeral,omitempty"`
}

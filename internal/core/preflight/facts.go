// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import "time"

// Facts are what somebody saw of a cluster. A check uses its own part of them.
type Facts struct {
	// Unread says, by the ID of a check, why nobody could gather its facts.
	Unread map[string]string
	// Version of Kubernetes, as the API server gives it.
	Version string
	// Nodes that may run a Feature's pods.
	Nodes []Node
	// Classes are the StorageClasses.
	Classes []StorageClass
	// Network is what the pods of the probe could connect to.
	Network Network
	// UserNamespaces is what became visible in a pod that asked for one.
	UserNamespaces UserNamespaces
	// Volume is what the volume of a claim does.
	Volume Volume
	// Processes are the steps of the probe of processes.
	Processes []Step
	Clock     Clock
	// PodSecurity of the namespace that the probe made.
	PodSecurity PodSecurity
	// Git and Providers are hosts that a pod tried to reach.
	Git, Providers []Target
	// Installed is true if Tidewaiter itself runs in the cluster already.
	Installed bool
	// SystemLevel is the Pod Security level that Tidewaiter's own namespace enforces.
	SystemLevel string
	// Opened are Features whose network other policies open, and Degraded are Features whose watchdog works around a problem.
	Opened, Degraded []string
}

// Node is a node that may run pods of Features.
type Node struct {
	Name string
	// Zone of it, or empty.
	Zone string
	// UserNamespaces is true if its container runtime reports them.
	UserNamespaces bool
	// What is allocatable and not requested by pods: CPU in thousandths of a core, memory in bytes, and a number of pods.
	CPU, Memory, Pods int64
}

// StorageClass of the cluster.
type StorageClass struct {
	Name, Provisioner string
	Default           bool
	// Waits is true if volumes are bound when a pod that uses them has a node.
	Waits bool
}

// Network is what pods of the probe could connect to.
type Network struct {
	// Allowed is the connection that a policy allows. Elsewhere is a try of the same pod to connect to another port.
	Allowed, Elsewhere Connection
	// Forbidden are the tries, in their order, of a pod that a policy forbids every connection.
	Forbidden []Connection
}

// Connection is a try to connect.
type Connection struct {
	To string `json:"to"`
	// Through is true if it got through; Error says why it did not.
	Through bool   `json:"through,omitempty"`
	Error   string `json:"error,omitempty"`
}

// UserNamespaces is what a pod with hostUsers: false saw.
type UserNamespaces struct {
	// Map is its /proc/self/uid_map; Error says why it did not run.
	Map, Error string
	// Volume says why a pod with a user namespace could not use a volume of the default StorageClass; empty if it could, or if nobody tried.
	Volume string
}

// Volume is what a pod saw of the volume of a claim.
type Volume struct {
	// Class that the claim got.
	Class string
	// Error says why the pod could not use it.
	Error string
	// Notes are what the volume does not do and the watchdog works around.
	Notes []string
}

// Step is one thing that the programs in a Feature's pod do at their start, and what is wrong with it.
type Step struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// Clock is how far clocks differ from the API server's.
type Clock struct {
	// Here is the clock of the machine that runs the preflight.
	Here time.Duration
	// Nodes that ran a probe, by name.
	Nodes []NodeClock
}

// NodeClock is how far the clock of a node is ahead of the API server's at least; negative if it is behind.
type NodeClock struct {
	Node string
	Off  time.Duration
}

// PodSecurity is what the cluster says to pods in a namespace that enforces "restricted".
type PodSecurity struct {
	// Error says why the namespace, or a pod that fulfils the level, was refused.
	Error string
	// Enforced is true if the API server refuses a pod that breaks the level.
	Enforced bool
}

// Target is a server that a pod tried to reach.
type Target struct {
	URL string `json:"url,omitempty"`
	// Error says why there was no answer.
	Error string `json:"error,omitempty"`
	// Answer is what the server answered: a status, or an alert of TLS.
	Answer string `json:"answer,omitempty"`
	// Untrusted says why its certificate cannot be checked; empty if it can.
	Untrusted string `json:"untrusted,omitempty"`
	// Private is true if its address is not public.
	Private bool `json:"private,omitempty"`
}

// Report is what a probe in a pod writes, in at most MaxReport bytes of JSON.
type Report struct {
	// Time by the clock of the node.
	Time time.Time `json:"time"`
	// Error says why the probe could not do its work.
	Error       string       `json:"error,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
	UIDMap      string       `json:"uidMap,omitempty"`
	Notes       []string     `json:"notes,omitempty"`
	Steps       []Step       `json:"steps,omitempty"`
	Targets     []Target     `json:"targets,omitempty"`
}

// MaxReport is how long a termination message of a container may be, in bytes: Kubernetes cuts a longer one.
const MaxReport = 4096

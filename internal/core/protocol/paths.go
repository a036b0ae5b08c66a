// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the contract between Tidewaiter's processes: files, paths, ports, environment names and the JSON they
// exchange. It holds no logic. Every JSON document has a version; readers ignore unknown fields.
package protocol

// The ConfigMap in the system's namespace, and its key, with the configuration of the gateway's backends. The Secret has an entry for each
// of their keys.
const (
	BackendsConfigMap = "tidewaiter-backends"
	BackendsKey       = "backends.yaml"
	KeysSecret        = "tidewaiter-model-keys"
)

// GatewayLease is the Lease in the system's namespace on which each gateway publishes the configuration that it uses. The name of its
// annotation is InForcePrefix followed by the gateway's name.
const (
	GatewayLease  = "tidewaiter-gateway"
	InForcePrefix = "inforce.tidewaiter.dev/"
)

// StatusConfigMap of the system's namespace says what the manager's checks of the cluster find, with an entry for each check.
const StatusConfigMap = "tidewaiter-status"

// Version of the JSON documents of this package.
const Version = 1

// Paths inside the pods of a Feature.
const (
	// TrustedDir holds the bare repository, journal and spool. Mounted in prepare, watchdog and seal only.
	TrustedDir = "/trusted"
	// WorkspaceDir is what the agent works on.
	WorkspaceDir = "/workspace"
	// HomeDir is the agent's HOME.
	HomeDir = "/home/agent"
	// RunDir holds the runner binary and the watchdog's socket; read-only in the agent container.
	RunDir = "/run/tidewaiter"
	// RunnerPath is the runner inside the agent container.
	RunnerPath = RunDir + "/runner"
	// SocketPath is where the runner finds the watchdog.
	SocketPath = RunDir + "/watchdog.sock"
	// TokenPath is the projected token of prepare, watchdog and seal.
	TokenPath = "/var/run/secrets/tidewaiter/token"
	// CAPath is the bundle that vouches for intake and gateway.
	CAPath = "/etc/tidewaiter/ca/ca.crt"
	// GitSecretDir is where the repository's Secret is mounted (optional: it may be empty).
	GitSecretDir = "/etc/tidewaiter/git"
)

// Files of the Git Secret.
const (
	GitUsernameFile = "username"
	GitPasswordFile = "password"
	// GitHostsFile lists the only hosts to which the watchdog may send the Secret; without the file it may send it to the repository's host.
	GitHostsFile = "hosts"
	// GitCAFile is the CA of a Git server that no public CA vouches for.
	GitCAFile = "ca.crt"
)

// Identity of the pods towards intake and gateway.
const (
	// TokenAudience that tokens are made for and checked against.
	TokenAudience = "tidewaiter"
	// TokenTTLSeconds of the projected token; the kubelet renews it. 600 is the least that Kubernetes grants.
	TokenTTLSeconds = 600
)

// Ports of the services in the system namespace.
const (
	IntakePort  = 8443
	GatewayPort = 8444
)

// ModelsPort is where the watchdog serves models to the agent, only on the pod's loopback address.
const ModelsPort = 8447

// AgentProxyPort is where the watchdog serves the agent an HTTP proxy (CONNECT), only on the pod's loopback address.
const AgentProxyPort = 8448

// WatchdogMemory is the memory request of a watchdog's container in bytes: its budget is 48 MiB for 100,000 files, and git sometimes runs
// in the same container.
const WatchdogMemory = 64 << 20

// WatchdogMemoryLimit is the memory limit of a watchdog's container in bytes. It suffices for a workspace of 400,000 new files while git
// packs a large history in the same container. The bench memory-peak shows what the capture takes of it.
const WatchdogMemoryLimit = 1 << 30

// Names in the system and project namespaces.
const (
	IntakeService = "tidewaiter-intake"
	// ViewService is the Service at which kube-apiserver reaches the aggregated API. Managers serve it with intake's certificate.
	ViewService    = "tidewaiter-view"
	GatewayService = "tidewaiter-gateway"
	// CAConfigMap holds the CA bundle in every project, under CAKey.
	CAConfigMap = "tidewaiter-ca"
	CAKey       = "ca.crt"
)

// Environment of the agent's process.
const (
	EnvFeature      = "TIDEWAITER_FEATURE"
	EnvAttempt      = "TIDEWAITER_ATTEMPT"
	EnvTask         = "TIDEWAITER_TASK"
	EnvPrompt       = "TIDEWAITER_PROMPT"
	EnvInstructions = "TIDEWAITER_INSTRUCTIONS"
	// EnvTaskContext says what is known about the task apart from its instructions. Only agents of the runtime command have it, and only if
	// there is something to say.
	EnvTaskContext = "TIDEWAITER_TASK_CONTEXT"
	// EnvModels is the URL below which models answer, each dialect below its prefix, for example /anthropic. No key is needed.
	EnvModels = "TIDEWAITER_MODELS_URL"
	// EnvDialect is the dialect that the agent's backend speaks, and EnvWindow the context window of its model in tokens, if they are known.
	// Only agents of runtimes that speak every dialect have these variables.
	EnvDialect = "TIDEWAITER_DIALECT"
	EnvWindow  = "TIDEWAITER_CONTEXT_WINDOW"
	// EnvReplies is the number of the file descriptor on which the process may answer, one JSON object a line.
	EnvReplies = "TIDEWAITER_REPLY_FD"
)

// Author and AuthorEmail are the author of what Tidewaiter commits, unless a Feature names another one for its work.
const (
	Author      = "Tidewaiter"
	AuthorEmail = "tidewaiter@noreply.tidewaiter.dev"
)

// Refs of the trusted repository.
const (
	// RefBase is the commit that the Feature started from; it never moves.
	RefBase = "refs/tidewaiter/base"
	// RefChain is the newest checkpoint of the private chain, valid or not.
	RefChain = "refs/tidewaiter/chain"
	// RefDelivery is the last promoted commit; what is pushed.
	RefDelivery = "refs/tidewaiter/delivery"
	// RefReplaced, followed by "/" and a commit, keeps that commit: it was the delivery before its history was made one
	// commit on the base, or RefKnowledge before other documents took its place.
	RefReplaced = "refs/tidewaiter/replaced"
	// RefKnowledge is the newest commit with the documents of reviewers. It follows a commit that was the delivery then.
	RefKnowledge = "refs/tidewaiter/knowledge"
)

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import "slices"

// Sets of imports that several rows allow.
var (
	// apiTypes are the types of Kubernetes objects and what is needed to write them down: no client.
	apiTypes = []string{"api/", "k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/client-go/applyconfigurations/", "k8s.io/utils/ptr"}
	// apiClient is what talks to an API server.
	apiClient = append([]string{"k8s.io/client-go/", "k8s.io/utils/", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/controller-runtime/", "github.com/go-logr/logr"}, apiTypes...)
	core      = []string{"internal/core/"}
	// gatewayCore is what the gateway decides by: nothing of the life of a Feature, and nothing of an agent but its traffic.
	gatewayCore = []string{
		"internal/core/answers", "internal/core/compose", "internal/core/conversation", "internal/core/dialect", "internal/core/egress", "internal/core/ledger", "internal/core/models",
		"internal/core/policy", "internal/core/protocol", "internal/core/sidecalls",
	}
	// process is what a process of the system namespace is run with: flags, logs, metrics.
	process = []string{
		"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "k8s.io/klog/v2",
	}
)

// with joins lists of imports.
func with(lists ...[]string) []string { return slices.Concat(lists...) }

// rows is the architecture. Arrows point down: programs, controllers, adapters (kube for the API server; pod for
// disk, processes and sockets beside the agent; gateway for the traffic of pods; none knows another), core.
func rows() []row {
	return slices.Concat(coreRows(), podRows(), gatewayRows(), sharedRows(), kubeRows(), programRows(), watchdogRows(), testRows())
}

func coreRows() []row {
	const why = "core decides by plain values that manager, gateway and watchdog share: "
	return []row{
		{pkg: "internal/core/anomaly", why: why + "what is wrong with an agent, by its conversation, its files and its processes. `json/v1` reads the arguments of calls", allow: []string{"internal/core/plain", "internal/core/conversation", "internal/core/failures", "internal/core/policy", "internal/core/protocol", "github.com/go-json-experiment/json/v1"}, pure: true},
		{pkg: "internal/core/answers", why: why + "what models answer at the end of a turn, checked against Output templates", allow: []string{"github.com/google/jsonschema-go/jsonschema"}, pure: true},
		{pkg: "internal/core/bounds", why: why + "which repositories and branches a policy allows", allow: []string{"internal/core/plain", "internal/core/judge", "internal/core/policy", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/chain", why: why + "whether the record of a Feature is whole; the watchdog reads it", allow: core, pure: true},
		{pkg: "internal/core/changes", why: why + "the changes of a checkpoint, as the ledger keeps them for users", allow: core, pure: true},
		{pkg: "internal/core/checks", why: why + "rules that users write, in CEL", allow: []string{"github.com/google/cel-go/cel"}, pure: true},
		{pkg: "internal/core/protocol", why: why + "files, paths and JSON that processes exchange, no logic: PID 1 links it", allow: []string{"internal/core/policy"}, pure: true},
		{pkg: "internal/core/compose", why: why + "templates before what an agent sends", pure: true},
		{pkg: "internal/core/conversation", why: why + "what agents and models say, in no dialect. `json/v1` reads the arguments of calls", allow: []string{"internal/core/plain", "github.com/go-json-experiment/json/v1"}, pure: true},
		{pkg: "internal/core/deliveries", why: why + "which deliveries of others concern a Feature", allow: []string{"internal/core/plain", "internal/core/judge", "internal/core/policy", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/dialect", why: why + "wire formats of model providers, bytes in and bytes out. `jsontext` finds where a value is, and `json/v1` reads as encoding/json does, three times as fast", allow: []string{"internal/core/plain", "internal/core/conversation", "github.com/go-json-experiment/json/jsontext", "github.com/go-json-experiment/json/v1"}, pure: true},
		{pkg: "internal/core/session/directives", why: why + "what users tell agents while they work, and the result", allow: []string{"internal/core/plain", "internal/core/protocol", "internal/core/session/spoken", "internal/core/session/steering"}, pure: true},
		{pkg: "internal/core/egress", why: why + "which hosts a policy lets through", allow: []string{"internal/core/policy"}, pure: true},
		{pkg: "internal/core/failures", why: why + "who is to blame for a failed model call", allow: []string{"internal/core/protocol"}, pure: true},
		{pkg: "internal/core/gates", why: why + "what the exit of a gate means, and what the agent hears of it", allow: []string{"internal/core/gates/toolreport", "internal/core/plain", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/gates/toolreport", why: why + "what tools write about tests and coverage", allow: []string{"internal/core/plain", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/history", why: why + "which entries of a Feature's history follow from the records of a journal", allow: []string{"internal/core/gates", "internal/core/journal", "internal/core/plain", "internal/core/plans", "internal/core/protocol", "internal/core/review"}, pure: true},
		{pkg: "internal/core/instructions", why: why + "the text that an agent gets at the start of a task", allow: []string{"internal/core/judge", "internal/core/naming", "internal/core/plain", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/isolation", why: why + "which network policies open the network of pods", pure: true},
		{pkg: "internal/core/journal", why: why + "what a journal's lines mean; the watchdog writes them", allow: core, pure: true},
		{
			pkg: "internal/core/judge", why: why + "rules over changes; doublestar (no dependencies) matches names, x/text composes them",
			allow: []string{"internal/core/plain", "internal/core/protocol", "internal/core/policy", "internal/core/secrets", "github.com/bmatcuk/doublestar/v4", "golang.org/x/text/unicode/norm"},
			tests: []string{"internal/core/checks", "golang.org/x/text/cases"}, pure: true,
		},
		{pkg: "internal/core/knowledge", why: why + "which documents of docs/knowledge keep to their format, and which of them an agent gets for a task", allow: core, pure: true},
		{pkg: "internal/core/ledger", why: why + "the record of model calls, their cost, and whether a budget allows another one", allow: []string{"internal/core/plain"}, pure: true},
		{pkg: "internal/core/lifecycle", why: why + "what to do next about a Feature", allow: core, pure: true},
		{pkg: "internal/core/locks", why: why + "which Feature gets a lock", pure: true},
		{pkg: "internal/core/marks", why: why + "whether a text of others has what only Tidewaiter writes to agents", allow: core, pure: true},
		{pkg: "internal/core/models", why: why + "which backend and model answers", allow: []string{"internal/core/dialect", "internal/core/ledger", "internal/core/policy"}, pure: true},
		{pkg: "internal/core/naming", why: why + "names of what belongs to a Feature", pure: true},
		{pkg: "internal/core/notice", why: why + "the lines that an agent gets", allow: core, pure: true},
		{pkg: "internal/core/plain", why: why + "texts of agents, cut for storage and escaped for terminals", pure: true},
		{pkg: "internal/core/plans", why: why + "the question for a planner, which plans the watchdog takes, and what a plan makes of orders", allow: core, pure: true},
		{pkg: "internal/core/preflight", why: why + "what the facts of a cluster mean for Tidewaiter", allow: []string{"internal/core/plain", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/policy", why: why + "merging policies", pure: true},
		{pkg: "internal/core/retention", why: why + "which Checkpoints to keep", allow: core, pure: true},
		{pkg: "internal/core/review", why: why + "when reviewers look at the work, what they see, and which of their findings count", allow: core, pure: true},
		{pkg: "internal/core/revision", why: why + "which of two orders is newer; watchdog and intake compare in the same way", pure: true},
		{pkg: "internal/core/runtimes", why: why + "what each runtime can do, and the mode that it runs in", allow: []string{"internal/core/anomaly", "internal/core/instructions", "internal/core/notice", "internal/core/policy", "internal/core/protocol", "internal/core/sidecalls"}, pure: true},
		{pkg: "internal/core/secrets", why: why + "what looks like a secret, and texts without it. `jsontext` finds where a string is", allow: []string{"github.com/go-json-experiment/json/jsontext"}, pure: true},
		{pkg: "internal/core/session", why: why + "an agent's conversation with its models: the anomaly, the step against it, its words", allow: []string{"internal/core/anomaly", "internal/core/plain", "internal/core/conversation", "internal/core/dialect", "internal/core/session/directives", "internal/core/failures", "internal/core/journal", "internal/core/notice", "internal/core/policy", "internal/core/protocol", "internal/core/secrets", "internal/core/session/steering"}, pure: true},
		{pkg: "internal/core/session/spoken", why: why + "the lines by which an agent answers its supervisor", allow: []string{"internal/core/plain"}, pure: true},
		{pkg: "internal/core/session/steering", why: why + "the steps about an agent in trouble, and the words for it", allow: []string{"internal/core/anomaly", "internal/core/plain", "internal/core/conversation", "internal/core/failures", "internal/core/policy", "internal/core/protocol"}, pure: true},
		{pkg: "internal/core/sidecalls", why: why + "models for agents' own small calls: all that the gateway knows of runtimes", pure: true},
		{pkg: "internal/core/speech", why: why + "the client's side of each dialect: requests to a model, and its answers", allow: core, pure: true},
		{pkg: "internal/core/worker", why: why + "what the runtime worker says to models, and what it does next", allow: core, pure: true},
		{pkg: "internal/core/supervise", why: why + "what the watchdog does next", allow: core, pure: true},
	}
}

func podRows() []row {
	const why = "pod runs next to the agent, without a Kubernetes library: "
	unix := []string{"golang.org/x/sys/unix"}
	return []row{
		{
			pkg: "internal/pod/agentproxy", why: why + "an agent's connections to other hosts, from the pod's loopback to the gateway",
			allow: with(core, []string{"internal/pod/gatewayclient", "internal/pod/loopback", "internal/tunnel", "golang.org/x/time/rate"}),
			tests: []string{"internal/gateway/callers", "internal/gateway/egressproxy", "internal/testkit/script"},
		},
		{pkg: "internal/pod/durable", why: why + "files that a crash leaves whole"},
		{pkg: "internal/pod/eventlog", why: why + "lines of JSON, appended, bounded, rotated", allow: []string{"internal/pod/objects"}},
		{pkg: "internal/pod/gatewayclient", why: why + "how a watchdog reaches the gateway", allow: unix},
		{pkg: "internal/pod/git", why: why + "runs git, only on the trusted repository; no other package parses a patch", allow: with(core, unix, []string{"internal/pod/durable", "internal/pod/objects", "github.com/bluekeyes/go-gitdiff/gitdiff"})},
		{pkg: "internal/pod/intakeclient", why: why + "orders in, reports out", allow: with(core, []string{"internal/pod/spool"})},
		{pkg: "internal/pod/loopback", why: why + "what the watchdog's servers for the agent have in common"},
		{pkg: "internal/pod/modelclient", why: why + "asks a model, again where that helps", allow: core},
		{pkg: "internal/pod/modelproxy", why: why + "an agent's model calls, from the pod's loopback to the gateway", allow: with(core, []string{"internal/pod/gatewayclient", "internal/pod/loopback", "golang.org/x/sync/semaphore"}), tests: unix},
		{pkg: "internal/pod/objects", why: why + "Git objects in process", allow: with(core, []string{"github.com/pjbgf/sha1cd"})},
		{pkg: "internal/pod/proc", why: why + "starts, freezes and reaps; linked into PID 1", allow: with(core, unix, []string{"golang.org/x/net/bpf"})},
		{pkg: "internal/pod/runnerlink", why: why + "the socket between watchdog and runner", allow: core},
		{pkg: "internal/pod/spool", why: why + "reports on disk until acknowledged", allow: with(core, []string{"internal/pod/durable", "internal/redacted"})},
		{pkg: "internal/pod/tools", why: why + "what an agent without a writable workspace calls, over MCP on the pod's loopback", allow: with(core, []string{"internal/pod/git", "internal/pod/loopback", "internal/pod/objects", "github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp"})},
		{pkg: "internal/pod/trusted", why: why + "the volume that an agent never sees: its owner, its journal, its refs", allow: with(core, []string{"internal/pod/durable", "internal/pod/git", "internal/pod/objects"})},
		{pkg: "internal/pod/vitals", why: why + "what a process and its volumes use", tests: unix},
		{pkg: "internal/pod/workspace", why: why + "captures and restores what the agent writes", allow: with(core, unix, []string{"internal/pod/durable", "internal/pod/objects", "internal/pod/git"})},
	}
}

func gatewayRows() []row {
	const why = "gateway serves the pods' traffic, and does not know Kubernetes: "
	return []row{
		{
			pkg: "internal/gateway/backends", why: why + "the way to providers of models; the only place with the libraries of clouds",
			allow: with(core, []string{
				"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream", "github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi",
				"github.com/aws/aws-sdk-go-v2/aws/signer/v4", "github.com/aws/aws-sdk-go-v2/config", "github.com/hashicorp/golang-lru/v2", "golang.org/x/oauth2", "golang.org/x/oauth2/google",
			}),
			tests: []string{"internal/testkit/upstream"},
		},
		{pkg: "internal/gateway/callers", why: why + "who asks the gateway, and how much of it one Feature may have", allow: []string{"golang.org/x/time/rate"}},
		{pkg: "internal/gateway/egressproxy", why: why + "the CONNECT proxy of the gateway", allow: with(core, []string{"internal/gateway/callers", "internal/tunnel"}), tests: []string{"internal/testkit/script"}},
		{pkg: "internal/gateway/ledger", why: why + "the record of model calls, in SQLite or PostgreSQL; the only place with SQL", allow: with(core, []string{
			"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgconn", "github.com/jackc/pgx/v5/stdlib", "github.com/klauspost/compress/gzip", "github.com/klauspost/compress/s2", "github.com/pressly/goose/v3", "modernc.org/sqlite", "modernc.org/sqlite/lib", "golang.org/x/sys/unix",
		})},
		{pkg: "internal/gateway/modelserver", why: why + "model calls to backends", allow: with(core, []string{"internal/gateway/backends", "internal/gateway/callers", "golang.org/x/sync/semaphore", "github.com/klauspost/compress/zstd"}), tests: []string{"internal/testkit/detour", "internal/testkit/provider", "internal/testkit/upstream", "sigs.k8s.io/yaml"}},
	}
}

func sharedRows() []row {
	const why = "shared by processes at both ends of a connection: "
	return []row{
		{pkg: "internal/redacted", why: why + "what leaves a process for people has no secrets: lines of logs, and reports", allow: core},
		{pkg: "internal/tunnel", why: why + "copies between two connections; gateway and watchdog have one end each"},
	}
}

func kubeRows() []row {
	const why = "kube knows the API server and never the machine: "
	return []row{
		{
			pkg: "api/...", why: "the API has only types: a program that imports it gets no client and none of our logic",
			allow: []string{"api/", "k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "k8s.io/client-go/applyconfigurations/", "sigs.k8s.io/structured-merge-diff/v6/typed"},
			tests: with(apiClient, []string{"github.com/evanphx/json-patch/v5", "sigs.k8s.io/yaml"}),
		},
		{pkg: "internal/kube/clusterfacts", why: why + "what the API server says of a cluster, for the manager and the preflight", allow: with(apiTypes, []string{"internal/core/preflight", "internal/kube/nodes", "sigs.k8s.io/controller-runtime/pkg/client"})},
		{pkg: "internal/kube/conditions", why: why + "sets and summarises conditions", allow: with(apiTypes, []string{"internal/core/plain"})},
		{
			pkg: "internal/kube/desired", why: why + "objects as they should be; builds values and talks to nobody", pure: true,
			allow: with(core, apiTypes, []string{"internal/kube/features"}),
			tests: []string{"internal/kube/inert", "internal/kube/networkpolicy", "internal/kube/supervisorpolicy", "k8s.io/pod-security-admission/", "sigs.k8s.io/yaml"},
		},
		{pkg: "internal/kube/flow", why: why + "runs steps, writes status once, then emits events", allow: with(core, apiClient, []string{"internal/kube/conditions"})},
		{pkg: "internal/kube/identity", why: why + "token to pod to Feature; the gateway uses it too, so it stays small", allow: with(apiClient, []string{"internal/core/answers", "internal/core/compose", "internal/core/policy", "internal/core/protocol", "internal/kube/supervisorpolicy", "internal/kube/templates", "github.com/hashicorp/golang-lru/v2", "github.com/hashicorp/golang-lru/v2/", "golang.org/x/sync/singleflight"})},
		{pkg: "internal/kube/inert", why: why + "fields of the API that this version does not act on; only values", pure: true, allow: []string{"api/"}, tests: []string{"k8s.io/apimachinery/pkg/", "sigs.k8s.io/yaml"}},
		{pkg: "internal/kube/intake", why: why + "reports in, orders out, for pods that identity vouches for", allow: with(core, apiClient, []string{"internal/kube/identity", "internal/kube/leases", "internal/kube/runstatus", "internal/kube/features", "internal/kube/supervisorpolicy", "github.com/hashicorp/golang-lru/v2", "github.com/hashicorp/golang-lru/v2/", "golang.org/x/sync/singleflight"}), tests: []string{"internal/kube/flow"}},
		{pkg: "internal/kube/leases", why: why + "locks of contracts as Leases", allow: with(core, apiClient, []string{"internal/kube/flow"})},
		{pkg: "internal/kube/metrics", why: why + "what reports and Features make of Prometheus metrics", allow: with(core, apiClient, []string{"github.com/prometheus/client_golang/prometheus"}), tests: []string{"github.com/prometheus/client_golang/prometheus/", "sigs.k8s.io/yaml"}},
		{pkg: "internal/kube/nodes", why: why + "what nodes can do that may run a Feature's pods", allow: with(core, apiClient)},
		{pkg: "internal/kube/observe", why: why + "objects to what lifecycle decides on; reads values and talks to nobody", pure: true, allow: with(core, apiTypes, []string{"internal/kube/features", "internal/kube/conditions"})},
		{pkg: "internal/kube/pki", why: why + "the CA and the certificates of intake and gateway", allow: with(core, apiClient)},
		{pkg: "internal/kube/runstatus", why: why + "what reports make of a run; only values", pure: true, allow: with(core, apiTypes)},
		{pkg: "internal/kube/features", why: why + "Features to the core and back: requests, orders and status; values, and the manager's", pure: true, allow: with(core, apiTypes, []string{"internal/kube/conditions", "internal/kube/inert", "internal/kube/supervisorpolicy"}), tests: []string{"internal/kube/runstatus"}},
		{pkg: "internal/kube/modelbackends", why: why + "which backends gateways have in their configuration and in force; only values", pure: true, allow: with(apiTypes, []string{"internal/core/models", "internal/core/protocol", "sigs.k8s.io/yaml"}), tests: core},
		{pkg: "internal/kube/networkpolicy", why: why + "NetworkPolicies to the core; values, and the manager's", pure: true, allow: with(apiTypes, []string{"internal/core/isolation"})},
		{pkg: "internal/kube/supervisorpolicy", why: why + "SupervisorPolicies to the core, and merged for a Feature; only values, for manager and gateway", pure: true, allow: with(apiTypes, []string{"internal/core/bounds", "internal/core/checks", "internal/core/judge", "internal/core/ledger", "internal/core/policy"}), tests: []string{"internal/kube/inert", "sigs.k8s.io/yaml"}},
		{pkg: "internal/kube/templates", why: why + "Templates to the core; only values, for manager and gateway", pure: true, allow: []string{"api/", "internal/core/answers"}},
		{pkg: "internal/kube/view", why: why + "the aggregated API, for users; kube-apiserver vouches for them", allow: with(core, apiClient, []string{"internal/kube/identity", "internal/kube/intake", "internal/kube/features", "k8s.io/apiserver/pkg/"}), tests: []string{"k8s.io/apiserver/pkg/"}},
	}
}

func programRows() []row {
	const (
		controller = "a controller is about one kind and never imports another: they meet in the API server"
		program    = "a main package only starts its program"
	)
	kube := with(core, apiClient, []string{"internal/kube/"})
	return []row{
		{pkg: "controllers", why: "lists the controllers, one line each", allow: with(kube, []string{"controllers/"}), tests: []string{"sigs.k8s.io/yaml"}},
		{pkg: "controllers/checkpoint", why: controller, allow: kube},
		{pkg: "controllers/feature", why: controller, allow: kube},
		{pkg: "controllers/supervisorpolicy", why: controller, allow: kube},
		{pkg: "controllers/template", why: controller, allow: kube, tests: []string{"sigs.k8s.io/yaml"}},

		{pkg: "internal/app/process", why: "what the processes of the system namespace have in common: flags, logs and how they run", allow: with(apiClient, process, []string{"internal/redacted"})},
		{pkg: "internal/app/manager", why: "puts controllers and intake together; knows nothing of a machine", allow: with(kube, process, []string{"internal/app/process", "controllers", "controllers/"})},
		{pkg: "internal/app/gateway", why: "serves agents' traffic; of Kubernetes it needs only identity, its certificate and the list of metrics", allow: with(gatewayCore, apiClient, process, []string{"internal/app/process", "internal/gateway/backends", "internal/gateway/callers", "internal/gateway/egressproxy", "internal/gateway/ledger", "internal/gateway/modelserver", "internal/kube/identity", "internal/kube/metrics", "internal/kube/pki", "internal/kube/modelbackends", "internal/kube/supervisorpolicy", "github.com/hashicorp/golang-lru/v2", "github.com/hashicorp/golang-lru/v2/expirable"}), tests: []string{"internal/pod/modelproxy", "github.com/klauspost/compress/zstd", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "sigs.k8s.io/yaml"}},
		{pkg: "internal/app/preflight", why: "makes pods that try out a cluster, and removes them again; decides nothing", allow: with(core, apiClient, process, []string{"internal/app/preflight/probe", "internal/kube/clusterfacts", "internal/kube/modelbackends"})},
		{pkg: "internal/app/preflight/probe", why: "what these pods run: it does what the programs of a Feature's pod do at their start", allow: with(core, []string{"internal/pod/proc", "internal/pod/workspace"})},
		{pkg: "internal/app/runner", why: "PID 1 next to the agent: small, no secret, no API client", allow: []string{"internal/core/protocol", "internal/pod/runnerlink", "internal/pod/proc", "golang.org/x/sys/unix"}},
		{
			pkg: "internal/app/worker", why: "the agent of the runtime worker: a client of the watchdog's two servers, as any agent is; no API client, no Git, no files",
			allow: with(core, []string{"internal/pod/modelclient", "internal/redacted", "github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp"}),
			tests: []string{"internal/pod/git", "internal/pod/objects", "internal/pod/tools"},
		},
		{pkg: "cmd/gateway", why: program, allow: []string{"internal/app/gateway"}},
		{pkg: "cmd/manager", why: program, allow: []string{"internal/app/manager"}},
		{pkg: "cmd/runner", why: program, allow: []string{"internal/app/runner"}},
		{pkg: "cmd/tidewaiter", why: program, allow: []string{"internal/app/preflight"}},
		{pkg: "cmd/watchdog", why: program, allow: []string{"internal/app/watchdog"}},
		{pkg: "cmd/worker", why: program, allow: []string{"internal/app/worker"}},
	}
}

// watchdogRows are the services of the watchdog. Only the loop knows of all of them, and of the runner; each of the others is
// tested with a directory and a repository.
func watchdogRows() []row {
	const (
		why = "a service of the watchdog does not know the loop: "
		dog = "internal/app/watchdog/"
		git = "internal/pod/git"
		obj = "internal/pod/objects"
		vol = "internal/pod/trusted"
	)
	return []row{
		{
			pkg: "internal/app/watchdog", why: "the loop next to the agent: everything it needs to decide comes in orders, and services carry out its acts",
			allow: with(core, []string{dog, "internal/pod/", "internal/redacted"}), tests: []string{"golang.org/x/sys/unix", "github.com/modelcontextprotocol/go-sdk/mcp"},
		},
		{pkg: dog + "checkpoint", why: why + "capture, check, act, record; rollbacks and patches", allow: with(core, []string{
			dog + "faults", dog + "health", dog + "judging", dog + "steps", git, obj, vol,
			"internal/pod/eventlog", "internal/pod/tools", "internal/pod/vitals", "internal/pod/workspace",
		})},
		{pkg: dog + "consult", why: why + "questions of the watchdog itself to models, by its own role", allow: with(core, []string{"internal/pod/gatewayclient", "internal/pod/modelclient"}),
			tests: []string{"internal/gateway/backends", "internal/gateway/modelserver"}},
		{pkg: dog + "deliver", why: why + "review, squash, commit documents of reviewers, push", allow: with(core, []string{dog + "checkpoint", dog + "faults", dog + "judging", dog + "library", dog + "remote", dog + "steps", git, obj, vol})},
		{pkg: dog + "direct", why: why + "what users tell the agent, from orders to reports", allow: core},
		{pkg: dog + "faults", why: why + "errors in the words of the protocol", allow: with(core, []string{dog + "remote", git, obj, vol, "internal/pod/spool"})},
		{pkg: dog + "handover", why: why + "gives the gateway's ledger the changes of checkpoints, the steps of steering and the history", allow: with(core, []string{dog + "steps", "internal/pod/durable", git, obj, vol, "internal/pod/gatewayclient", "internal/redacted"})},
		{pkg: dog + "health", why: why + "problems with a workaround in use now", allow: []string{"internal/core/plain", "internal/pod/vitals"}},
		{pkg: dog + "inspect", why: why + "reads a trusted volume for users, and does not write", allow: with(core, []string{dog + "steps", git, obj, vol, "internal/pod/eventlog"})},
		{pkg: dog + "judging", why: why + "gives trees and contents to `core/judge`", allow: with(core, []string{git, obj, "internal/pod/workspace"})},
		{pkg: dog + "library", why: why + "documents of the project's knowledge in a tree", allow: with(core, []string{git, obj})},
		{pkg: dog + "remote", why: why + "the Feature's repository with its Secret; the only one that reads credentials", allow: with(core, []string{git})},
		{pkg: dog + "reporter", why: why + "sends each report, and never twice", allow: with(core, []string{dog + "health", dog + "steps"}), tests: []string{vol}},
		{pkg: dog + "retain", why: why + "keeps the trusted repository small", allow: with(core, []string{dog + "checkpoint", dog + "steps", git, obj, vol})},
		{pkg: dog + "steer", why: why + "hears the agent's conversation with models, and steers it", allow: with(core, []string{"internal/pod/modelproxy"}), tests: []string{dog + "direct"}},
		{pkg: dog + "steps", why: why + "where a crash may come", allow: []string{vol}},
		{pkg: dog + "toolbackend", why: why + "an agent's tool calls as events for the loop", allow: with(core, []string{dog + "checkpoint", obj, "internal/pod/tools"}), tests: []string{vol}},
	}
}

func testRows() []row {
	const why = "testkit is what tests share; no program imports it: "
	return []row{
		{pkg: "internal/arch", why: "reads sources and imports nothing of them"},
		{pkg: "internal/testkit/addresses", why: why + "addresses that stay a test's own"},
		{pkg: "internal/testkit/attempt", why: why + "a Feature that runs, as far as an API server can tell", allow: with(apiClient, []string{"internal/core/protocol", "internal/core/naming", "internal/testkit/kubetest"})},
		{pkg: "internal/testkit/container", why: why + "a container's worth of processes", allow: []string{"golang.org/x/sys/unix"}},
		{pkg: "internal/testkit/detour", why: why + "requests that would have a provider act elsewhere"},
		{pkg: "internal/testkit/engine", why: why + "a watchdog without the rest of the world, for benchmarks", allow: with(core, []string{"internal/app/watchdog", "internal/pod/git", "internal/pod/objects", "internal/pod/workspace"})},
		{pkg: "internal/testkit/fakeintake", why: why + "an intake that a test scripts; what it refuses is what intake refuses", allow: with(core, []string{"internal/kube/runstatus"})},
		{pkg: "internal/testkit/filled", why: why + "values of which no field is zero", allow: apiTypes},
		{pkg: "internal/testkit/gateway", why: why + "model calls through a gateway without the API server, for benchmarks", allow: with(core, []string{"internal/gateway/backends", "internal/gateway/callers", "internal/gateway/egressproxy", "internal/gateway/ledger", "internal/gateway/modelserver"})},
		{pkg: "internal/testkit/gitspy", why: why + "a git whose calls a test can count"},
		{pkg: "internal/testkit/gitserver", why: why + "a Git server; the testbed's image holds it too"},
		{pkg: "internal/testkit/kubetest", why: why + "a real API server for tests", allow: with(apiClient, []string{"k8s.io/apiextensions-apiserver/", "sigs.k8s.io/yaml"})},
		{pkg: "internal/testkit/leaves", why: why + "the fields of a type that hold no others"},
		{pkg: "internal/testkit/podstart", why: why + "the first process of an agent's container, as a small program", allow: []string{"internal/core/protocol", "internal/testkit/container", "golang.org/x/sys/unix"}},
		{pkg: "internal/testkit/postgres", why: why + "a real PostgreSQL for tests, which one of them may kill", allow: []string{"github.com/jackc/pgx/v5/stdlib"}},
		{pkg: "internal/testkit/program", why: why + "one of our programs as a process of its own"},
		{pkg: "internal/testkit/provider", why: why + "a model provider that plays scripts; the testbed's image holds it too", allow: []string{"sigs.k8s.io/yaml"}},
		{pkg: "internal/testkit/reports", why: why + "reports as watchdogs send them", allow: core},
		{pkg: "internal/testkit/reverseproxy", why: why + "the baseline of what benchmarks measure of the gateway; links nothing else"},
		{pkg: "internal/testkit/script", why: why + "a connection whose other side follows a script"},
		{pkg: "internal/testkit/upstream", why: why + "a provider's server: HTTP/2 over TLS, on connections that a test can make it forget"},
		{pkg: "internal/testkit/schema", why: why + "the API server's own validation of a status, in process", allow: with(apiTypes, []string{"k8s.io/apiextensions-apiserver/", "sigs.k8s.io/yaml"})},
		{pkg: "hack/gen/apinames", why: "reads the one list of condition types and reasons from its source"},
		{pkg: "hack/gen/chart", why: "writes the Helm chart from what config gives, for the versions of Kubernetes that preflight takes", allow: []string{"internal/core/preflight", "sigs.k8s.io/yaml"}},
		{pkg: "hack/gen/reasons", why: "gives the core the API's names; linked with nothing that uses them", allow: []string{"hack/gen/apinames"}},
		{pkg: "internal/testkit/workroom", why: why + "a trusted volume and a workspace, for the services of a watchdog", allow: with(core, []string{
			"internal/app/watchdog/", "internal/pod/git", "internal/pod/objects", "internal/pod/trusted", "internal/pod/workspace", "internal/testkit/container",
		})},
		{pkg: "hack/gen/reference", why: "writes reference pages from what the code itself lists", allow: with(core, apiTypes, []string{
			"hack/gen/apinames", "internal/app/gateway", "internal/app/manager", "internal/app/preflight", "internal/app/watchdog/inspect", "internal/app/worker",
			"internal/kube/inert", "internal/kube/metrics", "github.com/spf13/pflag", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "sigs.k8s.io/yaml",
		})},
		{pkg: "hack/gen/secrets", why: "writes the rules for secrets from the rules of gitleaks; knows no other part of ours", allow: []string{"github.com/BurntSushi/toml", "hack/gomodule"}},
		{pkg: "hack/gomodule", why: "fetches pinned modules; needs nothing of ours"},
		{pkg: "hack/house", why: "counts what stands in the sources; needs nothing of ours"},
		{pkg: "hack/prose", why: "measures the English of what people read; needs nothing of ours", allow: []string{"sigs.k8s.io/yaml"}},
		{pkg: "hack/testsummary", why: "reads test results; needs nothing of ours"},
		{pkg: "hack/vulncheck", why: "runs govulncheck with a pinned database", allow: []string{"hack/gomodule"}},
		{
			pkg: "test/bench", why: "measures engine, checks, freezer, the way to models and its supervision as a watchdog, a runner and a gateway use them",
			tests: with(core, []string{"test/bench/board", "internal/app/watchdog", "internal/app/watchdog/consult", "internal/app/watchdog/steer", "internal/pod/gatewayclient", "internal/pod/git", "internal/pod/modelproxy", "internal/gateway/modelserver", "internal/pod/objects", "internal/pod/proc", "internal/pod/workspace", "golang.org/x/sync/errgroup", "golang.org/x/sys/unix"}),
		},
		{pkg: "test/bench/board", why: "prints what benchmarks have measured; needs nothing of ours"},
		{pkg: "test/clusterbench", why: "measures what Features cost a cluster, as its metrics and histories tell", tests: with(apiClient, []string{
			"internal/core/protocol", "test/bench/board", "test/cluster", "github.com/prometheus/client_model/", "github.com/prometheus/common/",
		})},
		{pkg: "test/eval", why: "plays labelled runs to the supervisor, and some through the proxy of a watchdog, as the agents' clients would send them", tests: with(core, []string{"internal/app/watchdog/steer", "internal/pod/modelproxy"})},
		{pkg: "test/eval/reviewers", why: "plays labelled breakpoints and small tasks, with a real model if there is one", tests: with(core, []string{"internal/pod/modelclient", "internal/testkit/provider"})},
		{pkg: "test/authority", why: "tries what roles allow on a real API server", tests: with(apiClient, []string{
			"controllers", "internal/core/protocol", "internal/core/naming", "internal/kube/identity", "internal/testkit/attempt", "internal/testkit/kubetest",
		})},
		{pkg: "test/docs", why: "holds pages to their links, and applies what they show", tests: with(apiClient, []string{"api/v1alpha1", "internal/testkit/kubetest", "sigs.k8s.io/yaml"})},
		{pkg: "test/lists", why: "finds where a runtime, a dialect or an anomaly is missing; reads sources and the forge's workflows", tests: with(core, []string{"api/v1alpha1", "internal/kube/metrics", "sigs.k8s.io/yaml"})},
		{pkg: "test/processes", why: "tries manager and gateway together on a real API server", tests: with(apiClient, []string{
			"internal/app/gateway", "internal/app/manager", "internal/core/protocol", "internal/testkit/addresses", "internal/testkit/kubetest", "internal/testkit/program",
		})},
		{pkg: "test/demo", why: "uses Tidewaiter as a user does: through its API", allow: with(apiClient, []string{"test/cluster"})},
		{pkg: "test/e2e", why: "uses Tidewaiter as a user does, and checks what the processes agreed on", allow: with(apiClient, []string{"test/cluster", "internal/core/protocol", "internal/core/locks"})},
		{pkg: "test/undeploy", why: "removes Tidewaiter as a user does", allow: with(apiClient, []string{"test/cluster"})},
		{pkg: "test/engine", why: "a program around testkit that benchmarks measure", allow: []string{"internal/testkit/engine"}},
		{pkg: "test/gateway", why: "a program around testkit that benchmarks measure", allow: []string{"internal/testkit/gateway"}},
		{pkg: "test/gitserver", why: "the testbed's program around testkit", allow: []string{"internal/testkit/gitserver"}},
		{pkg: "test/mcpagent", why: "an agent's client for scripts; the testbed's image holds it", allow: []string{"github.com/modelcontextprotocol/go-sdk/mcp"}},
		{pkg: "test/modelprovider", why: "the testbed's program around testkit", allow: []string{"internal/testkit/provider"}},
		{pkg: "test/reverseproxy", why: "a program around testkit that benchmarks measure", allow: []string{"internal/testkit/reverseproxy"}},
		{pkg: "test/cluster", why: "the cluster as demo and e2e see it", allow: with(apiClient, []string{"sigs.k8s.io/yaml"})},
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"strings"
)

func ruleCases() map[string]ruleCase {
	all := map[string]ruleCase{}
	for _, cases := range []map[string]ruleCase{featureCases, inertCases, changeCases, deliveryCases, templateCases, keyCases} {
		maps.Copy(all, cases)
	}
	for name, c := range executionCases {
		all["feature, "+name] = under(c, feature, "spec.execution")
	}
	all["feature, budget"] = under(costCase, feature, "spec.budget")
	for _, field := range []string{"selector", "namespaceSelector"} {
		for name, c := range selectorCases {
			all[field+", "+name] = under(c, policy, "spec."+field)
		}
	}
	for name, c := range resourceCases {
		all["feature, "+name] = under(c, feature, "spec.agent.resources")
	}
	for name, c := range schedulingCases {
		all["feature, "+name] = under(c, feature, "spec.agent.scheduling")
	}
	for _, part := range []string{"defaults", "overrides"} {
		for name, c := range resourceCases {
			all["policy "+part+", "+name] = under(c, policy, "spec."+part+".agents.resources")
		}
		for name, c := range schedulingCases {
			all["policy "+part+", "+name] = under(c, policy, "spec."+part+".agents.scheduling")
		}
		for name, c := range executionCases {
			all["policy "+part+", "+name] = under(c, policy, "spec."+part+".execution")
		}
		for _, whose := range []string{"budget", "budget.project", "budget.global"} {
			all["policy "+part+", "+whose] = under(costCase, policy, "spec."+part+"."+whose)
		}
		for name, c := range policyCases {
			all["policy "+part+", "+name] = under(c, policy, "spec."+part)
		}
	}
	return all
}

// costCase holds for every budget.
var costCase = ruleCase{
	field:   "maxCost",
	accept:  `{maxCost: "0.000001", maxInputTokens: 1}`,
	reject:  `{maxCost: "0.00"}`,
	message: `maxCost must be a decimal number more than 0 such as "12.50", with at most 6 digits after the point`,
}

// resourceCases hold for Features and policies.
var resourceCases = map[string]ruleCase{
	"negative limits": {
		field:   "limits",
		accept:  "{limits: {cpu: 2, memory: 1.5Gi}}",
		reject:  `{limits: {cpu: 2, memory: "-1"}}`,
		message: "limits must be quantities such as 500m or 4Gi",
	},
	"negative requests": {
		field:   "requests",
		accept:  "{requests: {cpu: 100m}}",
		reject:  "{requests: {cpu: -100m}}",
		message: "requests must be quantities such as 500m or 4Gi",
	},
}

// schedulingCases hold for Features and policies.
var schedulingCases = map[string]ruleCase{
	"a label of a node that is none": {
		field:  "nodeSelector",
		accept: "{nodeSelector: {example.com/pool: agents, zone: ''}}", reject: "{nodeSelector: {'my pool': agents}}",
		message: "a key of nodeSelector must be the key of a label, for example example.com/pool",
	},
	"a priority of the cluster itself": {
		field:  "priorityClassName",
		accept: "{priorityClassName: ''}", reject: "{priorityClassName: system-node-critical}",
		message: "priorityClassName must be the name of a PriorityClass that does not begin with system-: those classes keep the cluster itself alive",
	},
	"a taint of the cluster itself": {
		field:  "tolerations[0].key",
		accept: "{tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}", reject: "{tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists}]}",
		message: "key must be the key of a taint, for example example.com/agents, but not of node.kubernetes.io: a pod would stay on a lost or drained node",
	},
	"a value of any": {
		field:  "tolerations[0]",
		accept: "{tolerations: [{key: spot, operator: Equal, value: a}]}", reject: "{tolerations: [{key: spot, operator: Exists, value: a}]}",
		message: "value must be left out where operator is Exists",
	},
	"seconds for nothing": {
		field:  "tolerations[0]",
		accept: "{tolerations: [{key: spot, effect: NoExecute, tolerationSeconds: 60}]}", reject: "{tolerations: [{key: spot, effect: NoSchedule, tolerationSeconds: 60}]}",
		message: "tolerationSeconds needs the effect NoExecute",
	},
	"a topology that is no label": {
		field:   "topologySpreadConstraints[0].topologyKey",
		accept:  "{topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1}]}",
		reject:  "{topologySpreadConstraints: [{topologyKey: 'a zone', whenUnsatisfiable: ScheduleAnyway, maxSkew: 1}]}",
		message: "topologyKey must be the key of a label, for example topology.kubernetes.io/zone",
	},
}

// under puts a case of a part of the schema to a place where that part is used.
func under(c ruleCase, base, path string) ruleCase {
	keys := strings.Split(path, ".")
	nest := func(patch string) string {
		return strings.Join(keys, ": {") + ": " + patch + strings.Repeat("}", len(keys)-1)
	}
	c.base, c.accept, c.reject = base, nest(c.accept), nest(c.reject)
	c.field = path + "." + c.field
	return c
}

// inertCases are about fields of Features that this version does not act on. kube/inert lists them.
var inertCases = map[string]ruleCase{
	"Features to wait for": {
		base: feature, field: "spec.dependsOn",
		accept:  "spec: {dependsOn: []}",
		reject:  "spec: {dependsOn: [other]}",
		message: "this version does not act on spec.dependsOn: remove it, and create the Feature when the others are Delivered",
	},
	"a pull request": {
		base: feature, field: "spec.delivery.pullRequest",
		accept:  "spec: {delivery: {push: true}}",
		reject:  "spec: {delivery: {pullRequest: {}}}",
		message: "this version does not act on spec.delivery.pullRequest: remove it, and open the pull request from the delivered branch",
	},
}

var featureCases = map[string]ruleCase{
	"a plan to approve that goes with its pod": {
		base: feature, field: "spec",
		accept:  "spec: {planning: Auto, workspace: {ephemeral: true}}",
		reject:  "spec: {planning: Approve, workspace: {ephemeral: true}}",
		message: "spec.planning Approve needs volumes that outlive a pod: remove spec.workspace.ephemeral, or set planning to Auto",
	},
	"a name of 53 characters": {
		base: feature, field: "",
		accept:  "metadata: {name: " + strings.Repeat("n", 52) + "}",
		reject:  "metadata: {name: " + strings.Repeat("n", 53) + "}",
		message: "metadata.name must be at most 52 characters: names of Jobs, volumes and Checkpoints are derived from it",
	},
	"a name with a dot": {
		base: feature, field: "",
		accept:  "metadata: {name: 1-login}",
		reject:  "metadata: {name: add.login}",
		message: "metadata.name must be lower-case letters, digits and '-' (no dots): names and labels of children are derived from it",
	},
	"a Feature that waits for itself": {
		base: feature, field: "",
		accept:  "spec: {dependsOn: [other]}",
		reject:  "spec: {dependsOn: [other, add-login]}",
		message: "a Feature cannot depend on itself: remove its name from spec.dependsOn",
	},
	"two prompts": {
		base: feature, field: "spec",
		accept:  "spec: {prompt: null, promptFrom: {configMapKeyRef: {name: prompts, key: login}}}",
		reject:  "spec: {promptFrom: {configMapKeyRef: {name: prompts, key: login}}}",
		message: "exactly one of prompt and promptFrom must be set",
	},
	"more than a status leaves room for": {
		base: feature, field: "spec",
		accept:  "spec: {plan: {milestones: [{name: m, tasks: [{name: a, instructions: " + strings.Repeat("i", 60_000) + "}, {name: b, instructions: " + strings.Repeat("i", 60_000) + "}]}]}}",
		reject:  "spec: {plan: {milestones: [{name: m, tasks: [{name: a, instructions: " + strings.Repeat("i", 65_536) + "}, {name: b, instructions: " + strings.Repeat("i", 65_536) + "}]}]}}",
		message: "the spec is too large: its texts and lists are limited to 131072 characters in all. Entries of sets count twice, and each entry counts 16 more. Shorten prompt, instructions, areas, files, answers or directives, remove requests that are done, or keep long texts in files of the repository",
	},
	"a gate that does not exist": {
		base: feature, field: "spec",
		accept:  "spec: {gates: [{name: unit, command: [make]}], plan: {milestones: [{name: m, tasks: [{name: t, gates: [unit]}]}]}}",
		reject:  "spec: {gates: [{name: unit, command: [make]}], plan: {milestones: [{name: m, tasks: [{name: t, gates: [lint]}]}]}}",
		message: "a task names a gate that spec.gates does not have",
	},
	"a gate where there are none": {
		base: feature, field: "spec",
		accept:  "spec: {plan: {milestones: [{name: m, tasks: [{name: t}]}]}}",
		reject:  "spec: {plan: {milestones: [{name: m, tasks: [{name: t, gates: [unit]}]}]}}",
		message: "a task names a gate but spec.gates is empty",
	},
	"a gate before the delivery that does not exist": {
		base: feature, field: "spec",
		accept:  "spec: {gates: [{name: unit, command: [make]}], delivery: {gates: [unit]}}",
		reject:  "spec: {gates: [{name: unit, command: [make]}], delivery: {gates: [lint]}}",
		message: "spec.delivery.gates names a gate that spec.gates does not have",
	},
	"a gate before the delivery of work that goes with its pod": {
		base: feature, field: "spec",
		accept:  "spec: {workspace: {ephemeral: true}, gates: [{name: unit, command: [make]}]}",
		reject:  "spec: {workspace: {ephemeral: true}, gates: [{name: unit, command: [make]}], delivery: {gates: [unit]}}",
		message: "spec.delivery.gates needs volumes that outlive a pod: remove spec.workspace.ephemeral or the gates",
	},
	"a gate without time": {
		base: feature, field: "spec.gates[0].timeout",
		accept:  "spec: {gates: [{name: unit, command: [make], timeout: 1h30m}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], timeout: 0s}]}",
		message: "timeout must be a positive duration, for example 10m",
	},
	"a gate with a PATH of its own": {
		base: feature, field: "spec.gates[0].env",
		accept:  "spec: {gates: [{name: unit, command: [make], env: [{name: NODE_ENV, value: test}, {name: CI, value: 'false'}]}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], env: [{name: NODE_ENV, value: test}, {name: PATH, value: /opt}]}]}",
		message: "env of a gate cannot set PATH, HOME, TMPDIR or a variable of the proxy: Tidewaiter sets them. To extend PATH, set it in command, for example [sh, -c, 'PATH=/opt/bin:$PATH make test']",
	},
	"a gate with a reserved variable": {
		base: feature, field: "spec.gates[0].env[0].name",
		accept:  "spec: {gates: [{name: unit, command: [make], env: [{name: TIDE}]}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], env: [{name: TIDEWAITER_TASK}]}]}",
		message: "environment names starting with TIDEWAITER_ are reserved",
	},
	"environments of gates that are too large": {
		base: feature, field: "spec",
		accept:  "spec: {gates: [{name: unit, command: [make], env: [{name: A, value: " + strings.Repeat("v", 30_000) + "}]}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], env: [{name: A, value: " + strings.Repeat("v", 32_768) + "}, {name: B, value: " + strings.Repeat("v", 32_768) + "}, {name: C, value: " + strings.Repeat("v", 32_768) + "}, {name: D, value: " + strings.Repeat("v", 32_768) + "}]}]}",
		message: "the spec is too large: its texts and lists are limited to 131072 characters in all. Entries of sets count twice, and each entry counts 16 more. Shorten prompt, instructions, areas, files, answers or directives, remove requests that are done, or keep long texts in files of the repository",
	},
	"a gate with requirements and no report": {
		base: feature, field: "spec.gates[0]",
		accept:  "spec: {gates: [{name: unit, command: [make], report: {format: JUnit, path: out/junit.xml}, require: {minTests: 1}}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], require: {minTests: 1}}]}",
		message: "require needs report: say in which file, and in which format, the command writes what it found",
	},
	"a gate that requires tests of coverage": {
		base: feature, field: "spec.gates[0]",
		accept:  "spec: {gates: [{name: unit, command: [make], report: {format: TAP, path: out.tap}, require: {minTests: 1}}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], report: {format: LCOV, path: out.lcov}, require: {minTests: 1}}]}",
		message: "require.minTests needs a report of tests: set report.format to JUnit, GoTest or TAP",
	},
	"a gate that requires coverage of tests": {
		base: feature, field: "spec.gates[0]",
		accept:  "spec: {gates: [{name: unit, command: [make], report: {format: Cobertura, path: out.xml}, require: {minCoveragePercent: 100}}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], report: {format: GoTest, path: out.jsonl}, require: {minCoveragePercent: 80}}]}",
		message: "require.minCoveragePercent needs a report of coverage: set report.format to LCOV or Cobertura",
	},
	"a gate that requires nothing": {
		base: feature, field: "spec.gates[0].require",
		accept:  "spec: {gates: [{name: unit, command: [make], report: {format: LCOV, path: out}, require: {minCoveragePercent: 1}}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], report: {format: LCOV, path: out}, require: {}}]}",
		message: "require must set minTests or minCoveragePercent",
	},
	"a report elsewhere": {
		base: feature, field: "spec.gates[0].report.path",
		accept:  "spec: {gates: [{name: unit, command: [make], report: {format: LCOV, path: out/..a/.gitb}}]}",
		reject:  "spec: {gates: [{name: unit, command: [make], report: {format: LCOV, path: out/../../a}}]}",
		message: "path must be the path of a file from the root of the repository, for example build/junit.xml: without '/' at its ends, without '.', '..' and '.git'",
	},
	"runtime command without a command": {
		base: feature, field: "spec.agent",
		accept:  "spec: {agent: {runtime: claude-code, command: null}}",
		reject:  "spec: {agent: {command: null}}",
		message: "runtime command needs agent.command: an image's entrypoint cannot be known",
	},
	"a runtime without an image": {
		base: feature, field: "spec.agent",
		accept:  "spec: {agent: {runtime: worker, image: null, command: null}}",
		reject:  "spec: {agent: {image: null}}",
		message: "this runtime needs agent.image: an image with the agent's program and your toolchain",
	},
	"the built-in worker with an image": {
		base: feature, field: "spec.agent",
		accept:  "spec: {agent: {runtime: worker, image: null, command: null, args: [--max-turns=50]}}",
		reject:  "spec: {agent: {runtime: worker, command: null}}",
		message: "runtime worker is a program of Tidewaiter's own image: leave out agent.image and agent.command",
	},
	"the built-in worker with a command": {
		base: feature, field: "spec.agent",
		accept:  "spec: {agent: {runtime: worker, image: null, command: []}}",
		reject:  "spec: {agent: {runtime: worker, image: null, command: [sh]}}",
		message: "runtime worker is a program of Tidewaiter's own image: leave out agent.image and agent.command",
	},
	"a reserved variable": {
		base: feature, field: "spec.agent.env[0].name",
		accept:  "spec: {agent: {env: [{name: MY_TIDEWAITER_, value: x}]}}",
		reject:  "spec: {agent: {env: [{name: TIDEWAITER_TASK, value: x}]}}",
		message: "environment names starting with TIDEWAITER_ are reserved",
	},
	"a deadline that Go cannot read": {
		base: feature, field: "spec.activeDeadline",
		accept:  "spec: {activeDeadline: 1h30m}",
		reject:  "spec: {activeDeadline: 1d}",
		message: "activeDeadline must be a positive duration, for example 4h or 90m",
	},
	"a negative time to live": {
		base: feature, field: "spec.ttlAfterFinished",
		accept:  "spec: {ttlAfterFinished: 0s}",
		reject:  "spec: {ttlAfterFinished: -1s}",
		message: "ttlAfterFinished must be a duration, for example 24h",
	},
	"planned files that name none": {
		base: feature, field: "spec.plan.files",
		accept:  "spec: {plan: {files: {delete: [old.txt]}}}",
		reject:  "spec: {plan: {files: {}}}",
		message: "files must name at least one path to create, modify or delete; leave files out to allow every path",
	},
	"a revision that is an option": {
		base: feature, field: "spec.repository.revision",
		accept:  "spec: {repository: {revision: release/v1.2}}",
		reject:  "spec: {repository: {revision: --upload-pack=x}}",
		message: "revision must be a branch, tag or commit name",
	},
	"a url with a password": {
		base: feature, field: "spec.repository.url",
		accept:  `spec: {repository: {url: "https://git.example.com:8443/~team/shop.git"}}`,
		reject:  `spec: {repository: {url: "https://me:secret@git.example.com/shop.git"}}`,
		message: "url must be https://host/path without user, password, query or spaces; credentials belong in credentialsSecretRef",
	},
	"a request for two things": {
		base: feature, field: "spec.requests[0]",
		accept:  "spec: {requests: [{id: r1, rollback: {checkpoint: add-login-1}}, {id: r2, checkpoint: {}}, {id: r3, retry: {}}, {id: r4, resetBreaker: {}}, {id: r5, approvePlan: {hash: x}}, {id: r6, release: {}}, {id: r7, replan: {}}]}",
		reject:  "spec: {requests: [{id: r1, checkpoint: {}, retry: {}}]}",
		message: "a request needs exactly one of rollback, checkpoint, retry, resetBreaker, release, approvePlan and replan",
	},
	"a rollback of paths without paths": {
		base: feature, field: "spec.requests[0].rollback",
		accept:  "spec: {requests: [{id: r1, rollback: {}}, {id: r2, rollback: {paths: [web]}}, {id: r3, rollback: {kind: Paths, paths: [web]}}, {id: r4, rollback: {kind: Full, checkpoint: add-login-1}}]}",
		reject:  "spec: {requests: [{id: r1, rollback: {kind: Paths, paths: []}}]}",
		message: "kind Paths needs paths, and no other kind takes any",
	},
	"a smart rollback of paths": {
		base: feature, field: "spec.requests[0].rollback",
		accept:  "spec: {requests: [{id: r1, rollback: {kind: Smart}}]}",
		reject:  "spec: {requests: [{id: r1, rollback: {kind: Smart, paths: [web]}}]}",
		message: "kind Paths needs paths, and no other kind takes any",
	},
	"a storage class for no volume": {
		base: feature, field: "spec.workspace",
		accept:  "spec: {workspace: {storageClassName: fast}}",
		reject:  "spec: {workspace: {storageClassName: fast, ephemeral: true}}",
		message: "storageClassName has no meaning when ephemeral is true",
	},
	"a tiny workspace": {
		base: feature, field: "spec.workspace.size",
		accept:  "spec: {workspace: {size: 16Mi}}",
		reject:  "spec: {workspace: {size: 16M}}",
		message: "size must be a quantity from 16Mi to 1Pi, for example 5Gi",
	},
}

var deliveryCases = map[string]ruleCase{
	"approval of work that is gone": {
		base: feature, field: "spec",
		accept:  "spec: {delivery: {approval: Required}, workspace: {ephemeral: false}}",
		reject:  "spec: {delivery: {approval: Required}, workspace: {ephemeral: true}}",
		message: "delivery.approval Required needs persistent volumes: remove workspace.ephemeral, or the work would be gone before it is approved",
	},
	"a branch that climbs": {
		base: feature, field: "spec.delivery.branch",
		accept:  "spec: {delivery: {branch: team/add-login_2.0}}",
		reject:  "spec: {delivery: {branch: team/../main}}",
		message: "branch must be a valid Git branch name made of letters, digits, '.', '_', '/' and '-'",
	},
	"a pull request to nowhere": {
		base: feature, field: "spec.delivery.pullRequest.base",
		accept:  "spec: {delivery: {pullRequest: {base: release/v1}}}",
		reject:  "spec: {delivery: {pullRequest: {base: refs/heads/x.lock}}}",
		message: "base must be a valid Git branch name made of letters, digits, '.', '_', '/' and '-'",
	},
	"an author with a second line": {
		base: feature, field: "spec.delivery.author.name",
		accept:  "spec: {delivery: {author: {name: Zoë d'Example, email: zoe@example.com}}}",
		reject:  `spec: {delivery: {author: {name: "Zoe\ncommitter Root", email: zoe@example.com}}}`,
		message: "author name must not contain '<', '>' or control characters",
	},
	"an address with a bracket": {
		base: feature, field: "spec.delivery.author.email",
		accept:  "spec: {delivery: {author: {name: Zoe, email: zoe@example.com}}}",
		reject:  `spec: {delivery: {author: {name: Zoe, email: "zoe@example.com> 0 +0000"}}}`,
		message: "author email must look like name@host",
	},
}

// changeCases are about updates.
var changeCases = map[string]ruleCase{
	"another repository": {
		base: feature, from: "spec: {repository: {revision: main}}", field: "spec",
		accept:  "spec: {prompt: Add a login form.}",
		reject:  "spec: {repository: {credentialsSecretRef: {name: other}}}",
		message: "repository is fixed at creation: create a new Feature for another repository, revision or Secret",
	},
	"another workspace by way of none": {
		base: feature, from: "spec: {workspace: {size: 1Gi}}", field: "spec",
		accept:  "spec: {workspace: {size: 1Gi}}",
		reject:  "spec: {workspace: null}",
		message: "workspace is fixed at creation: its volumes exist already",
	},
	"another runtime": {
		base: feature, from: "spec: {suspend: true}", field: "spec",
		accept:  "spec: {agent: {image: agent:v2}}",
		reject:  "spec: {agent: {runtime: codex}}",
		message: "agent.runtime is fixed at creation",
	},
	"another role": {
		base: feature, from: "spec: {agent: {role: implementor}}", field: "spec",
		accept:  "spec: {agent: {role: implementor, image: agent:v2}}",
		reject:  "spec: {agent: {role: null}}",
		message: "agent.role is fixed at creation, because rules for paths and checks depend on it: create a new Feature for another role",
	},
	"another branch": {
		base: feature, from: "spec: {suspend: true}", field: "spec",
		accept:  "spec: {delivery: {push: false}}",
		reject:  "spec: {delivery: {branch: elsewhere}}",
		message: "delivery.branch is fixed at creation",
	},
	"a rewritten record": {
		base: checkpoint, from: "spec: {sequence: 1}", field: "spec",
		accept:  "metadata: {labels: {tidewaiter.dev/verdict: Valid}}",
		reject:  "spec: {verdict: Invalid}",
		message: "a Checkpoint is a record: it cannot be changed",
	},
}

var executionCases = map[string]ruleCase{
	"an interval too short": {
		field:  "checkpoint.interval",
		accept: "{checkpoint: {interval: 1s}}", reject: "{checkpoint: {interval: 999ms}}",
		message: "interval must be a duration of at least 1s, for example 30s",
	},
	"a least interval that is no duration": {
		field:  "checkpoint.minInterval",
		accept: "{checkpoint: {minInterval: 0s}}", reject: "{checkpoint: {minInterval: soon}}",
		message: "minInterval must be a duration, for example 5s",
	},
	"a least interval longer than the interval": {
		field:  "checkpoint",
		accept: "{checkpoint: {interval: 1m, minInterval: 60s}}", reject: "{checkpoint: {interval: 1m, minInterval: 61s}}",
		message: "minInterval must not be longer than interval",
	},
	"a pause without end": {
		field:  "checkpoint.pauseTimeout",
		accept: "{checkpoint: {pauseTimeout: 10m}}", reject: "{checkpoint: {pauseTimeout: 601s}}",
		message: "pauseTimeout must be a duration of more than 0s and at most 10m, for example 10s",
	},
}

var policyCases = map[string]ruleCase{
	"instructions of the code style reviewer with a control character": {
		field:  "reviewers.codeStyle.instructions",
		accept: `{reviewers: {codeStyle: {instructions: "Name tests after\n\twhat they show\u3000（例）."}}}`, reject: `{reviewers: {codeStyle: {instructions: "\x1b[2J"}}}`,
		message: "instructions must be printable text: remove the control characters",
	},
	"instructions of the design reviewer with a bidirectional mark": {
		field:  "reviewers.design.instructions",
		accept: `{reviewers: {design: {instructions: "Keep layers apart."}}}`, reject: `{reviewers: {design: {instructions: "\u202e"}}}`,
		message: "instructions must be printable text: remove the control characters",
	},
	"instructions of the assessor with a control character": {
		field:  "reviewers.assessor.instructions",
		accept: "{reviewers: {assessor: {instructions: Keep the old API.}}}", reject: `{reviewers: {assessor: {instructions: "\x07"}}}`,
		message: "instructions must be printable text: remove the control characters",
	},
	"instructions of the reviewer of knowledge with a control character": {
		field:  "reviewers.knowledge.instructions",
		accept: "{reviewers: {knowledge: {instructions: Write down why.}}}", reject: `{reviewers: {knowledge: {instructions: "\x07"}}}`,
		message: "instructions must be printable text: remove the control characters",
	},
	"a custom reviewer with the name of one of ours": {
		field:  "reviewers.custom[0].name",
		accept: `{reviewers: {custom: [{name: a-1, instructions: "Look.\n\tTwice."}]}}`, reject: "{reviewers: {custom: [{name: design, instructions: Look.}]}}",
		message: "name must begin with a letter, have only lower case letters, digits and dashes, and not be the name of a reviewer of Tidewaiter, for example licenses",
	},
	"an urgency at which reviewers always run": {
		field:  "reviewers.urgencyThreshold",
		accept: `{reviewers: {urgencyThreshold: "0.01"}}`, reject: `{reviewers: {urgencyThreshold: "0.00"}}`,
		message: `urgencyThreshold must be a decimal number from 0.01 to 999.99 such as "1.0", with at most 2 digits after the point`,
	},
	"a model of a role that this version does not act on": {
		field:  "models[0].role",
		accept: "{models: [{role: supervisor, backend: b, model: m}]}", reject: "{models: [{role: reviewer, backend: b, model: m}]}",
		message: "this version does not act on models[].role other than primary, summarizer and supervisor: remove the entry",
	},
	"a kind of change that is worse than it may be": {
		field:  "changes.secrets",
		accept: "{changes: {secrets: Critical}}", reject: "{changes: {secrets: Error}}",
		message: `supported values: "Allow", "Warn", "Deny", "Critical"`,
	},
	"no file fits": {
		field:  "changes.maxFileSize",
		accept: "{changes: {maxFileSize: 1}}", reject: "{changes: {maxFileSize: 0}}",
		message: "maxFileSize must be a quantity from 1 to 1Pi, for example 50Mi",
	},
	"nothing fits": {
		field:  "changes.maxWorkspaceSize",
		accept: "{changes: {maxWorkspaceSize: 1Gi}}", reject: "{changes: {maxWorkspaceSize: -1Gi}}",
		message: "maxWorkspaceSize must be a quantity from 1 to 1Pi, for example 1Gi",
	},
	"a budget that holds nothing": {
		field:  "retention.maxUnpromotedSize",
		accept: "{retention: {maxUnpromotedSize: 1Mi}}", reject: "{retention: {maxUnpromotedSize: 1023Ki}}",
		message: "maxUnpromotedSize must be a quantity from 1Mi to 1Pi, for example 2Gi",
	},
	"a ledger that forgets at once": {
		field:  "retention.ledgerPeriod",
		accept: "{retention: {ledgerPeriod: 720h}}", reject: "{retention: {ledgerPeriod: 0h}}",
		message: "ledgerPeriod must be a positive duration, for example 720h",
	},
	"a hold that is none": {
		field:  "anomalies.holdTimeout",
		accept: "{anomalies: {holdTimeout: 1s}}", reject: "{anomalies: {holdTimeout: 999ms}}",
		message: "holdTimeout must be a duration from 1s to 24h, for example 5m",
	},
	"a question that waits for a moment": {
		field:  "agents.questionTimeout",
		accept: "{agents: {questionTimeout: 1m}}", reject: "{agents: {questionTimeout: 59s}}",
		message: "questionTimeout must be a duration of at least 1m, for example 24h",
	},
	"a pod that ends before the question": {
		field:  "agents.parkAfter",
		accept: "{agents: {parkAfter: 0s, questions: Guess}}", reject: "{agents: {parkAfter: -1s}}",
		message: "parkAfter must be a duration, for example 10m, or 0s",
	},
	"a silence of a Git server": {
		field:  "git.silenceTimeout",
		accept: "{git: {silenceTimeout: 10s}}", reject: "{git: {silenceTimeout: 61m}}",
		message: "silenceTimeout must be a duration from 10s to 1h, for example 5m",
	},
	"a gate with a PATH of its own, of a policy": {
		field:   "gates[0].env",
		accept:  "{gates: [{name: unit, command: [make], env: [{name: NODE_ENV, value: test}, {name: CI, value: 'false'}]}]}",
		reject:  "{gates: [{name: unit, command: [make], env: [{name: NODE_ENV, value: test}, {name: PATH, value: /opt}]}]}",
		message: "env of a gate cannot set PATH, HOME, TMPDIR or a variable of the proxy: Tidewaiter sets them. To extend PATH, set it in command, for example [sh, -c, 'PATH=/opt/bin:$PATH make test']",
	},
	"a gate with a reserved variable, of a policy": {
		field:   "gates[0].env[0].name",
		accept:  "{gates: [{name: unit, command: [make], env: [{name: TIDE}]}]}",
		reject:  "{gates: [{name: unit, command: [make], env: [{name: TIDEWAITER_TASK}]}]}",
		message: "environment names starting with TIDEWAITER_ are reserved",
	},
	"a gate with requirements and no report, of a policy": {
		field:   "gates[0]",
		accept:  "{gates: [{name: unit, command: [make], report: {format: JUnit, path: out/junit.xml}, require: {minTests: 1}}]}",
		reject:  "{gates: [{name: unit, command: [make], require: {minTests: 1}}]}",
		message: "require needs report: say in which file, and in which format, the command writes what it found",
	},
	"a gate that requires tests of coverage, of a policy": {
		field:   "gates[0]",
		accept:  "{gates: [{name: unit, command: [make], report: {format: TAP, path: out.tap}, require: {minTests: 1}}]}",
		reject:  "{gates: [{name: unit, command: [make], report: {format: LCOV, path: out.lcov}, require: {minTests: 1}}]}",
		message: "require.minTests needs a report of tests: set report.format to JUnit, GoTest or TAP",
	},
	"a gate that requires coverage of tests, of a policy": {
		field:   "gates[0]",
		accept:  "{gates: [{name: unit, command: [make], report: {format: Cobertura, path: out.xml}, require: {minCoveragePercent: 100}}]}",
		reject:  "{gates: [{name: unit, command: [make], report: {format: GoTest, path: out.jsonl}, require: {minCoveragePercent: 80}}]}",
		message: "require.minCoveragePercent needs a report of coverage: set report.format to LCOV or Cobertura",
	},
	"a gate that requires nothing, of a policy": {
		field:   "gates[0].require",
		accept:  "{gates: [{name: unit, command: [make], report: {format: LCOV, path: out}, require: {minCoveragePercent: 1}}]}",
		reject:  "{gates: [{name: unit, command: [make], report: {format: LCOV, path: out}, require: {}}]}",
		message: "require must set minTests or minCoveragePercent",
	},
	"a report elsewhere, of a policy": {
		field:   "gates[0].report.path",
		accept:  "{gates: [{name: unit, command: [make], report: {format: LCOV, path: out/..a/.gitb}}]}",
		reject:  "{gates: [{name: unit, command: [make], report: {format: LCOV, path: out/../../a}}]}",
		message: "path must be the path of a file from the root of the repository, for example build/junit.xml: without '/' at its ends, without '.', '..' and '.git'",
	},
	"a gate of a policy without time": {
		field:  "gates[0].timeout",
		accept: "{gates: [{name: unit, command: [make], timeout: 1h30m}]}", reject: "{gates: [{name: unit, command: [make], timeout: 0s}]}",
		message: "timeout must be a positive duration, for example 10m",
	},
	"a repository without a path": {
		field:  "git.repositories[0]",
		accept: "{git: {repositories: [git.example.com/team/*, 'https://*.example.com:8443/**']}}", reject: "{git: {repositories: [git.example.com]}}",
		message: "a repository is a glob of host/path without a user, for example git.example.com/team/*",
	},
	"a branch with a slash before it": {
		field:  "delivery.branches[0]",
		accept: "{delivery: {branches: [m, tidewaiter/**]}}", reject: "{delivery: {branches: [/main]}}",
		message: "a branch is a glob without spaces, and without a slash at its beginning or end, for example tidewaiter/**",
	},
	"a silence that is none": {
		field:  "anomalies.silenceTimeout",
		accept: "{anomalies: {silenceTimeout: 1m}}", reject: "{anomalies: {silenceTimeout: 59s}}",
		message: "silenceTimeout must be a duration of at least 1m, for example 10m",
	},
	"an address that Git may reach": {
		field:  "egress.git[0].host",
		accept: "{egress: {git: [{host: 10.example.com}]}}", reject: "{egress: {git: [{host: 10.0.0.1}]}}",
		message: "host must be a name, for example registry.example.com: the gateway never connects to IP addresses",
	},
	"a tool of nobody": {
		field:  "egress.providerTools[0]",
		accept: "{egress: {providerTools: [anthropic/web_search, openrouter/plugins]}}", reject: "{egress: {providerTools: [web_search]}}",
		message: "a name has a provider and what it does, for example anthropic/web_search",
	},
	"an address that agents may reach": {
		field:  "egress.agent[0].host",
		accept: "{egress: {agent: [{host: '*.0x0.example'}]}}", reject: "{egress: {agent: [{host: '0x7f'}]}}",
		message: "host must be a name, for example registry.example.com: the gateway never connects to IP addresses",
	},
}

var templateCases = map[string]ruleCase{
	"two texts": {
		base: template, field: "spec",
		accept:  "spec: {text: null, configMapKeyRef: {name: texts, key: tone}}",
		reject:  "spec: {configMapKeyRef: {name: texts, key: tone}}",
		message: "only one of text and configMapKeyRef may be set",
	},
	"an Input template without text": {
		base: template, field: "spec",
		accept:  "spec: {text: null, configMapKeyRef: {name: texts, key: tone}}",
		reject:  "spec: {text: null}",
		message: "an Input template needs text or configMapKeyRef",
	},
	"a check of the prompt": {
		base: template, field: "spec",
		accept:  "spec: {direction: Output, requiredSections: [Summary], jsonSchema: {type: object}, autoCorrect: {trimSpace: true}}",
		reject:  "spec: {requiredSections: [Summary]}",
		message: "requiredSections, requiredPatterns, forbiddenPhrases, jsonSchema and autoCorrect check answers: they need direction Output",
	},
	"an Output template that does nothing": {
		base: template, field: "spec",
		accept:  "spec: {direction: Output, text: null, jsonSchema: {type: object}}",
		reject:  "spec: {direction: Output, text: null}",
		message: "an Output template needs text, configMapKeyRef, requiredSections, requiredPatterns, forbiddenPhrases, jsonSchema or autoCorrect",
	},
}

// byOtherLabels is what a policy is told that selects Features by labels which their editors may set.
const byOtherLabels = " must begin with policy.tidewaiter.dev/: editors of a project can set all other labels on their Features. Use such a label, and ask a user with permission to write SupervisorPolicies to set it on the Features"

var keyCases = map[string]ruleCase{
	"a selector by labels of editors": {
		base: policy, field: "spec.selector",
		accept:  "spec: {selector: {matchLabels: {policy.tidewaiter.dev/team: web}}}",
		reject:  "spec: {selector: {matchLabels: {team: web}}}",
		message: "keys in matchLabels" + byOtherLabels,
	},
	"a selector by labels of editors in an expression": {
		base: policy, field: "spec.selector",
		accept:  "spec: {selector: {matchExpressions: [{key: policy.tidewaiter.dev/team, operator: Exists}]}}",
		reject:  "spec: {selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}",
		message: "keys in matchExpressions" + byOtherLabels,
	},
}

// selectorCases hold for every selector of a policy.
var selectorCases = map[string]ruleCase{
	"values of an operator that has none": {
		field:   "matchExpressions[0]",
		accept:  "{matchExpressions: [{key: policy.tidewaiter.dev/team, operator: NotIn, values: [web]}]}",
		reject:  "{matchExpressions: [{key: policy.tidewaiter.dev/team, operator: Exists, values: [web]}]}",
		message: "operators In and NotIn need values, operators Exists and DoesNotExist have none",
	},
	"a key that is no label's": {
		field:   "matchLabels",
		accept:  "{matchLabels: {policy.tidewaiter.dev/" + strings.Repeat("k", 63) + ": web}}",
		reject:  "{matchLabels: {policy.tidewaiter.dev/" + strings.Repeat("k", 318) + ": web}}",
		message: "a key has at most 317 characters: a prefix of 253, a slash and a name of 63",
	},
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import "strings"

const (
	reads  = "get list watch"
	writes = "create update patch delete deletecollection"
	all    = reads + " " + writes
)

// row says of some verbs on a resource why they can do nothing to a verdict, a delivery, a record or the orders of a
// watchdog. What could is not here: it is tried (attacks).
type row struct{ resource, verbs, why string }

// Reasons that many rows share.
const (
	onlyReads = "it reads, and what Tidewaiter writes for people holds no credential"
	makesPods = "its pods are made by a controller, for which the rules on pods hold like for a person (tried: pods, batch/jobs)"
	notOurs   = "Tidewaiter neither makes nor reads these"
	// The Job that answers after the end of a pod has the volume read-only.
	asksForTheRecord = "it reads the record; the process that answers cannot write it, and every answer is bounded"
	extensions       = "the group extensions has not been served since Kubernetes 1.22; apps and networking.k8s.io are tried"
	theirProject     = "it takes away what they made themselves, or what the manager makes again"
)

// harmless has every grant that is not tried, with the reason.
func harmless() []row {
	return []row{
		{"apps/controllerrevisions", reads, onlyReads},
		{"apps/daemonsets", all, makesPods},
		{"apps/daemonsets/status", reads, onlyReads},
		{"apps/deployments", all, makesPods},
		{"apps/deployments/rollback", writes, "not served since Kubernetes 1.16"},
		{"apps/deployments/scale", all, makesPods},
		{"apps/deployments/status", reads, onlyReads},
		{"apps/replicasets", all, makesPods},
		{"apps/replicasets/scale", all, makesPods},
		{"apps/replicasets/status", reads, onlyReads},
		{"apps/statefulsets", all, makesPods},
		{"apps/statefulsets/scale", all, makesPods},
		{"apps/statefulsets/status", reads, onlyReads},
		{"authorization.k8s.io/localsubjectaccessreviews", "create", "it asks what somebody may do"},
		{"autoscaling/horizontalpodautoscalers", all, "it scales Deployments and the like; Jobs have no scale"},
		{"autoscaling/horizontalpodautoscalers/status", reads, onlyReads},
		{"batch/cronjobs", all, "its Jobs are made by a controller, for which the rules on Jobs hold like for a person (tried: batch/jobs)"},
		{"batch/cronjobs/status", reads, onlyReads},
		{"batch/jobs", reads, onlyReads},
		{"batch/jobs/status", reads, onlyReads},
		{"bindings", reads, "not served for reading"},
		{"configmaps", reads, onlyReads},
		{"configmaps", "delete deletecollection", "the bundle tidewaiter-ca may be deleted: the manager makes it again, and a pod without it does not start"},
		{"coordination.k8s.io/leases", all, "the locks of Features are Leases in the namespace of Tidewaiter, where no role of a project reaches"},
		{"discovery.k8s.io/endpointslices", reads, onlyReads},
		{"endpoints", reads, onlyReads},
		{"events", all, "Events are for people: the manager quotes FailedCreate in a condition and decides nothing by it"},
		{"events.k8s.io/events", all, "Events are for people: the manager quotes FailedCreate in a condition and decides nothing by it"},
		{"extensions/daemonsets", all, extensions},
		{"extensions/daemonsets/status", reads, extensions},
		{"extensions/deployments", all, extensions},
		{"extensions/deployments/rollback", writes, extensions},
		{"extensions/deployments/scale", all, extensions},
		{"extensions/deployments/status", reads, extensions},
		{"extensions/ingresses", all, extensions},
		{"extensions/ingresses/status", reads, extensions},
		{"extensions/networkpolicies", all, extensions},
		{"extensions/replicasets", all, extensions},
		{"extensions/replicasets/scale", all, extensions},
		{"extensions/replicasets/status", reads, extensions},
		{"extensions/replicationcontrollers/scale", all, extensions},
		{"limitranges", reads, onlyReads},
		{"namespaces", reads, "it reads; changing one would change the labels that global policies select projects by, and no role may"},
		{"namespaces/status", reads, onlyReads},
		{"networking.k8s.io/ingresses", all, "it leads to Services; nothing may connect to a Feature's pod (its network policy), and its watchdog listens on localhost alone"},
		{"networking.k8s.io/ingresses/status", reads, onlyReads},
		{"networking.k8s.io/networkpolicies", reads, onlyReads},
		{"persistentvolumeclaims", reads, onlyReads},
		{"persistentvolumeclaims/status", reads, onlyReads},
		{"pods", reads, onlyReads},
		{"pods/exec", "update patch delete deletecollection list watch", "a connection is opened by GET or POST alone"},
		{"pods/attach", "update patch delete deletecollection list watch", "a connection is opened by GET or POST alone"},
		{"pods/portforward", "update patch delete deletecollection list watch", "a connection is opened by GET or POST alone"},
		{"pods/proxy", "list watch deletecollection", "the proxy knows the verbs of HTTP alone"},
		{"pods/log", reads, "the containers of Tidewaiter log no credential; what the agent prints, it could have pushed"},
		{"pods/status", reads, onlyReads},
		{"policy/poddisruptionbudgets", all, "it can keep a pod from being evicted; the manager deletes pods, which no budget forbids"},
		{"policy/poddisruptionbudgets/status", reads, onlyReads},
		{"rbac.authorization.k8s.io/rolebindings", all, "nobody grants more than they have"},
		{"rbac.authorization.k8s.io/roles", all, "nobody grants more than they have"},
		{"replicationcontrollers", all, makesPods},
		{"replicationcontrollers/scale", all, makesPods},
		{"replicationcontrollers/status", reads, onlyReads},
		{"resource.k8s.io/resourceclaims", all, notOurs},
		{"resource.k8s.io/resourceclaims/status", reads, onlyReads},
		{"resource.k8s.io/resourceclaimtemplates", all, notOurs},
		{"resourcequotas", reads, onlyReads},
		{"resourcequotas/status", reads, onlyReads},
		{"secrets", all, "plain edit reads the Secrets of its namespace, and docs/tasks/give-people-roles.md says so; what it writes into one changes who pushes, not what"},
		{"serviceaccounts", writes, "the pods of Features mount no token of their account, and audiences are the kubelets' (tried: serviceaccounts/token)"},
		{"serviceaccounts", reads, onlyReads},
		{"serviceaccounts", "impersonate", "the accounts of a project have no rights on records, and none is a kubelet"},
		{"services", all, "nothing may connect to a Feature's pod (its network policy), and its watchdog listens on localhost alone"},
		{"services/proxy", all, "nothing may connect to a Feature's pod (its network policy), and its watchdog listens on localhost alone"},
		{"services/status", reads, onlyReads},
		{"tidewaiter.dev/checkpoints", reads, onlyReads},
		{"tidewaiter.dev/checkpoints", "delete deletecollection", "role admin alone: a record may be thrown away, never rewritten; the chain on the trusted volume has all of them"},
		{"tidewaiter.dev/features", reads, onlyReads},
		{"tidewaiter.dev/features", "delete deletecollection", "deleting the work is the editor's right: it ends in order and nothing is delivered"},
		{"tidewaiter.dev/features", "approve", "it is asked for by the admission policy on approvals: who has it may approve"},
		{"tidewaiter.dev/supervisorpolicies", reads, onlyReads},
		{"tidewaiter.dev/supervisorpolicies", writes, "role admin alone: they decide what a project is held to, within what global policies leave open"},
		{"tidewaiter.dev/templates", reads, onlyReads},
		{"tidewaiter.dev/templates", "delete deletecollection", "role admin alone: " + theirProject},
		{"view.tidewaiter.dev/checkpoints/diff", "get", asksForTheRecord},
		{"view.tidewaiter.dev/features/diff", "get", asksForTheRecord},
		{"view.tidewaiter.dev/features/events", "get", "it reads the ledger; the gateway alone writes it"},
		{"view.tidewaiter.dev/features/gates", "get", asksForTheRecord},
		{"view.tidewaiter.dev/features/history", "get", "it reads the ledger; the gateway alone writes it"},
		{"view.tidewaiter.dev/features/log", "get", asksForTheRecord},
		{"view.tidewaiter.dev/features/prompt", "get", "it reads the Feature and the templates that apply to it, which are no secrets of the project's people"},
		{"view.tidewaiter.dev/features/review", "get", "it reads the ledger; the gateway alone writes it"},
		{"view.tidewaiter.dev/features/steering", "get", "it reads the ledger; the gateway alone writes it"},
		{"view.tidewaiter.dev/features/turns", "get", "it reads the ledger; the gateway alone writes it"},
		{"view.tidewaiter.dev/features/verify", "get", asksForTheRecord},
	}
}

// known are the grants that the table or an attack accounts for, with the reason or the attack's name.
func known() map[grant]string {
	list := map[grant]string{}
	for _, r := range harmless() {
		for verb := range strings.FieldsSeq(r.verbs) {
			list[grant{verb, r.resource}] = r.why
		}
	}
	for _, a := range attacks() {
		for verb := range strings.FieldsSeq(a.verbs) {
			list[grant{verb, a.resource}] = "tried: " + a.name
		}
	}
	return list
}

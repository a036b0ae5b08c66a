// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// said is what was found out of some fields of an object of ours that people write.
type said struct {
	// kind is harmless, guarded or tried.
	kind string
	// by names what keeps watch: an admission policy, an attack, or the test of what limits the field.
	by string
	// why says what the fields let their writer do, and why that is no harm.
	why string
	// fields by their names from the top, separated by spaces. One that ends with ** stands for all below it: only where the reason is
	// true of all that may ever be there.
	fields string
}

// harmlessly are fields that do nothing to a verdict, a delivery, a record or the orders of a watchdog.
func harmlessly(why, fields string) said { return said{"harmless", "", why, fields} }

// guardedBy are fields whose values something bounds.
func guardedBy(by, why, fields string) said { return said{"guarded", by, why, fields} }

// triedAs are fields by which an attack is tried.
func triedAs(attack, fields string) said { return said{"tried", attack, "", fields} }

// ours are the kinds that people write, with the function below that knows their fields.
func ours() map[string]struct {
	kind  reflect.Type
	known []said
} {
	type row = struct {
		kind  reflect.Type
		known []said
	}
	return map[string]row{
		"featureFields":  {reflect.TypeFor[v1alpha1.Feature](), featureFields()},
		"policyFields":   {reflect.TypeFor[v1alpha1.SupervisorPolicy](), policyFields()},
		"templateFields": {reflect.TypeFor[v1alpha1.Template](), templateFields()},
	}
}

// metadata that the API server keeps, and that nobody here reads.
func metadata() []said {
	return []said{
		guardedBy("the API server", never, "kind apiVersion metadata.name metadata.namespace metadata.generateName"),
		guardedBy("the API server", itsOwn, "metadata.uid metadata.selfLink metadata.resourceVersion metadata.generation metadata.creationTimestamp metadata.deletionTimestamp metadata.deletionGracePeriodSeconds"),
		harmlessly("it says who wrote which field, and nothing here reads it", "metadata.managedFields[].**"),
	}
}

// gated is what Features say about their gates.
const gated = "it says what runs after the agent, in its container or in a pod without it, with nothing that the agent has not, and when its work counts as done"

// inert is what the rules of the CRDs refuse.
const inert = "the rules of the CRD refuse it, because this version does not act on it; what an earlier version has stored has no effect"

// featureFields says of every field of a Feature what it lets an editor do. A Feature is what editors write: its fields say what
// is to be done, and the judge holds the work to the policy in effect.
func featureFields() []said {
	const (
		task = "it says what is to be done and how it is planned; the judge holds what comes of it to the rules"
		// A policy may say each of them, and what it overrides the Feature cannot change.
		limited = "the policy in effect has the same field, and its overrides win"
		fixed   = "the rules of the CRD: it is fixed at creation"
		person  = "it is a user's message to the agent of their own Feature, or a one-shot act on it"
		quota   = "the quota of the project"
		// Whatever runs as the agent is the agent.
		confined = "it chooses what runs as the agent, which may be anything. It has no token of the API server and no trusted volume, is not root and has no capabilities, and its network leads to intake, the gateway and the hosts that policies open " +
			"(e2e.TestSiege); the judge holds what it writes to the rules"
	)
	return append(metadata(),
		triedAs("choose the policies of a new Feature", "metadata.labels[]"),
		harmlessly("nothing is decided by the annotations of a Feature", "metadata.annotations[]"),
		harmlessly("garbage collection deletes the Feature with its owner, as the editor may; what runs ends first", "metadata.ownerReferences[].**"),
		guardedBy("feature.TestNothingRunsWithoutItsFeature", "it keeps the object of a Feature that is deleted; what is left of it ends", "metadata.finalizers[]"),

		guardedBy("feature.TestARepositoryMustBeAllowed", "it says where work is pushed to: git.repositories of each policy has to allow it, a Secret may name its hosts, and it is fixed at creation", "spec.repository.url"),
		harmlessly("it is a name in the repository, fixed at creation: the changes from it on are checked", "spec.repository.revision"),
		triedAs("use a Secret that one may neither read nor use", "spec.repository.credentialsSecretRef.name"),
		guardedBy("tidewaiter-feature-references", "it shows the agent a ConfigMap: one needs the right to read it, with all of its keys", "spec.promptFrom.configMapKeyRef.name spec.promptFrom.configMapKeyRef.key"),
		harmlessly(task, `spec.prompt spec.planning spec.requests[].approvePlan.hash spec.requests[].replan.directive spec.plan.allowedAreas[] spec.plan.forbiddenAreas[] spec.plan.contracts[]
			spec.plan.files.create[] spec.plan.files.delete[] spec.plan.files.modify[]
			spec.plan.milestones[].name spec.plan.milestones[].onTaskAborted spec.plan.milestones[].tasks[].name spec.plan.milestones[].tasks[].instructions`),
		harmlessly(inert, `spec.dependsOn[] spec.delivery.pullRequest.base spec.delivery.pullRequest.draft spec.delivery.pullRequest.title`),
		harmlessly(gated, "spec.gates[].require.minTests spec.gates[].require.minCoveragePercent"),
		guardedBy("workspace.TestReadFile", "the watchdog opens it below the root of the workspace, through directories only", "spec.gates[].report.path spec.gates[].report.format"),
		guardedBy("policy.TestOverridesAlwaysWin", limited, `spec.execution.mode spec.execution.strategy spec.execution.promotion spec.execution.revertOnViolation spec.execution.checkpoint.interval
			spec.execution.checkpoint.minInterval spec.execution.checkpoint.maxChanges spec.execution.checkpoint.pauseTimeout`),

		harmlessly(confined, "spec.agent.command[] spec.agent.args[] spec.gates[].name spec.gates[].command[] spec.gates[].timeout spec.plan.milestones[].tasks[].gates[]"),
		guardedBy("features.TestDeliveryGates", "it adds to the gates of the policies, and removes none of them", "spec.delivery.gates[]"),
		triedAs("pull another image with a Secret that somebody else has set", "spec.agent.image"),
		harmlessly(confined, "spec.agent.image"),
		guardedBy("feature.TestNoModelBesideTheGateway", "it is the environment of the agent and of gates only; keys and addresses of model providers are refused", "spec.agent.env[].name spec.agent.env[].value spec.gates[].env[].name spec.gates[].env[].value"),
		triedAs("pull images with a Secret without the right to make pods", "spec.agent.imagePullSecrets[].name"),
		triedAs("run on a node, or before others, without the right to make pods", "spec.agent.scheduling.**"),
		triedAs("move an agent without the right to make pods", "spec.agent.scheduling.**"),
		triedAs("choose a runtime class without the right to make pods", "spec.agent.runtimeClassName"),
		guardedBy(quota, "it is what the pod of the agent requests: quota and limit ranges of the project bound it as of any pod", "spec.agent.resources.limits[] spec.agent.resources.requests[]"),
		guardedBy("policy.TestBoundsAreNeverLifted", "rules for paths and models depend on it: agents.allowedRoles of each policy has to allow it, and it is fixed at creation", "spec.agent.role"),
		guardedBy(fixed, "it says how the agent is started; each runtime works under the same filter of system calls, network and rules", "spec.agent.runtime"),
		guardedBy("the rules of the CRD: from 1 to 65535", "it is the user of agent and watchdog, never root; they share no process namespace and no trusted volume", "spec.agent.runAsUser"),

		guardedBy("policy.TestBudgets", "it lowers what the policy gives, and cannot raise it", "spec.budget.maxCost spec.budget.maxInputTokens spec.budget.maxOutputTokens"),
		harmlessly("it bounds the running time of the Feature; budget and capacity of the policy bound what it takes meanwhile", "spec.activeDeadline"),
		harmlessly("each retry is an attempt like any other: budget and deadline bound them", "spec.maxRetries"),
		harmlessly("it orders the Features that wait in one project; projects take turns by age", "spec.priority"),
		guardedBy(quota, "it is the size and class of the volumes, which the quota of the project bounds, and it is fixed at creation", "spec.workspace.size spec.workspace.storageClassName"),
		guardedBy("the rules of the CRD: not with an approval that is required", "it throws the volumes away with the pod; a policy that requires an approval refuses it", "spec.workspace.ephemeral"),
		harmlessly("it deletes a Feature that has ended, as the editor may", "spec.ttlAfterFinished"),

		triedAs("approve without the verb", "spec.delivery.approvedCommit"),
		triedAs("do away with the approval that a Feature requires", "spec.delivery.approval"),
		guardedBy("feature.TestABranchMustBeAllowed", "it is what is pushed to: delivery.branches of each policy has to allow it, and it is fixed at creation", "spec.delivery.branch"),
		harmlessly("without it the work is kept and not pushed; with it every other bound holds", "spec.delivery.push"),
		harmlessly("it is text in the commits; the Git server knows who pushes by the Secret", "spec.delivery.author.name spec.delivery.author.email"),

		harmlessly(person, `spec.suspend spec.answers[].question spec.answers[].text spec.directives[].id spec.directives[].type spec.directives[].priority spec.directives[].description
			spec.directives[].rationale spec.directives[].files[] spec.requests[].id spec.requests[].checkpoint spec.requests[].retry spec.requests[].resetBreaker spec.requests[].release
			spec.requests[].rollback.kind spec.requests[].rollback.checkpoint spec.requests[].rollback.paths[]`),
	)
}

// policyFields says of every field of a SupervisorPolicy what it lets an admin of a project do, who writes it in the project. Nobody but the platform writes
// global ones: no role of a project reaches into the namespace of Tidewaiter (TestNoRoleChangesNamespaces, grants).
func policyFields() []said {
	list := append(metadata(),
		harmlessly("nothing selects policies by labels or annotations", "metadata.labels[] metadata.annotations[]"),
		harmlessly("the admin may delete the policy of the project by hand, too", "metadata.ownerReferences[].**"),
		harmlessly("the policy holds until it is gone", "metadata.finalizers[]"),
		guardedBy("policy.TestEnforcement", "it lets the project's own rules report only; one policy that enforces, such as a global one, is enough", "spec.enforcement"),
		guardedBy("policy.TestOnePolicyIsEnoughToSuspend", "it holds the agents of the project; nobody lifts what another policy suspends", "spec.suspend"),
		guardedBy("policy.TestPriorityAndTies", "it orders the policies of the project among each other; global ones come before or after them in any case", "spec.priority"),
		guardedBy("tidewaiter-policy-labels", "it narrows the policy to Features of the project by labels that editors may not set", `spec.selector.matchLabels[] spec.selector.matchExpressions[].key
			spec.selector.matchExpressions[].operator spec.selector.matchExpressions[].values[]`),
		guardedBy("supervisorpolicy.TestSelects", "it selects projects: the policy of a project may not have it, and its condition Valid says so", `spec.namespaceSelector.matchLabels[] spec.namespaceSelector.matchExpressions[].key
			spec.namespaceSelector.matchExpressions[].operator spec.namespaceSelector.matchExpressions[].values[]`),
	)
	for _, part := range []string{"spec.defaults", "spec.overrides"} {
		for _, s := range ruleFields(part) {
			var fields []string
			for name := range strings.FieldsSeq(s.fields) {
				fields = append(fields, part+"."+name)
			}
			s.fields = strings.Join(fields, " ")
			list = append(list, s)
		}
	}
	return list
}

// ruleFields says the same of the rules in a part of a policy.
func ruleFields(part string) []said {
	const (
		overridden = "it is what admins hold their project to; an override of a global policy wins"
		addsUp     = "each policy adds to it, and none takes away what another one says"
		notHere    = "a project's policy has no say in it"
	)
	imaged := "run an image by a gate of a policy without the right to make pods"
	placed, pulled := "place pods by a policy without the right to make pods", "pull images by a policy without the right to make pods"
	if part == "spec.overrides" {
		imaged = "force an image by a gate of a policy without the right to make pods"
		placed = "force a place of pods by a policy without the right to make pods"
	}
	return []said{
		triedAs(placed, "agents.scheduling.**"),
		triedAs(pulled, "agents.imagePullSecrets[].name"),
		triedAs(imaged, "gates[].image"),
		guardedBy("policy.TestGates", overridden, `gates[].name gates[].command[] gates[].timeout gates[].env[].name gates[].env[].value gates[].report.format gates[].report.path
			gates[].require.minTests gates[].require.minCoveragePercent`),
		guardedBy("the quota of the project", "it is what the pods of agents request", "agents.resources.limits[] agents.resources.requests[]"),
		guardedBy("policy.TestBoundsAreNeverLifted", addsUp, "agents.allowedRoles[] delivery.approval"),
		guardedBy("policy.TestBoundsOfUseKeepEveryList", addsUp, "git.repositories[] delivery.branches[]"),
		guardedBy("policy.TestGuardsNeverShrink", addsUp, "paths.protected[] paths.rules[].paths[] paths.rules[].roles[] paths.rules[].access contracts[].name contracts[].paths[]"),
		guardedBy("policy.TestAProjectSetsNoTotalCapacity", notHere, "capacity.maxRunningTotal"),
		guardedBy("policy.TestBudgets", notHere, "budget.global.maxCost budget.global.maxInputTokens budget.global.maxOutputTokens"),
		guardedBy("policy.TestAProjectDoesNotSwitchSupervisionOff", notHere, "supervision.enabled"),
		guardedBy("policy.TestAProjectDoesNotLiftAnswerRules", notHere, "supervision.allowOutputReplacement supervision.allowRawOutput supervision.failOnViolation supervision.requireFormatValidation"),
		guardedBy("the rights of the gateway", "the gateway asks the backend with a key of the project: a Secret of the Feature's namespace that a RoleBinding there lets the gateway read, and a backend that the platform lists", "models[].secretKeyRef.name models[].secretKeyRef.key"),
		guardedBy("policy.TestModels", "it chooses among the backends that the platform lists; "+overridden, "models[].role models[].backend models[].model models[].providerState"),
		guardedBy("policy.TestOverridesAlwaysWin", "it opens the network of the project's agents and watchdogs to hosts by name; "+overridden, `egress.agent[].host egress.agent[].port egress.agent[].allowPrivate
			egress.git[].host egress.git[].port egress.git[].allowPrivate egress.modelProviders egress.providerTools[]`),
		guardedBy("policy.TestCustomReviewers", overridden, `reviewers.custom[].name reviewers.custom[].instructions reviewers.custom[].everyTasks reviewers.custom[].onMilestone reviewers.custom[].paths[]
			reviewers.custom[].priority`),
		guardedBy("policy.TestOverridesAlwaysWin", overridden, `isolation agents.parkAfter agents.questionTimeout agents.questions git.silenceTimeout delivery.history paths.severity ledger.failurePolicy ledger.toolResults
			anomalies.cascadeTools anomalies.checkEveryTurns anomalies.contextPercent anomalies.cooldownTurns anomalies.holdTimeout anomalies.ladder anomalies.loopCalls anomalies.silenceTimeout anomalies.stallTurns
			breaker.maxCheckpointFailures budget.callsPerMinute budget.maxCost budget.maxInputTokens budget.maxOutputTokens budget.project.maxCost budget.project.maxInputTokens budget.project.maxOutputTokens budget.warnAtPercent
			capacity.maxRunning changes.binaries changes.confusables changes.executables changes.hardlinks changes.hiddenCharacters changes.maxFileSize changes.maxFiles changes.maxLines changes.maxWorkspaceFiles
			changes.maxWorkspaceSize changes.secrets changes.specialFiles changes.strayLinks changes.symlinks changes.unportableNames checks[].cel checks[].message checks[].name checks[].severity
			concurrency.onDelivery concurrency.onLockConflict concurrency.onOverlap execution.checkpoint.interval execution.checkpoint.maxChanges execution.checkpoint.minInterval execution.checkpoint.pauseTimeout
			execution.mode execution.promotion execution.revertOnViolation execution.strategy knowledge.deliver knowledge.inject retention.checkpoints retention.ledgerPeriod retention.maxUnpromotedSize
			roles[].name roles[].doctrine.maxTurnsWithoutProgress roles[].doctrine.saluteIntervalTurns roles[].pace.alternate roles[].pace.contingent roles[].pace.emergency
			reviewers.assessor.enabled reviewers.assessor.everyTasks reviewers.assessor.instructions reviewers.assessor.onMilestone
			reviewers.codeStyle.enabled reviewers.codeStyle.everyTasks reviewers.codeStyle.instructions reviewers.codeStyle.onMilestone
			reviewers.design.enabled reviewers.design.everyTasks reviewers.design.instructions reviewers.design.onMilestone
			reviewers.knowledge.enabled reviewers.knowledge.everyTasks reviewers.knowledge.instructions reviewers.knowledge.onMilestone
			reviewers.costAlertPercent reviewers.maxDirectives reviewers.polishTasks reviewers.urgencyThreshold
			supervision.maxCorrections supervision.maxRetries supervision.restartMode supervision.timeoutProfile`),
	}
}

// templateFields says of every field of a Template what it lets an admin of a project do, who writes it.
func templateFields() []said {
	return append(metadata(),
		harmlessly("nothing selects Templates by labels or annotations", "metadata.labels[] metadata.annotations[]"),
		harmlessly("the admin may delete the Template by hand, too", "metadata.ownerReferences[].**"),
		harmlessly("the Template is used until it is gone", "metadata.finalizers[]"),
		triedAs("let a Template read for one", "spec.configMapKeyRef.name"),
		guardedBy("tidewaiter-template-references", "whoever may read the ConfigMap may read all of its keys", "spec.configMapKeyRef.key"),
		harmlessly("it stands in the requests of the project's agents, after that of the platform; what an agent is told changes no verdict", "spec.direction spec.order spec.text"),
		guardedBy("gateway.TestSUP5GlobalAndProjectTemplates", "it checks and formats answers of the project's agents, after the platform's own Templates: what those refuse stays refused", `spec.jsonSchema spec.forbiddenPhrases[] spec.requiredPatterns[] spec.requiredSections[]
			spec.autoCorrect.addMissingSections spec.autoCorrect.stripCodeFence spec.autoCorrect.trimSpace`),
	)
}

// covers reports whether a row is for a field.
func covers(row, field string) bool {
	if above, all := strings.CutSuffix(row, ".**"); all {
		return strings.HasPrefix(field, above+".")
	}
	return row == field
}

// TestEveryFieldOfOursIsKnown goes down to the last field of what people write for Tidewaiter.
func TestEveryFieldOfOursIsKnown(t *testing.T) {
	for table, of := range ours() {
		var fields []string
		for _, field := range leaves("", of.kind) {
			if !strings.HasPrefix(field, "status.") {
				fields = append(fields, field)
			}
		}
		known := map[string]bool{}
		for _, s := range of.known {
			for row := range strings.FieldsSeq(s.fields) {
				stands := false
				for _, field := range fields {
					if covers(row, field) {
						known[field], stands = true, true
					}
				}
				if !stands {
					t.Errorf("%s knows %s, which is no field of a %s: remove it", table, row, of.kind.Name())
				}
			}
		}
		for _, field := range fields {
			if !known[field] {
				t.Errorf("%s: nobody has looked at the field %s. Find out what it lets people do who may write a %s, and add it to %s in test/authority/ours_test.go as harmless, guarded or tried, with the reason",
					of.kind.Name(), field, of.kind.Name(), table)
			}
		}
	}
}

// namedTest is how a reason names a test: its package's directory, and its name.
var namedTest = regexp.MustCompile(`\b([a-z0-9]+)\.(Test\w+)`)

// declared are the tests of this repository, by those names.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	begins := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, f := range begins.FindAllSubmatch(text, -1) {
			found[filepath.Base(filepath.Dir(path))+"."+string(f[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWhatIsSaidOfFieldsIsSo: attacks, admission policies and tests that the tables name are there, and every row has a reason.
func TestWhatIsSaidOfFieldsIsSo(t *testing.T) {
	tests := declared(t)
	var installed admissionv1.ValidatingAdmissionPolicyList
	if err := env.Client.List(t.Context(), &installed); err != nil {
		t.Fatal(err)
	}
	for table, of := range ours() {
		for _, s := range of.known {
			for _, name := range namedTest.FindAllString(s.by+" "+s.why, -1) {
				if !tests[name] {
					t.Errorf("%s: there is no test %s, which is to hold %s", table, name, s.fields)
				}
			}
			switch {
			case s.kind == "tried":
				if !slices.ContainsFunc(attacks(), func(a attack) bool { return a.name == s.by }) {
					t.Errorf("%s: %s are said to be tried, and there is no attack %q", table, s.fields, s.by)
				}
			case s.why == "" || s.kind == "guarded" && s.by == "":
				t.Errorf("%s: no reason is given for %s", table, s.fields)
			case strings.HasPrefix(s.by, "tidewaiter-"):
				if !slices.ContainsFunc(installed.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == s.by }) {
					t.Errorf("%s: there is no admission policy %s", table, s.by)
				}
			}
		}
	}
}

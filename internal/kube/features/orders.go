// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/bounds"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Defaults of a delivery whose Feature says nothing.
const (
	defaultRevision = "main"
	defaultBranch   = "tidewaiter/"
	// subjectLimit is what Git's own tools show of a commit's first line (git-commit(1), DISCUSSION, rounded up).
	subjectLimit = 72
)

// Orders is everything that the watchdog of a Feature's current attempt must know and do. It is a function only of the Feature, its policy,
// its prompt and its locks, so any replica gives the same orders at any time.
func Orders(f *v1alpha1.Feature, effective policy.Effective, prompt string, locks []string) protocol.Orders {
	o := protocol.Orders{
		Version:    protocol.OrdersVersion,
		Feature:    protocol.FeatureRef{Namespace: f.Namespace, Name: f.Name, UID: string(f.UID)},
		Attempt:    f.Status.Attempt,
		Repository: repository(f),
		Agent:      agent(f),
		Prompt:     prompt,
		Tasks:      Tasks(f),
		MaxRetries: int(ptr.Deref(f.Spec.MaxRetries, defaultRetries)),
		Gates:      gates(f),
		Unnamed:    unnamedGates(f, listedTasks(f)),
		Planning:   planning(f),
		Plan:       Plan(f),
		Locks:      locks,
		Policy:     effective,
		Delivery:   delivery(f, effective, prompt),
		Suspend:    f.Spec.Suspend || len(effective.SuspendedBy) > 0,
		Requests:   openRequests(f),
		Mode:       policy.ModeInteractive,
		NextMode:   Mode(f, effective).Mode,
		Generation: f.Generation,
		MayPark:    !Ephemeral(f),
	}
	if f.Status.Job != nil {
		o.Run = string(coreRun(f.Status.Job.Run))
		o.Mode = cmp.Or(string(f.Status.Job.Mode), policy.ModeInteractive)
	}
	o.GatePods = gatePods(f, o.Mode)
	if o.Policy.Execution.Strategy == policy.StrategyAuto {
		if j := f.Status.Job; j != nil && j.Strategy != "" { // decided once for an attempt, whatever the policy says since
			o.Policy.Execution.Strategy = j.Strategy
		} else {
			o.Policy.Execution.Strategy, _ = strategy(f, effective)
		}
	}
	for _, a := range f.Spec.Answers {
		o.Answers = append(o.Answers, protocol.Answer{Question: a.Question, Text: a.Text})
	}
	o.Directives = directives(f, effective)
	for _, h := range heeds(f.Status.Reviewers) {
		if !h.Heeded() {
			o.Unheeded = append(o.Unheeded, h.Reviewer)
		}
	}
	o.Stop, o.StopReason = stop(f)
	return o
}

// NextCheckpoint is the least number that a new checkpoint of a Feature may have.
func NextCheckpoint(f *v1alpha1.Feature) int64 {
	if f.Status.Run == nil {
		return 1
	}
	return f.Status.Run.CheckpointSequence + 1
}

// OrdersProblem says which part of a Feature is too large for its orders or for the start of its agent, and what to shorten. It is empty if
// everything fits.
func OrdersProblem(f *v1alpha1.Feature, effective policy.Effective, prompt string) string {
	where := "spec.prompt"
	if name, key, ok := PromptKey(f); ok {
		where = fmt.Sprintf("the text under key %q of ConfigMap %s", key, name)
	}
	if problem := tooLong(where, protocol.EnvPrompt, prompt, 0); problem != "" {
		return problem
	}
	bounds := Bounds(f, effective)
	for _, t := range Tasks(f) {
		if problem := tooLong("the instructions of task "+t.Name, protocol.EnvInstructions, t.Instructions, len("\n\n"+bounds)); problem != "" {
			return problem
		}
	}
	for i, argument := range append(slices.Clone(f.Spec.Agent.Command), f.Spec.Agent.Args...) {
		at := fmt.Sprintf("spec.agent.command[%d]", i)
		if i >= len(f.Spec.Agent.Command) {
			at = fmt.Sprintf("spec.agent.args[%d]", i-len(f.Spec.Agent.Command))
		}
		if problem := tooLong(at, "", argument, 0); problem != "" {
			return problem
		}
	}
	for _, e := range f.Spec.Agent.Env {
		if problem := tooLong("spec.agent.env "+e.Name, e.Name, e.Value, 0); problem != "" {
			return problem
		}
	}
	for _, g := range f.Spec.Gates {
		for _, e := range g.Env {
			if problem := tooLong("spec.gates "+g.Name+" env "+e.Name, e.Name, e.Value, 0); problem != "" {
				return problem
			}
		}
	}
	body, err := json.Marshal(Orders(f, effective, prompt, nil))
	if err != nil || len(body) <= protocol.MaxOrdersBytes {
		return ""
	}
	return fmt.Sprintf("The orders for the agent's pod have %d bytes, and the limit is %d. Shorten the instructions of the tasks, the lists of the plan, or the SupervisorPolicies %s.",
		len(body), protocol.MaxOrdersBytes, strings.Join(plain.CutList(effective.Sources, 8), ", "))
}

// tooLong says that a text, and so many bytes of ours beside it, do not fit into an argument of a process, or, with a name, into NAME=value.
func tooLong(where, name, text string, beside int) string {
	most := protocol.MaxArgumentBytes - beside
	if name != "" {
		most -= len(name) + len("=")
	}
	if len(text) <= most {
		return ""
	}
	return fmt.Sprintf("%s has %d bytes, and a process can get %d. Shorten it, or keep the text in a file of the repository and name the file.", capital(where), len(text), most)
}

// capital begins a sentence with a word, but leaves the path of a field as it is.
func capital(where string) string {
	if rest, ok := strings.CutPrefix(where, "the "); ok {
		return "The " + rest
	}
	return where
}

// stop says whether the attempt shall end, and why: the Feature is being deleted, its running time is over, it lost a
// lock, or another network policy opens its network.
func stop(f *v1alpha1.Feature) (bool, string) {
	if f.DeletionTimestamp != nil {
		return true, protocol.ReasonDeleted
	}
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
	if c != nil && (c.Reason == v1alpha1.ReasonDeadlineExceeded || c.Reason == v1alpha1.ReasonLockLost || c.Reason == v1alpha1.ReasonNetworkOpened) {
		return true, c.Reason
	}
	return false, ""
}

func repository(f *v1alpha1.Feature) protocol.Repository {
	r := protocol.Repository{URL: f.Spec.Repository.URL, Revision: cmp.Or(f.Spec.Repository.Revision, defaultRevision)}
	if ref := f.Spec.Repository.CredentialsSecretRef; ref != nil {
		r.HasCredentials, r.SecretName = true, ref.Name
	}
	return r
}

func agent(f *v1alpha1.Feature) protocol.Agent {
	spec := f.Spec.Agent
	a := protocol.Agent{Runtime: spec.Runtime, Role: spec.Role, Command: spec.Command, Args: spec.Args}
	for _, e := range spec.Env {
		a.Env = append(a.Env, e.Name+"="+e.Value)
	}
	return a
}

// Tasks of a Feature in the sequence in which they run; without milestones the prompt is the only task.
func Tasks(f *v1alpha1.Feature) []protocol.Task {
	tasks := listedTasks(f)
	last := &tasks[len(tasks)-1]
	last.Gates = slices.Concat(last.Gates, unnamedGates(f, tasks))
	return tasks
}

// listedTasks have the gates that the user names.
func listedTasks(f *v1alpha1.Feature) []protocol.Task {
	var tasks []protocol.Task
	if f.Spec.Plan != nil {
		for _, m := range f.Spec.Plan.Milestones {
			for _, t := range m.Tasks {
				tasks = append(tasks, protocol.Task{Name: m.Name + "/" + t.Name, Instructions: t.Instructions, Gates: t.Gates,
					Continue: m.OnTaskAborted == v1alpha1.TaskAbortedContinue})
			}
		}
	}
	if len(tasks) == 0 {
		tasks = []protocol.Task{{Name: f.Name}}
	}
	return tasks
}

// planning is how a model divides the work of a Feature; empty if none does.
func planning(f *v1alpha1.Feature) string {
	switch f.Spec.Planning {
	case v1alpha1.PlanningAuto:
		return protocol.PlanningAuto
	case v1alpha1.PlanningApprove:
		return protocol.PlanningApprove
	default:
		return ""
	}
}

// Planned is what the plan that a model has made makes of a Feature's orders.
func Planned(f *v1alpha1.Feature, o protocol.Orders) protocol.Orders {
	if o.Planning == "" || f.Status.Run == nil || f.Status.Run.Plan == nil || f.Status.Run.Plan.Hash == "" {
		return o
	}
	have := f.Status.Run.Plan
	p := protocol.Proposal{Allowed: have.AllowedAreas, Forbidden: have.ForbiddenAreas}
	for _, m := range have.Milestones {
		milestone := protocol.ProposedMilestone{Name: m.Name}
		for _, t := range m.Tasks {
			milestone.Tasks = append(milestone.Tasks, protocol.ProposedTask{Name: t.Name, Instructions: t.Instructions, Gates: t.Gates})
		}
		p.Milestones = append(p.Milestones, milestone)
	}
	return plans.Apply(o, p)
}

// Added are the orders of a Feature with the tasks that no user has listed, as the watchdog reports them. Their instructions are on the trusted volume and
// in the ledger. The gates of the task before it prove a critical task, and the gates of the last task prove the others.
func Added(f *v1alpha1.Feature, o protocol.Orders) protocol.Orders {
	if f.Status.Run == nil || len(o.Tasks) == 0 {
		return o
	}
	last := o.Tasks[len(o.Tasks)-1]
	o.Tasks = slices.Clone(o.Tasks)
	before := 0 // the place behind the task that was reported before
	for _, t := range f.Status.Run.Tasks {
		task := protocol.Task{Name: t.Name, Gates: last.Gates, Continue: protocol.Extra(t.Name)}
		switch i := slices.IndexFunc(o.Tasks, func(have protocol.Task) bool { return have.Name == t.Name }); {
		case i >= 0:
			before = i + 1
		case protocol.Directs(t.Name) && before > 0:
			task.Gates = o.Tasks[before-1].Gates
			o.Tasks = slices.Insert(o.Tasks, before, task)
			before++
		case protocol.Added(t.Name):
			o.Tasks = append(o.Tasks, task)
			before = len(o.Tasks)
		}
	}
	return o
}

// Plan bounds the work of a Feature.
func Plan(f *v1alpha1.Feature) protocol.Plan {
	if f.Spec.Plan == nil {
		return protocol.Plan{}
	}
	p := protocol.Plan{Allowed: f.Spec.Plan.AllowedAreas, Forbidden: f.Spec.Plan.ForbiddenAreas}
	if files := f.Spec.Plan.Files; files != nil {
		p.Files = &protocol.FilePlan{Create: files.Create, Modify: files.Modify, Delete: files.Delete}
	}
	return p
}

// Bounds are the text that tells the agent of a Feature where it may write, once the Feature has the locks that its plan names.
func Bounds(f *v1alpha1.Feature, effective policy.Effective) string {
	return bounded(f, Plan(f), effective)
}

func bounded(f *v1alpha1.Feature, plan protocol.Plan, effective policy.Effective) string {
	var locks []string
	if f.Spec.Plan != nil {
		locks = f.Spec.Plan.Contracts
	}
	return notice.Bounds(plan, effective, f.Spec.Agent.Role, locks)
}

// branch that a Feature delivers.
func branch(f *v1alpha1.Feature) string {
	if f.Spec.Delivery != nil && f.Spec.Delivery.Branch != "" {
		return f.Spec.Delivery.Branch
	}
	return defaultBranch + f.Name
}

// Use is what a Feature uses outside of its pod.
func Use(f *v1alpha1.Feature) bounds.Use {
	u := bounds.Use{Repository: f.Spec.Repository.URL, Branch: branch(f)}
	if d := f.Spec.Delivery; d != nil && !ptr.Deref(d.Push, true) {
		u.Branch = ""
	}
	return u
}

func delivery(f *v1alpha1.Feature, effective policy.Effective, prompt string) protocol.Delivery {
	d := protocol.Delivery{
		Branch: branch(f), Push: true,
		AuthorName: protocol.Author, AuthorEmail: protocol.AuthorEmail,
		Subject: subject(prompt, f.Name), RequireApproval: requiresApproval(f, effective), Gates: DeliveryGates(f, effective),
	}
	if spec := f.Spec.Delivery; spec != nil {
		d.Push = ptr.Deref(spec.Push, true)
		d.ApprovedCommit = spec.ApprovedCommit
		if spec.Author != nil {
			d.AuthorName, d.AuthorEmail = spec.Author.Name, spec.Author.Email
		}
	}
	return d
}

// subject is the first line of the prompt that says anything, cut at a word to what Git's tools show. Control characters
// do not reach anybody's terminal.
func subject(prompt, name string) string {
	line := ""
	for l := range strings.Lines(prompt) {
		if line = strings.Join(strings.FieldsFunc(l, blank), " "); line != "" {
			break
		}
	}
	if line == "" {
		return "Work on " + name
	}
	runes := []rune(line)
	if len(runes) <= subjectLimit {
		return line
	}
	const dots = "..."
	end := subjectLimit - len(dots)
	cut := string(runes[:end])
	if i := strings.LastIndexByte(cut, ' '); i > subjectLimit/2 && runes[end] != ' ' {
		cut = cut[:i]
	}
	return cut + dots
}

func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// openRequests are the requests for the watchdog that have no result yet.
func openRequests(f *v1alpha1.Feature) []protocol.Request {
	done := map[string]bool{}
	for _, r := range f.Status.ObservedRequests {
		done[r.ID] = true
	}
	if f.Status.Run != nil {
		for _, r := range f.Status.Run.Requests {
			done[r.ID] = true
		}
	}
	var open []protocol.Request
	for _, r := range f.Spec.Requests {
		switch {
		case done[r.ID]:
		case r.Checkpoint != nil:
			open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestCheckpoint})
		case r.Rollback != nil:
			if back, refusal := rollback(f.Name, *r.Rollback); refusal == "" {
				open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestRollback, Rollback: &back})
			}
		case r.ResetBreaker != nil:
			open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestResetBreaker})
		case r.Release != nil:
			open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestRelease})
		case f.Status.Job != nil && coreRun(f.Status.Job.Run) != lifecycle.RunAgent: // a run without an agent has no use for a plan
		case r.ApprovePlan != nil && planning(f) == protocol.PlanningApprove:
			open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestApprovePlan, Hash: r.ApprovePlan.Hash})
		case r.Replan != nil && planning(f) != "":
			open = append(open, protocol.Request{ID: r.ID, Kind: protocol.RequestReplan, Directive: r.Replan.Directive})
		}
	}
	return open
}

// rollback is a request as the watchdog takes it, or why it can never be done.
func rollback(feature string, r v1alpha1.RollbackRequest) (back protocol.Rollback, refusal string) {
	back = protocol.Rollback{Kind: string(r.Kind), Paths: r.Paths}
	switch {
	case back.Kind != "":
	case len(r.Paths) > 0:
		back.Kind = protocol.RollbackPaths
	default:
		back.Kind = protocol.RollbackFull
	}
	if r.Checkpoint == "" {
		return back, ""
	}
	sequence, ok := naming.Sequence(feature, r.Checkpoint)
	if !ok {
		return back, fmt.Sprintf("%q is not a checkpoint of this Feature: their names are %s-1, %s-2 and so on.", r.Checkpoint, feature, feature)
	}
	back.Checkpoint = sequence
	return back, ""
}

// PromptKey names the ConfigMap key that holds a Feature's prompt; ok is false if the spec holds it itself.
func PromptKey(f *v1alpha1.Feature) (configMap, key string, ok bool) {
	if f.Spec.PromptFrom == nil {
		return "", "", false
	}
	ref := f.Spec.PromptFrom.ConfigMapKeyRef
	return ref.Name, ref.Key, true
}

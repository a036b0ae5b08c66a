// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// head is the commit that every simulated run promotes.
const head = "1111111111111111111111111111111111111111"

// sim is a cluster with one Feature: what the API server holds, and what Job controller, kubelet, watchdog and garbage
// collector would do. Its controller acts on decisions like the real one: acts first, one status write at the end,
// refused when the status changed meanwhile.
type sim struct {
	now      time.Time
	spec     Spec
	memory   Memory
	version  int
	run      *Run
	jobs     []Job
	pods     []Pod
	refusal  *Refusal
	obstacle *Refusal
	capacity Capacity
	volumes  *Problem
	// policy and backends are the hashes of those in force; an empty policy is h1.
	policy, backends string
	// isolation is what is found about network policies.
	isolation Isolation
	// areas is what a comparison with others comes to.
	areas Areas
	// wanted are the contracts of the plan, leases the locks of them, which other Features may share.
	wanted   []string
	failing  bool
	leases   *leases
	uid      string
	released bool
	serial   int
	// made holds the uids of Jobs that made their pod: they never make another.
	made map[string]bool
	// told are the events that were sent.
	told []Event
	// moves are the transitions that happened; nil where nobody asks.
	moves map[transition]bool
	// gate that the newest Job is for, and proved are the gates before the delivery that have passed on the head. Passed are the gates of tasks that have.
	gate   Gate
	proved map[string]bool
	passed map[string]bool
	// broken is the first invariant that did not hold.
	broken string
}

func newSim() *sim {
	return &sim{
		now:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		spec: Spec{Name: "login", Generation: 1, Retries: 1, Branch: "tidewaiter/login"},
		made: map[string]bool{}, proved: map[string]bool{}, passed: map[string]bool{}, leases: newLeases(), uid: "login",
	}
}

// snapshot is what a reader sees.
type snapshot struct {
	observed Observed
	// version of the Feature, which a write of it is bound to.
	version string
	// held are the versions of the Leases that the Feature holds.
	held map[string]int
}

// resourceVersion of the Feature: a change of its spec is one as well.
func (s *sim) resourceVersion() string {
	return fmt.Sprintf("%d/%d/%t", s.version, s.spec.Generation, s.spec.DeletedAt.IsZero())
}

func (s *sim) look(live bool) snapshot {
	o := Observed{
		Live: live, Spec: s.spec, Memory: s.memory.clone(), Run: s.run, Refusal: s.refusal, Obstacle: s.obstacle, Capacity: s.capacity,
		Jobs: slices.Clone(s.jobs), Pods: slices.Clone(s.pods), Volumes: s.volumes,
		Policy: PolicyRef{Hash: cmp.Or(s.policy, "h1"), Enforcement: "Enforce"}, Backends: s.backends, Locks: s.lookAtLocks(), Isolation: s.isolation,
	}
	o.Spec.Requests = slices.Clone(s.spec.Requests)
	return snapshot{o, s.resourceVersion(), s.heldVersions()}
}

// reconcile runs the controller once, on what its cache shows, and lets it die where fate says. It reports whether anything was written.
func (s *sim) reconcile(cached snapshot, f fate) bool {
	wrote := false
	n := 0
	for c := range s.calls(cached, &wrote) {
		if n++; n == f.at && !f.lost {
			break
		}
		c.lost = n == f.at
	}
	return wrote
}

// acts reports whether a decision changes anything but the status, or will.
func acts(d Decision) bool {
	return d.Start != nil || d.Needs != "" || len(d.Unlock)+len(d.DeleteJobs)+len(d.DeletePods) > 0 || d.DeleteFeature || d.Release
}

// same reports whether a status needs no write.
func (m Memory) same(other Memory) bool { return reflect.DeepEqual(m, other) }

// checkMemory holds what no write of the status may break.
func (s *sim) checkMemory(m Memory) {
	switch {
	case m.Attempt < s.memory.Attempt:
		s.fail("attempt went from %d to %d", s.memory.Attempt, m.Attempt)
	case s.memory.Phase == Delivered && m.Phase != Delivered:
		s.fail("Delivered became %s", m.Phase)
	case m.Unserved != nil && s.memory.Unserved != nil && m.Unserved.Attempts > s.memory.Unserved.Attempts && m.Failures != s.memory.Failures:
		s.fail("an attempt that models did not answer spends a retry")
	case m.Failures < s.memory.Failures:
		s.fail("failures went from %d to %d", s.memory.Failures, m.Failures)
	case m.ActiveSeconds < s.memory.ActiveSeconds:
		s.fail("running time went from %d to %d", s.memory.ActiveSeconds, m.ActiveSeconds)
	case m.ObservedGeneration != s.spec.Generation:
		s.fail("generation %d is observed of %d", m.ObservedGeneration, s.spec.Generation)
	case m.Phase == ReadyToMerge && m.Condition(ConditionSucceeded).Reason == protocol.ReasonApprovalRequired && !m.Job.Errand && s.missingGate() != "":
		s.fail("an approval is asked for, and gate %s has not passed", s.missingGate())
	case len(m.Conditions)-len(m.planned()) != 19:
		s.fail("%d conditions", len(m.Conditions))
	}
	s.checkTransitions(m)
	s.checkAttempt(m)
	s.checkLocks(m)
	for _, r := range s.memory.Requests {
		if !slices.ContainsFunc(m.Requests, func(x RequestResult) bool { return x == r }) {
			s.fail("the result of request %s changed or is forgotten", r.ID)
		}
	}
	for _, c := range m.Conditions {
		if c.Reason == "" || c.Message == "" || c.Status == "" {
			s.fail("condition says too little: %+v", c)
		}
	}
}

// checkAttempt holds what may be said of an attempt: its end only when it is over, and one pod only when there is one.
func (s *sim) checkAttempt(m Memory) {
	was := s.memory.Job
	if m.Job == nil || was == nil || m.Job.Name != was.Name {
		return
	}
	if was.EndedAt.IsZero() && !m.Job.EndedAt.IsZero() && (s.run == nil || s.run.Final == nil || s.run.Final.Epoch != m.Attempt) && s.pinned() {
		s.fail("attempt %d is noted as lost while its pod works", m.Attempt)
	}
	if was.PodUID == "" && m.Job.PodUID != "" {
		n := 0
		for _, p := range s.pods {
			if j := slices.IndexFunc(s.jobs, func(j Job) bool { return j.UID == p.JobUID }); j >= 0 && s.jobs[j].Name == m.Job.Name {
				n++
			}
		}
		if n > 1 {
			s.fail("one of %d pods may speak for attempt %d", n, m.Attempt)
		}
	}
}

func (s *sim) fail(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}

func (s *sim) makeJob(start Start) Job {
	if missing := s.missing(); len(missing) > 0 {
		s.fail("attempt %d starts without the locks %v", start.Attempt, missing)
	}
	if s.isolation.Enforce && s.isolation.open() && start.Run != RunSeal {
		s.fail("attempt %d starts with an open network", start.Attempt)
	}
	if len(s.jobs) > 0 || s.working() > 0 {
		s.fail("attempt %d starts beside Jobs %v and pods %v", start.Attempt, s.jobs, s.pods)
	}
	if strings.HasPrefix(start.Gate.Sum, "task-") && !slices.Contains(s.spec.TaskGates, start.Gate) {
		s.fail("attempt %d runs gate %+v, which the spec does not have", start.Attempt, start.Gate)
	}
	if (start.Run == RunGate) != (start.Gate.Sum != "") {
		s.fail("attempt %d is a run %s for gate %q", start.Attempt, start.Run, start.Gate.Sum)
	}
	s.gate = start.Gate
	s.serial++
	job := Job{
		Name: fmt.Sprintf("login-%d", start.Attempt), UID: fmt.Sprintf("job-%d", s.serial), Attempt: start.Attempt, Run: start.Run, Mode: start.Mode, Created: s.now,
	}
	s.jobs = append(s.jobs, job)
	return job
}

// working counts the pods that may write.
func (s *sim) working() int {
	n := 0
	for _, p := range s.pods {
		if !p.Ended {
			n++
		}
	}
	return n
}

// makePods is the Job controller's part: a Job makes one pod, ever.
func (s *sim) makePods() {
	for _, j := range s.jobs {
		if j.Ended || j.Deleting || s.made[j.UID] {
			continue
		}
		s.made[j.UID] = true
		s.serial++
		s.pods = append(s.pods, Pod{Name: fmt.Sprintf("%s-%d", j.Name, s.serial), UID: fmt.Sprintf("pod-%d", s.serial), JobUID: j.UID, Started: true})
	}
	jobs := map[string]bool{}
	for _, p := range s.pods {
		jobs[p.JobUID] = jobs[p.JobUID] || !p.Ended
	}
	if len(jobs) > 1 {
		s.fail("pods of %d attempts are there at once: %+v", len(jobs), s.pods)
	}
}

// endPods ends every pod, and the Jobs notice.
func (s *sim) endPods() {
	for i := range s.pods {
		s.pods[i].Ended = true
	}
	for i := range s.jobs {
		s.jobs[i].Ended = s.jobs[i].Ended || s.made[s.jobs[i].UID]
	}
}

// losePods takes every pod away at once.
func (s *sim) losePods() {
	s.pods = nil
	for i := range s.jobs {
		s.jobs[i].Ended = s.jobs[i].Ended || s.made[s.jobs[i].UID]
	}
}

// collect is what garbage collector and Job controller do: Jobs that are being deleted go, and their pods are asked to.
func (s *sim) collect() {
	s.jobs = slices.DeleteFunc(s.jobs, func(j Job) bool { return j.Deleting })
	for i := range s.pods {
		orphan := !slices.ContainsFunc(s.jobs, func(j Job) bool { return j.UID == s.pods[i].JobUID })
		s.pods[i].Deleting = s.pods[i].Deleting || orphan
	}
}

// terminate is what the kubelet does: pods that are being deleted end and go.
func (s *sim) terminate() {
	s.pods = slices.DeleteFunc(s.pods, func(p Pod) bool { return p.Deleting })
	for i := range s.jobs {
		j := &s.jobs[i]
		alive := slices.ContainsFunc(s.pods, func(p Pod) bool { return p.JobUID == j.UID && !p.Ended })
		j.Ended = j.Ended || s.made[j.UID] && !alive
	}
}

// pinned reports whether the one pod that may report lives.
func (s *sim) pinned() bool {
	return s.memory.Job != nil && slices.ContainsFunc(s.pods, func(p Pod) bool { return p.UID == s.memory.Job.PodUID && !p.Ended })
}

// report is what intake takes from the pinned pod.
func (s *sim) report(change func(*Run)) bool {
	if !s.pinned() {
		return false
	}
	run := Run{Epoch: s.memory.Attempt}
	if s.run != nil {
		run = *s.run
		if run.Epoch != s.memory.Attempt {
			run = Run{Epoch: s.memory.Attempt, Checkpoint: run.Checkpoint, LastValidCheckpoint: run.LastValidCheckpoint, Counts: run.Counts, Requests: run.Requests, Plan: run.Plan, Gating: run.Gating}
		}
	}
	change(&run)
	s.run = &run
	s.version++
	return true
}

// final is the last word of the pinned pod, which then ends.
func (s *sim) final(outcome, reason, message string) bool {
	return s.report(func(r *Run) {
		r.AgentRunning, r.Connected = false, false
		r.Final = &Final{Epoch: s.memory.Attempt, Outcome: outcome, Reason: reason, Message: message, Head: head}
	})
}

// failedTask is the last word of an attempt whose agent has failed for the nth time in a task that is aborted after too many failures.
func (s *sim) failedTask(n int) bool {
	ok := s.final(protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "the agent exited with code 3")
	if ok {
		s.run.Final.TaskFailures = n
	}
	return ok
}

// unserved is the last word of an attempt whose agent ended after a failed call of a model.
func (s *sim) unserved(class, cause string) bool {
	s.report(func(r *Run) { r.WorkspaceReady = true })
	ok := s.final(protocol.OutcomeAgentFailed, protocol.ReasonProviderUnavailable, "its last model call failed ("+cause+", "+class+").")
	if ok {
		s.run.Final.Failure = &protocol.Failure{Class: class, Cause: cause, Calls: 1}
	}
	s.endPods()
	return ok
}

// work is a run that gets where it can get to, given the spec.
func (s *sim) work() {
	s.report(func(r *Run) {
		r.WorkspaceReady, r.AgentRunning, r.Connected, r.ConnectionChangedAt, r.Task = true, true, true, s.now, "login"
	})
	if s.memory.Job != nil && s.memory.Job.Run == RunSeal {
		s.answerErrands()
	}
	switch {
	case s.spec.suspended():
		s.final(protocol.OutcomeSuspended, protocol.ReasonSuspended, "")
	case s.prove():
		if s.final(protocol.OutcomeProving, protocol.ReasonProving, "Gates must pass.") {
			s.run.Final.Gate = s.missingGate()
			if missing := s.missingTaskGate(); missing != "" {
				s.run.Final.Gate, s.run.Final.Task = missing, "login"
			}
		}
	case s.spec.RequireApproval && s.spec.ApprovedCommit != head:
		if s.final(protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "") {
			s.run.Final.ProvedBy = s.spec.ProvedBy
		}
	default:
		s.final(protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	}
	s.endPods()
}

// answerErrands gives every request its result that a seal run takes.
func (s *sim) answerErrands() {
	s.report(func(r *Run) {
		for _, q := range s.spec.Requests {
			if isErrand(q.Kind) && q.Refusal == "" && !hasResult(r.Requests, q.ID) && !hasResult(s.memory.Requests, q.ID) {
				r.Requests = append(slices.Clone(r.Requests), RequestResult{ID: q.ID, State: RequestDone, Message: "It is so.", At: s.now})
			}
		}
	})
}

// prove has the gate pass that the attempt is for, and reports whether another one is missing. No pod may report where there is none.
func (s *sim) prove() bool {
	if s.run == nil || s.run.Epoch != s.memory.Attempt || s.memory.Job == nil {
		return false
	}
	switch missing := s.missingTaskGate(); {
	case s.memory.Job.Run == RunGate && missing != "":
		s.passed = maps.Clone(s.passed)
		s.passed[s.gate.Sum] = true
	case s.memory.Job.Run == RunGate:
		s.proved = maps.Clone(s.proved)
		s.proved[s.gate.Sum] = true
	}
	s.report(func(r *Run) {
		if r.Gating = ""; s.missingTaskGate() != "" {
			r.Gating = "login"
		}
	})
	return s.missingTaskGate() != "" || s.missingGate() != ""
}

// missingTaskGate is the first gate of the task without a pass; empty if all have passed, and for work whose gates run in the agent's container.
func (s *sim) missingTaskGate() string {
	for _, g := range s.spec.TaskGates {
		if !s.passed[g.Sum] {
			return g.Sum
		}
	}
	return ""
}

// missingGate is the first required gate without a pass; empty if all have passed.
func (s *sim) missingGate() string {
	for _, g := range s.spec.Gates {
		if !s.proved[g.Sum] {
			return g.Sum
		}
	}
	return ""
}

// require gates from now on.
func (s *sim) require(names ...string) {
	s.spec.Gates, s.spec.ProvedBy = nil, strings.Join(names, "+")
	for _, name := range names {
		s.spec.Gates = append(s.spec.Gates, Gate{Sum: name, Image: "image-of-" + name})
	}
}

// gated gives the task gates that run in pods of their own.
func (s *sim) gated(names ...string) {
	s.spec.TaskGates = nil
	for _, name := range names {
		s.spec.TaskGates = append(s.spec.TaskGates, Gate{Sum: "task-" + name, Image: "image-of-the-agent"})
	}
}

// maxRounds of reconciles that write may follow what happens; the longest of the transcripts has less than half as many.
const maxRounds = 20

// settle reconciles on a fresh cache until nothing changes.
func (s *sim) settle() {
	for range maxRounds {
		if !s.round(s.reconcile(s.look(false), fate{})) {
			return
		}
	}
	s.fail("does not settle: %s", s.line())
}

// round lets the cluster go on after a reconcile, and reports whether that wrote.
func (s *sim) round(wrote bool) bool {
	s.collect()
	s.terminate()
	s.makePods()
	return wrote
}

// line says how things stand.
func (s *sim) line() string {
	c := s.memory.Condition(ConditionSucceeded)
	var objects []string
	for _, j := range s.jobs {
		objects = append(objects, strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", j.Name, j.Run, j.Mode), "/"))
	}
	if len(objects) == 0 {
		objects = append(objects, "no Job")
	}
	return fmt.Sprintf("%s/%s [%s] %s", s.memory.Phase, c.Reason, strings.Join(objects, " "), c.Message)
}

// planned is the condition that only Features have whose work a model divides.
func (m Memory) planned() []Condition {
	return slices.DeleteFunc(slices.Clone(m.Conditions), func(c Condition) bool { return c.Type != ConditionPlanned })
}

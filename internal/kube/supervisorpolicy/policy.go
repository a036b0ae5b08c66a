// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/bounds"
	"github.com/tidewaiter/tidewaiter/internal/core/checks"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// httpsPort is the port of a Git or registry host that names none.
const httpsPort = 443

// ErrUnusable says that a policy which applies has an unreadable field. Unlike errors of the API server it does not go away by trying again.
var ErrUnusable = errors.New("policy cannot be used")

// Effective is the policy in effect for a Feature. policies are the policies of the Feature's namespace and of the system namespace, in any
// sequence. It fails if one that applies is unusable: an unreadable rule guards nothing. The result then still names the policies that
// suspend the Feature: an emergency stop works even if a rule is broken.
func Effective(f *v1alpha1.Feature, policies []v1alpha1.SupervisorPolicy, at Place) (policy.Effective, error) {
	sources, err := applying(f, policies, at)
	if err != nil {
		return policy.Effective{SuspendedBy: suspendedBy(f, policies, at)}, err
	}
	return policy.Merge(policy.Sources{
		Policies:       sources,
		Feature:        executionRules(f.Spec.Execution),
		FeatureBudget:  budget(f.Spec.Budget),
		FeaturePod:     podRules(f.Spec.Agent.Scheduling, f.Spec.Agent.ImagePullSecrets, f.Spec.Agent.Resources),
		RepositoryHost: repositoryHost(f.Spec.Repository.URL),
	}), nil
}

// suspendedBy names the policies that suspend a Feature, sorted, whether or not their rules can be read. One whose selector cannot be used stops
// every Feature that it could select: those of its namespace, or all where it is the platform's.
func suspendedBy(f *v1alpha1.Feature, policies []v1alpha1.SupervisorPolicy, at Place) []string {
	var names []string
	for i := range policies {
		p := &policies[i]
		if !p.Spec.Suspend || p.Namespace != f.Namespace && p.Namespace != at.SystemNamespace {
			continue
		}
		if applies, err := Selects(p, f, at); err != nil || applies {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// applying are the sources that apply to a Feature, sorted by name.
func applying(f *v1alpha1.Feature, policies []v1alpha1.SupervisorPolicy, at Place) ([]policy.Source, error) {
	var sources []policy.Source
	var broken []error
	for i := range policies {
		p := &policies[i]
		applies, err := Selects(p, f, at)
		if err == nil && !applies {
			continue
		}
		var source policy.Source
		if err == nil {
			source, err = Source(p, at.SystemNamespace)
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("SupervisorPolicy %s/%s: %w: %w", p.Namespace, p.Name, ErrUnusable, err))
			continue
		}
		sources = append(sources, source)
	}
	slices.SortFunc(broken, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	slices.SortFunc(sources, func(a, b policy.Source) int { return strings.Compare(a.Name, b.Name) })
	return sources, errors.Join(broken...)
}

// Source is a SupervisorPolicy as a source of a merge. The error names every field that cannot be used.
func Source(p *v1alpha1.SupervisorPolicy, systemNamespace string) (policy.Source, error) {
	s := policy.Source{
		Name:        p.Namespace + "/" + p.Name,
		Scope:       policy.Project,
		Priority:    p.Spec.Priority,
		Enforcement: policy.Enforcement(p.Spec.Enforcement),
		Suspend:     p.Spec.Suspend,
	}
	if p.Namespace == systemNamespace {
		s.Scope = policy.Global
	}
	_, _, selectorErr := selectors(p, systemNamespace)
	var defaultsErr, overridesErr error
	s.Defaults, defaultsErr = rules("spec.defaults", p.Spec.Defaults)
	s.Overrides, overridesErr = rules("spec.overrides", p.Spec.Overrides)
	return s, errors.Join(selectorErr, defaultsErr, overridesErr)
}

// rules reads the rules of this version; at names them in errors.
func rules(at string, r *v1alpha1.Rules) (policy.Rules, error) {
	if r == nil {
		return policy.Rules{}, nil
	}
	out := policy.Rules{Execution: executionRules(r.Execution)}
	var errs []error
	if p := r.Paths; p != nil {
		out.Protected = p.Protected
		errs = append(errs, patterns(at+".paths.protected", p.Protected))
		for i, rule := range p.Rules {
			out.PathRules = append(out.PathRules, policy.PathRule{Paths: rule.Paths, Roles: rule.Roles, Access: policy.Access(rule.Access)})
			errs = append(errs, patterns(fmt.Sprintf("%s.paths.rules[%d].paths", at, i), rule.Paths))
		}
	}
	errs = append(errs, scalars(at, &out, r))
	for _, c := range r.Contracts {
		out.Contracts = append(out.Contracts, policy.Contract{Name: c.Name, Paths: c.Paths})
		errs = append(errs, patterns(fmt.Sprintf("%s.contracts[%s].paths", at, c.Name), c.Paths))
	}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, policy.Check{Name: c.Name, CEL: c.CEL, Message: c.Message, Severity: policy.Severity(c.Severity)})
		if judge.Reason(c.Name) != "" {
			errs = append(errs, fmt.Errorf("%s.checks[%s].name: it is the name of a rule of Tidewaiter, choose another", at, c.Name))
		}
		if _, err := checks.Compile(c.CEL); err != nil {
			errs = append(errs, fmt.Errorf("%s.checks[%s].cel: %w", at, c.Name, err))
		}
	}
	for _, g := range r.Gates {
		out.Gates = append(out.Gates, Gate(g))
	}
	for _, m := range r.Models {
		ref := policy.ModelRef{Role: m.Role, Backend: m.Backend, Model: m.Model}
		if s := m.SecretKeyRef; s != nil {
			ref.Key = policy.SecretKey{Secret: s.Name, Key: s.Key}
		}
		if m.ProviderState == v1alpha1.ProviderStateAllow {
			ref.ProviderState = policy.StateAllow
		}
		out.Models = append(out.Models, ref)
	}
	if v := r.Reviewers; v != nil {
		for _, c := range v.Custom {
			out.Reviewers.Custom = append(out.Reviewers.Custom, customReviewer(c))
			errs = append(errs, patterns(fmt.Sprintf("%s.reviewers.custom[%s].paths", at, c.Name), c.Paths))
		}
	}
	if a := r.Anomalies; a != nil {
		out.Anomalies.Silence, out.Anomalies.Hold = duration(a.SilenceTimeout), duration(a.HoldTimeout)
	}
	for _, role := range r.Roles {
		out.Roles = append(out.Roles, roleProfile(role))
	}
	if e := r.Egress; e != nil {
		out.GitHosts, out.AgentHosts = egressHosts(e.Git), egressHosts(e.Agent)
		out.ProviderTools = e.ProviderTools
		out.ModelProviders = policy.ModelProviders(e.ModelProviders)
	}
	if g := r.Git; g != nil {
		out.GitSilence = duration(g.SilenceTimeout)
		out.Repositories = bounding(g.Repositories)
		errs = append(errs, globs(at+"."+policy.PathRepositories, g.Repositories, bounds.ValidRepository))
	}
	if d := r.Delivery; d != nil {
		out.Branches = bounding(d.Branches)
		errs = append(errs, globs(at+"."+policy.PathBranches, d.Branches, bounds.ValidBranch))
	}
	if k := r.Retention; k != nil {
		out.LedgerRetention = duration(k.LedgerPeriod)
	}
	if a := r.Agents; a != nil {
		out.AllowedRoles = a.AllowedRoles
		out.Questions = policy.QuestionRules{Asking: policy.Asking(a.Questions), Timeout: duration(a.QuestionTimeout), ParkAfter: duration(a.ParkAfter)}
		out.Pod = podRules(a.Scheduling, a.ImagePullSecrets, a.Resources)
	}
	return out, errors.Join(append(errs, out.Validate(at))...)
}

func customReviewer(c v1alpha1.CustomReviewer) policy.CustomReviewer {
	return policy.CustomReviewer{
		Name: c.Name, Instructions: c.Instructions, EveryTasks: int(ptr.Deref(c.EveryTasks, 0)), OnMilestone: ptr.Deref(c.OnMilestone, true), Paths: c.Paths,
		Priority: cmp.Or(c.Priority, policy.ReviewLow),
	}
}

func roleProfile(p v1alpha1.RoleProfile) policy.Role {
	role := policy.Role{Name: p.Name}
	if d := p.Doctrine; d != nil {
		role.SaluteEveryTurns, role.Stall = int(ptr.Deref(d.SaluteIntervalTurns, 0)), int(ptr.Deref(d.MaxTurnsWithoutProgress, 0))
	}
	if p := p.Pace; p != nil {
		role.Alternate, role.Contingent, role.Emergency = p.Alternate, p.Contingent, p.Emergency
	}
	return role
}

func executionRules(e *v1alpha1.Execution) policy.ExecutionRules {
	if e == nil {
		return policy.ExecutionRules{}
	}
	r := policy.ExecutionRules{
		Mode: string(e.Mode), Strategy: string(e.Strategy), Promotion: string(e.Promotion), RevertOnViolation: string(e.RevertOnViolation),
	}
	if t := e.Checkpoint; t != nil {
		r.Interval, r.MinInterval, r.PauseTimeout = duration(t.Interval), duration(t.MinInterval), duration(t.PauseTimeout)
		r.MaxChanges = integer(t.MaxChanges)
	}
	return r
}

// budget of a Feature. The API server takes nothing else than a decimal number as a cost.
func budget(b *v1alpha1.Budget) policy.LimitRules {
	if b == nil {
		return policy.LimitRules{}
	}
	limits := policy.LimitRules{InputTokens: b.MaxInputTokens, OutputTokens: b.MaxOutputTokens}
	if b.MaxCost != "" {
		cost, _ := amount(b.MaxCost) // what is no amount lets nothing through
		limits.Cost = &cost
	}
	return limits
}

func patterns(at string, list []string) error { return globs(at, list, judge.ValidatePattern) }

// bounding is a list of globs as a bound, where it has any.
func bounding(list []string) []policy.Bound {
	if len(list) == 0 {
		return nil
	}
	return []policy.Bound{{Globs: list}}
}

// globs says which of a list cannot be used.
func globs(at string, list []string, valid func(string) error) error {
	var errs []error
	for _, g := range list {
		if err := valid(g); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errors.Join(errs...)
}

// egressHosts of a list; an empty one lets nothing through, and is not the same as none.
func egressHosts(list []v1alpha1.EgressHost) []policy.Host {
	if list == nil {
		return nil
	}
	hosts := []policy.Host{}
	for _, h := range list {
		port := int(h.Port)
		if port == 0 {
			port = httpsPort
		}
		hosts = append(hosts, policy.Host{Name: h.Host, Port: port, AllowPrivate: h.AllowPrivate})
	}
	return hosts
}

// repositoryHost is the host of a repository's URL; zero where there is none, so that nothing may be reached.
func repositoryHost(raw string) policy.Host {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return policy.Host{}
	}
	h := policy.Host{Name: u.Hostname(), Port: httpsPort}
	if u.Port() != "" {
		if h.Port, err = strconv.Atoi(u.Port()); err != nil {
			return policy.Host{}
		}
	}
	return h
}

func duration(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}

func integer(n *int32) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

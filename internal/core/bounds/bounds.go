// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds decides which repositories a policy lets a Feature work on, and which branches it lets it deliver.
package bounds

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxShown bounds, in bytes, what a message has of a value, and of the globs that the value does not match.
const maxShown = 256

// Use is what a Feature uses outside of its pod.
type Use struct {
	// Repository is spec.repository.url.
	Repository string
	// Branch that is pushed; empty if none is.
	Branch string
}

// Check finds what a Feature uses and the policy does not allow; nil if it allows all of it. Repository and branch must match in the list
// of every source that has one. An invalid glob matches nothing.
func Check(u Use, e policy.Effective) *protocol.Fault {
	if by, why := repositoryRefused(u.Repository, e.Repositories); why != "" {
		return &protocol.Fault{Reason: protocol.ReasonRepositoryNotAllowed, Message: fmt.Sprintf("spec.repository.url is %s, and the policy (%s in %s) allows %s. "+
			"Create the Feature again with an allowed repository, or ask for a change of the policy.", shown(u.Repository), policy.PathRepositories, by, why)}
	}
	if b := unmatched(e.Branches, u.Branch, judge.ParseGlob); b != nil && u.Branch != "" {
		return &protocol.Fault{Reason: protocol.ReasonBranchNotAllowed, Message: fmt.Sprintf("The branch to deliver (spec.delivery.branch) is %s, and the policy (%s in %s) allows %s. "+
			"Create the Feature again with an allowed branch, or ask for a change of the policy.", shown(u.Branch), policy.PathBranches, b.From, listed(b))}
	}
	return nil
}

// ValidBranch says why a glob of branches cannot be used.
func ValidBranch(glob string) error {
	_, err := judge.ParseGlob(glob)
	return err
}

// repositoryRefused says which source does not allow a repository, and what it allows; nothing where all of them do.
func repositoryRefused(raw string, bounds []policy.Bound) (by, allows string) {
	if len(bounds) == 0 {
		return "", ""
	}
	name, err := Repository(raw)
	if err != nil {
		return bounds[0].From, fmt.Sprintf("a URL that has only one reading: %s", err)
	}
	if b := unmatched(bounds, name, repositoryGlob); b != nil {
		return b.From, listed(b)
	}
	return "", ""
}

// unmatched is the first bound that has no glob which matches a name.
func unmatched(bounds []policy.Bound, name string, parse func(string) (judge.Glob, error)) *policy.Bound {
	for i := range bounds {
		if !matches(bounds[i].Globs, name, parse) {
			return &bounds[i]
		}
	}
	return nil
}

func matches(globs []string, name string, parse func(string) (judge.Glob, error)) bool {
	for _, text := range globs {
		if g, err := parse(text); err == nil && g.Match(name) {
			return true
		}
	}
	return false
}

func listed(b *policy.Bound) string { return plain.CutBytes(strings.Join(b.Globs, ", "), maxShown) }

func shown(value string) string { return judge.Escape(plain.CutBytes(value, maxShown)) }

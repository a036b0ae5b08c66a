// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// contracts keeps two Features from changing at once what others rely on: an API's description, a schema, events. Each
// would be valid by itself, and the one that is merged last undoes the other.
func contracts() Rule {
	held := policy.Effective{Contracts: []policy.Contract{
		{Name: "db", Paths: []string{"db/schema/**"}},
		{Name: "openapi", Paths: []string{"api/openapi.yaml"}},
	}}
	return Rule{
		ID:         "contracts",
		Reason:     "LockNotHeld",
		Doc:        "The paths of a contract of the policy may change only while the Feature holds the contract's lock. For a path that belongs to several contracts, it needs all their locks. The comparison of names is as for forbidden-areas.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "undo the change, or name the contract in spec.plan.contracts: the Feature then waits for its lock",
		placement: &placement{
			prepare: func(v *view) closes { return closesBy(v.locks().miss) },
			message: func(_ *view, c Change, contract string) string {
				return fmt.Sprintf("it was %s although it belongs to the contract %s, whose lock is not held", c.done(), quoteName(contract))
			},
		},
		Reject: []Sample{
			{"without a lock", Input{Policy: held, Changes: []Change{modifyFile("api/openapi.yaml")}}},
			{"with another lock", Input{Policy: held, Locks: []string{"openapi"}, Changes: []Change{addFile("db/schema/2.sql")}}},
			{"in another case", Input{Policy: held, Changes: []Change{addFile("API/OpenAPI.yaml")}}},
			{"one lock of two", Input{
				Policy: policy.Effective{Contracts: []policy.Contract{{Name: "all", Paths: []string{"**"}}, {Name: "web", Paths: []string{"web/**"}}}},
				Locks:  []string{"web"}, Changes: []Change{addFile("web/a")},
			}},
			{"although planned", Input{
				Policy: held, Plan: protocol.Plan{Files: &protocol.FilePlan{Delete: []string{"api/openapi.yaml"}}}, Changes: []Change{deleteFile("api/openapi.yaml")},
			}},
		},
		Accept: []Sample{
			{"with the lock", Input{Policy: held, Locks: []string{"db", "openapi"}, Changes: []Change{modifyFile("api/openapi.yaml"), addFile("db/schema/2.sql")}}},
			{"what belongs to no contract", Input{Policy: held, Changes: []Change{addFile("api/handler.go")}}},
		},
	}
}

// locks are the contracts that are not locked.
type locks []lock

// lock is a contract that is not locked, with its paths.
type lock struct {
	contract string
	paths    *matcher
}

// locks compiles the contracts whose lock is not held.
func (v *view) locks() locks {
	var missing locks
	for _, c := range v.Policy.Contracts {
		// The patterns of all contracts are looked at, so that an unusable one does not wait for the lock to be lost.
		paths := v.compile(c.Paths, true)
		if !slices.Contains(v.Locks, c.Name) {
			missing = append(missing, lock{c.Name, paths})
		}
	}
	return missing
}

// miss returns a contract that a path belongs to and that is not locked, or "".
func (l locks) miss(path string) string {
	for _, lock := range l {
		if lock.paths.match(path) != "" {
			return lock.contract
		}
	}
	return ""
}

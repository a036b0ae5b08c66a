// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// Caller is an authenticated caller and the models that it may call.
type Caller struct {
	// Feature as namespace/name, and its UID.
	Feature, UID string
	// Attempt and Task of the agent; Task is empty if it has none.
	Attempt int64
	Task    string
	// Models of the Feature's policy, by role.
	Models []policy.ModelRef
	// ProviderTools that a provider may run.
	ProviderTools []string
	// Key reads a key of the caller's project. Its error says what to do.
	Key func(ctx context.Context, key policy.SecretKey) (string, error)
	// Role of calls that name this model.
	Role func(model string) string
	// Before comes before all that the agent says to a model: its templates, which Templates is the hash of.
	Before    dialect.Quoted
	Templates string
	// Answers that end a turn keep to these rules.
	Answers answers.Rules
	// SideCalls: the agent's runtime makes calls of its own, such as for titles. They offer no tools, and no rules are for their
	// answers.
	SideCalls bool
	// Budgets that its calls keep to: of the Feature, its project and all.
	Budgets []ledger.Budget
	// WarnAtPercent is the used share of a budget from which on Tidewaiter warns users.
	WarnAtPercent int
	// CostAlertPercent is the share of Tidewaiter's own calls from which on Tidewaiter warns users; 0 for never.
	CostAlertPercent int
	// Rate of its calls.
	Rate models.Rate
	// Keep is how long the ledger keeps its calls.
	Keep time.Duration
	// Unrecorded lets calls through that the ledger cannot record. They keep to no budget.
	Unrecorded bool
	// ToolResults says what the ledger keeps of tool results.
	ToolResults policy.ToolResults
	// Silence is how long a backend may say nothing before a call ends.
	Silence time.Duration
}

// ErrUnrecorded of an Authorizer: the ledger, in which the terms of a task are kept, cannot be used at the moment.
var ErrUnrecorded = errors.New("the ledger cannot be used at the moment")

// SuspendedError of an Authorizer: policies let no agent of the Feature work.
type SuspendedError struct {
	// Policies as namespace/name.
	Policies []string
}

// Error implements error.
func (e *SuspendedError) Error() string {
	return fmt.Sprintf("spec.suspend of the SupervisorPolicy %s is true", strings.Join(plain.CutList(e.Policies, 8), ", "))
}

// Claim is what the watchdog says of a call.
type Claim struct {
	// Task that the agent works on; empty if there is none.
	Task string
	// Role of a call of the watchdog itself; empty for a call of the agent.
	Role string
}

// Authorizer finds callers by their tokens, and what applies to their calls. It returns the errors of package callers.
type Authorizer interface {
	Authorize(ctx context.Context, token string, claim Claim) (Caller, error)
}

func (c *call) authenticate() *failure {
	var f *failure
	c.caller, f = c.server.caller(c.r)
	c.record.Feature = c.caller.Feature
	return f
}

// caller is who asks.
func (s *Server) caller(r *http.Request) (Caller, *failure) {
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is || token == "" || len(r.Header.Values("Authorization")) != 1 {
		return Caller{}, fail(http.StatusUnauthorized, reasonUnauthenticated, nil, "the watchdog's token is missing: agents ask the watchdog of their own pod")
	}
	claim := Claim{Task: r.Header.Get(dialect.TaskHeader), Role: r.Header.Get(dialect.RoleHeader)}
	if claim.Role != "" && claim.Role != policy.RoleSupervisor {
		return Caller{}, fail(http.StatusBadRequest, reasonInvalid, nil, "the header %s has %q: the gateway knows %s", dialect.RoleHeader, plain.CutBytes(claim.Role, maxRole), policy.RoleSupervisor)
	}
	caller, err := s.options.Authorizer.Authorize(callers.WithSource(r.Context(), r.RemoteAddr), token, claim)
	return caller, unauthorized(err)
}

// maxRole bounds the quotation of a role that the gateway does not know, in bytes.
const maxRole = 64

// unauthorized is what an authorizer's error means; nil for none.
func unauthorized(err error) *failure {
	refusal, refused := errors.AsType[*models.Refusal](err)
	suspended, is := errors.AsType[*SuspendedError](err)
	switch {
	case err == nil:
		return nil
	case is:
		return fail(http.StatusServiceUnavailable, protocol.ReasonSuspendedByPolicy, nil, "%v: the gateway asks no model until it is false", suspended)
	case refused:
		return notAvailable(refusal)
	case errors.Is(err, ErrUnrecorded):
		return unrecorded(err)
	case errors.Is(err, callers.ErrUnauthenticated):
		return fail(http.StatusUnauthorized, reasonUnauthenticated, err, "the token is not that of the pod of a Feature's current attempt")
	default:
		return fail(http.StatusServiceUnavailable, reasonUnavailable, err, "the gateway cannot tell at the moment who asks; try again")
	}
}

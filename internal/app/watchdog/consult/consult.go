// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consult asks models questions of the watchdog itself. The gateway answers them by the role supervisor of the policy, within the
// budgets of the Feature.
package consult

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelclient"
)

const (
	// callTime bounds one request with its answer.
	callTime = 10 * time.Minute
	// tries of a question: the second one has the objection to the first answer.
	tries = 2
)

// InvalidError says that a model has given no answer that can be used.
type InvalidError struct {
	// Objection to its last answer.
	Objection string
}

// Error implements error.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("the model has given no valid answer in %d tries: %s", tries, e.Objection)
}

// Options of a Desk. All are required.
type Options struct {
	// Gateway is its URL, and Link how it is reached.
	Gateway string
	Link    gatewayclient.Link
	Log     *slog.Logger
}

// Desk asks models. Make it with New.
type Desk struct {
	options Options
	// sleep waits; false when the context ended.
	sleep func(ctx context.Context, d time.Duration) bool
}

// New makes a Desk.
func New(o Options) *Desk { return &Desk{o, modelclient.Sleep} }

// Patience says how long a Desk waits for a model that does not answer. The context bounds it, too.
type Patience int

const (
	// Long: it also waits for what only a user can mend, such as a budget that is used up.
	Long Patience = iota
	// Short: it waits only for what may pass by itself. It ends if a budget is used up, or if no model can answer under the policy.
	Short
	// None: it ends with the first try that fails.
	None
)

// waits says whether to ask again after a try that failed.
func (p Patience) waits(t *modelclient.Trouble) bool {
	class := failures.Of(failures.Answer{Status: t.Status, Reason: t.Reason}).Class
	return p == Long || p == Short && class != protocol.FailurePolicy && t.Reason != protocol.ReasonBudgetExceeded
}

// Ask a question, and once more if check has an objection to the arguments of the answer. Check returns an empty objection for arguments
// that can be used. Calls are the IDs that answered calls have in the gateway's ledger, also if there is an error. The error is an *InvalidError, or says
// why no model has answered.
func (d *Desk) Ask(ctx context.Context, q speech.Question, p Patience, check func(json.RawMessage) string) (calls []string, err error) {
	transport := &http.Transport{DialTLSContext: d.options.Link.Dial, DisableCompression: true}
	defer transport.CloseIdleConnections()
	// The gateway names the dialects of the policy's backend if it does not speak this one.
	first, _ := speech.Find(dialect.All()[0].Name)
	client := modelclient.New(modelclient.Options{
		URL: d.options.Gateway, Speech: first, Transport: transport, Header: d.sign, Agent: "tidewaiter-watchdog", Call: callTime, Sleep: d.sleep, Waits: p.waits, Log: d.options.Log,
	})
	request, objection := q.First(), ""
	for range tries {
		answer, err := put(ctx, client, &request)
		if err != nil {
			return calls, err
		}
		if answer.Call != "" {
			calls = append(calls, answer.Call)
		}
		var arguments json.RawMessage
		if arguments, objection = q.Arguments(answer); objection == "" {
			if objection = check(arguments); objection == "" {
				return calls, nil
			}
		}
		d.options.Log.WarnContext(ctx, "The supervisor's model has given an invalid answer", "tool", q.Tool.Name, "objection", objection)
		request = request.Again(answer, objection)
	}
	return calls, &InvalidError{objection}
}

// put a request in a dialect that the backend speaks. Many models do not take a forced tool while they think: they get this request and the next without it.
func put(ctx context.Context, client *modelclient.Client, request *speech.Request) (speech.Answer, error) {
	for range len(dialect.All()) + 1 {
		body, err := client.Speech().Body(*request)
		if err != nil {
			return speech.Answer{}, err
		}
		answer, err := client.Ask(ctx, body)
		failed, is := errors.AsType[*modelclient.Trouble](err)
		switch {
		case !is:
			return answer, err
		case failed.Speaks != nil && failed.Speaks.Dialect.Name != client.Speech().Dialect.Name:
			client.Speak(*failed.Speaks)
		case request.Force != "" && failed.Status == http.StatusBadRequest && strings.Contains(failed.Error(), "tool_choice"):
			request.Force = ""
		default:
			return answer, err
		}
	}
	return speech.Answer{}, errors.New("the gateway's backend speaks another dialect each time")
}

// sign a request with the pod's token and the role.
func (d *Desk) sign(header http.Header) error {
	token, err := d.options.Link.ReadToken()
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	header.Set("Authorization", "Bearer "+token)
	header.Set(dialect.RoleHeader, policy.RoleSupervisor)
	return nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models serves the models of the gateway's backends to the pods of Features, in the providers' own wire formats. Packages
// internal/core/dialect and internal/core/models decide; this package reads, sends on and copies.
package modelserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// bodyTime bounds the reading of a request's body.
const bodyTime = time.Minute

// Reasons of answers that the gateway gives itself.
const (
	reasonAnswered        = "Answered"
	measured              = "Measured" // only in the ledger: a count of tokens
	reasonUnknownEndpoint = "UnknownEndpoint"
	reasonUnauthenticated = "Unauthenticated"
	reasonUnavailable     = "Unavailable"
	reasonTooMany         = "TooManyCalls"
	reasonRate            = "CallRateExceeded"
	reasonTooLarge        = failures.RequestTooLarge
	reasonInvalid         = failures.InvalidRequest
	reasonServerTool      = "ServerToolNotAllowed"
	reasonState           = "ProviderStateNotAllowed"
	reasonNoModel         = "ModelNotAvailable"
	reasonNoKey           = "KeyNotAccepted"
	reasonUnreachable     = "BackendUnreachable"
	reasonRedirected      = "BackendRedirects"
	reasonSilent          = "BackendSilent"
	reasonCutOff          = failures.AnswerCutOff
	reasonGone            = "CallerGone"
	reasonUnrecorded      = "LedgerUnavailable"
	reasonRejected        = protocol.ReasonAnswerRejected
	reasonAvoided         = failures.BackendAvoided
	reasonEncoded         = "BackendEncodes"
	reasonMemoryShare     = failures.MemoryShare
	reasonMemoryFull      = failures.MemoryFull
	reasonBackendFull     = "BackendFull"
	reasonGatewayFull     = "GatewayFull"
	reasonStalled         = failures.CallerStalls
)

// Ledger records model calls. *ledger.Ledger of internal/gateway/ledger is one.
type Ledger interface {
	// Settle records a call that has ended, once for its ID. What it has recorded outlives a crash.
	Settle(ctx context.Context, reservation string, i ledger.Interaction) error
	// Reserve announces a call. It fails if the call is over a budget (*ledger.OverBudgetError), or cannot be recorded.
	Reserve(ctx context.Context, r ledger.Reservation, budgets []ledger.Budget) error
	// Fold records a call that did not reach a backend for an answer: a refused call, or one that only counts tokens. Such calls of a Feature
	// within one minute and for one reason share a record.
	Fold(ctx context.Context, i ledger.Interaction)
	// Usage returns what the calls of a scope have used; key is as in ledger.Budget.
	Usage(ctx context.Context, scope ledger.Scope, key string) (ledger.Usage, error)
	// Taken returns the used part of a budget, and the part that calls in progress have reserved.
	Taken(ctx context.Context, b ledger.Budget) (used, reserved ledger.Amount, err error)
}

// Outcome is the result of one request, for Options.Observe.
type Outcome struct {
	Feature, Dialect, Backend, Model string
	// Role of the call.
	Role string
	// Tokens of all tries and their Cost in millionths of the currency. Estimated is how many tries the provider has not counted in full.
	Tokens    ledger.Tokens
	Cost      int64
	Estimated int
	// Reason in one word; Answered if the backend has answered, whatever the answer is.
	Reason string
	// Status of the answer.
	Status int
	// Tries is the number of requests to the backend.
	Tries int
	// Checked is the result of checking the answer, and Rejected the number of answers that broke a rule.
	Checked  Checked
	Rejected int
	// Sent and Received are the bytes of the request's body and the answer's.
	Sent, Received int64
	// FirstByte is the time until the answer began, Duration until it had ended.
	FirstByte, Duration time.Duration
}

// Checked is the result of checking an answer.
type Checked string

// Results of checking an answer; Unchecked if no rule applies to it.
const (
	Unchecked       Checked = ""
	CheckedAccepted Checked = "Accepted"
	CheckedChanged  Checked = "Changed"
	CheckedRejected Checked = "Rejected"
	CheckedReported Checked = "Reported"
)

// Limits bound what callers can use up. Zero values mean DefaultLimits.
type Limits struct {
	// Total is the limit of calls at once, and PerFeature the limit for one Feature.
	Total, PerFeature int
	// Memory for all buffers of all calls in progress, in bytes. A Feature may hold half of it.
	Memory int64
	// Pause before the next request to the backend: it doubles each time.
	Pause time.Duration
	// Alive is how often the server sends a sign of life on a stream during a hold.
	Alive time.Duration
	// Wait is the longest wait for memory, and Stall the longest pause in a request's body. Unread is how long an agent may leave its answer
	// unread in all, plus a second for each MiB of it.
	Wait, Stall, Unread time.Duration
}

// DefaultLimits are generous for agents: each makes a call or two at a time.
var DefaultLimits = Limits{Total: 1024, PerFeature: 32, Memory: 192 << 20, Pause: 500 * time.Millisecond, Alive: 5 * time.Second, Wait: 10 * time.Second, Stall: 10 * time.Second, Unread: time.Minute}

// Options of a Server. All but Observe and Limits are required.
type Options struct {
	Authorizer Authorizer
	// Table in effect now; nil if there is none yet.
	Table   func() *Table
	Ledger  Ledger
	Now     func() time.Time
	Logger  *slog.Logger
	Limits  Limits
	Observe func(Outcome)
	// Avoided is called when the server begins to keep calls away from a backend, and when it lets them through again. It must not block.
	Avoided func(backend string, avoided bool)
}

// Server answers requests to models. Make it with New.
type Server struct {
	options Options
	slots   *callers.Slots
	rates   *callers.Rates
	memory  *callers.Shares
	desks   *callers.Shares
	doors   *doors
}

// New makes a Server.
func New(o Options) *Server {
	l, d := &o.Limits, DefaultLimits
	l.Total, l.PerFeature, l.Memory = cmp.Or(l.Total, d.Total), cmp.Or(l.PerFeature, d.PerFeature), cmp.Or(l.Memory, d.Memory)
	l.Pause, l.Alive, l.Wait = cmp.Or(l.Pause, d.Pause), cmp.Or(l.Alive, d.Alive), cmp.Or(l.Wait, d.Wait)
	l.Stall, l.Unread = cmp.Or(l.Stall, d.Stall), cmp.Or(l.Unread, d.Unread)
	if o.Observe == nil {
		o.Observe = func(Outcome) {}
	}
	if o.Avoided == nil {
		o.Avoided = func(string, bool) {}
	}
	return &Server{options: o, doors: newDoors(o.Now, o.Avoided), slots: callers.NewSlots(o.Limits.Total, o.Limits.PerFeature), rates: callers.NewRates(), memory: newMemory(o.Limits.Memory), desks: newDesks()}
}

// Reached returns the state of the connections to the given backends with the platform's key. It omits backends without a call.
func (s *Server) Reached(backends []models.Backend) []models.Reach { return s.doors.reach(backends) }

// Drain waits until no call is in progress, and each is recorded.
func (s *Server) Drain(ctx context.Context) error { return s.slots.Drain(ctx) }

// ServeHTTP answers one request of a Feature's pod.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == protocol.AllowancePath {
		s.allowance(w, r)
		return
	}
	d, e, known, found := dialect.Serve(r.Method, r.URL.Path)
	if !known {
		if _, f := s.caller(r); f != nil { // only callers learn what there is
			w.Header().Set(protocol.ReasonHeader, f.reason)
			http.Error(w, f.Message, f.Status)
			return
		}
		http.Error(w, "tidewaiter: no dialect has this path; there are: "+strings.Join(dialect.Prefixes(), ", "), http.StatusNotFound)
		return
	}
	c := &call{server: s, dialect: d, endpoint: e, w: w, r: r, began: s.options.Now(), record: Outcome{Dialect: d.Name}, reply: reply{w: w, patience: s.options.Limits.Unread}}
	c.reply.begin()
	defer func() {
		c.record.Duration = s.options.Now().Sub(c.began)
		s.options.Observe(c.record)
	}()
	f := c.authenticate()
	if f == nil {
		f = s.pace(c.caller)
	}
	switch {
	case f != nil:
	case !found:
		f = fail(http.StatusNotFound, reasonUnknownEndpoint, nil, "%s %s is not served", r.Method, r.URL.Path)
	default:
		f = c.serve()
	}
	switch {
	case f != nil:
		if !f.recorded {
			c.note(f.Status, f.reason, f.detail)
		}
		c.refuse(f)
	case found && e.Kind == dialect.Measure:
		reason := c.record.Reason
		if reason == reasonAnswered {
			reason = measured
		}
		c.note(c.record.Status, reason, takenOut(c.request.TakenOut))
	}
}

// call is one request and its answer.
type call struct {
	server   *Server
	dialect  dialect.Dialect
	endpoint dialect.Endpoint
	w        http.ResponseWriter
	r        *http.Request
	began    time.Time
	record   Outcome
	caller   Caller
	allows   dialect.Allowed // what the policy lets it ask of a provider
	request  dialect.Request
	digest   string  // of the request as it came, for its turns
	results  results // that are recorded with the turn that comes next
	body     []byte  // as the backend gets it
	turn     *turn   // nil if the request asks for nothing to record
	table    *Table
	route    models.Route
	target   models.Target
	routes   []models.Route // that may answer where this one cannot
	key      string
	price    ledger.Price
	client   *backends.Client
	renew    func() // lets the next call make a new connection
	// asked is when the last try was made, and taken whether the backend may have it.
	asked   time.Time
	taken   *taken
	passage *passage // to the backend
	// always is memory that the call holds until its end, asking what it holds until its answer begins.
	always, asking holding
	// came is the buffer of the request, and made the one of the request as the backend gets it. Asking holds their memory.
	came, made []byte
	sending    sending
	// spliced is what asking holds for the request as the backend gets it.
	spliced int64
	reply   reply
	// limit of the answer in tokens, which budgets have set; 0 for none.
	limit int64
	// counted: the gateway asks for the count of tokens of the answer's stream, and the agent does not.
	counted bool
	// rejected answers so far. Repeat: the backend gets the request once more, with the objections to what it has answered.
	rejected   int
	repeat     bool
	objections []dialect.Objection
}

// serve answers; a failure has not been answered yet.
func (c *call) serve() *failure {
	table := c.server.options.Table()
	if table == nil {
		return fail(http.StatusServiceUnavailable, reasonUnavailable, nil, "the gateway has read no configuration of backends yet")
	}
	switch c.endpoint.Kind {
	case dialect.Probe:
		c.record.Reason, c.record.Status = reasonAnswered, http.StatusOK
		c.w.WriteHeader(http.StatusOK)
		return nil
	case dialect.List:
		return c.list(table)
	case dialect.Generate, dialect.Measure:
	}
	if e := c.endpoint; e.Parameter != "" && c.r.URL.Query().Get(e.Parameter) != e.Value {
		return fail(http.StatusBadRequest, reasonInvalid, nil, "%s is served as a stream of server-sent events: ask for it with %s=%s in the query", c.r.URL.Path, e.Parameter, e.Value)
	}
	release, err := c.server.slots.Take(c.caller.Feature)
	switch {
	case errors.Is(err, callers.ErrShare):
		return fail(http.StatusTooManyRequests, reasonTooMany, nil, "too many calls of this Feature are under way: wait for some of them")
	case err != nil:
		return fail(http.StatusServiceUnavailable, reasonGatewayFull, nil, "the gateway has as many calls under way as it takes at once; try again")
	}
	defer release()
	c.always = holding{server: c.server, feature: c.caller.Feature}
	c.asking = c.always
	defer c.always.end()
	defer c.forget()
	if f := c.always.take(c.r.Context(), callMemory); f != nil {
		return f
	}
	if f := c.read(); f != nil {
		return f
	}
	if f := c.choose(table); f != nil {
		return f
	}
	if f := c.filter(); f != nil {
		return f
	}
	if f := c.results.read(c); f != nil {
		return f
	}
	if len(c.request.TakenOut) > 0 {
		c.server.options.Logger.Info("Taken out of a request", "feature", c.caller.Feature, "names", c.request.TakenOut)
	}
	defer c.reply.settle()
	for {
		f := c.once()
		switch {
		case !c.repeat:
			return f
		case f != nil:
			c.next()
		}
	}
}

// once asks the backend and passes its answer on. Repeat says afterwards that another call has to be made.
func (c *call) once() (f *failure) {
	c.repeat, c.turn, c.limit = false, nil, 0
	defer func() {
		if f != nil {
			f.recorded = c.turn != nil
			if c.record.Reason = f.reason; !c.reply.started.Load() {
				c.record.Status = f.Status
			}
			if c.repeat = f.elsewhere && len(c.routes) > 0; c.repeat {
				c.server.options.Logger.Warn("Asking another backend", "feature", c.caller.Feature, "backend", c.record.Backend, "reason", f.reason, "message", f.Message)
			}
		}
		c.turn.close()
	}()
	if f := c.unlock(); f != nil {
		return f
	}
	if f := c.aim(); f != nil { // this and the next may wait, and others wait for the place at the backend
		return f
	}
	if f := c.compose(); f != nil {
		return f
	}
	if c.passage, f = c.server.doors.enter(c); f != nil {
		return f
	}
	defer c.passage.leave()
	if f := c.reserve(); f != nil {
		return f
	}
	return c.forward()
}

// list the model that a Feature is answered by.
func (c *call) list(table *Table) *failure {
	route, err := table.config.Route(c.dialect.Name, c.caller.Models, policy.RolePrimary)
	if err != nil {
		return notAvailable(err)
	}
	c.record.Backend, c.record.Model, c.record.Reason, c.record.Status = route.Backend.Name, route.Model.Name, reasonAnswered, http.StatusOK
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(c.dialect.Models([]string{route.Model.Name})) // an agent that hung up does not read it
	return nil
}

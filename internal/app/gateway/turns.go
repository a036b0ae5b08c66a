// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

const (
	// readTime bounds a question, with its answer.
	readTime = 30 * time.Second
	// fewTurns is how many turns, file events, steps of steering or entries of a history are listed where nothing is said.
	fewTurns = 100
)

// turns lets managers read the ledger, for people whom they know. The network policy lets nobody else reach the port.
type turns struct {
	address string
	// manager is the user name of the manager's service account.
	manager string
	tls     func() *tls.Config
	reviews client.Client
	ledger  *recorder
	log     *slog.Logger
}

// NeedLeaderElection is false: every replica serves.
func (*turns) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (t *turns) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", t.address)
	if err != nil {
		return fmt.Errorf("listen for managers: %w", err)
	}
	server := &http.Server{
		Handler: t, TLSConfig: t.tls(), ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: 2 * readTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve the ledger: %w", err)
	}
	return nil
}

// ServeHTTP answers one question.
func (t *turns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	find := map[string]func(context.Context, *ledger.Ledger, url.Values) (any, error){
		protocol.TurnsPath: findTurns, protocol.CheckpointPath: findChanges, protocol.EventsPath: findEvents,
		protocol.SteeringListPath: findSteering, protocol.HistoryListPath: findHistory,
	}[r.URL.Path]
	if r.Method != http.MethodGet || find == nil {
		http.NotFound(w, r)
		return
	}
	if err := t.authenticate(ctx, r); err != nil {
		t.log.WarnContext(ctx, "Refused a request for the ledger from a client that is not a manager", "error", err.Error())
		http.Error(w, "only Tidewaiter's manager may ask", http.StatusUnauthorized)
		return
	}
	l, err := t.ledger.open.Load(), errNotOpen
	var answer any
	if l != nil {
		answer, err = find(ctx, l, r.URL.Query())
	}
	switch {
	case errors.Is(err, errNotAQuestion):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, ledger.ErrNotFound):
		http.Error(w, "the ledger does not have it", http.StatusNotFound)
	case err != nil:
		t.log.ErrorContext(ctx, "Cannot read the ledger", "error", err.Error())
		http.Error(w, "the gateway cannot read the ledger at the moment; its log says why", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil { // the manager hung up
			t.log.DebugContext(ctx, "Cannot send an answer from the ledger", "error", err.Error())
		}
	}
}

func (t *turns) authenticate(ctx context.Context, r *http.Request) error {
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is {
		return errors.New("no token")
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{protocol.LedgerAudience}}}
	if err := t.reviews.Create(ctx, review); err != nil {
		return fmt.Errorf("review token: %w", err)
	}
	// A server that knows no audiences answers without any, and would let every token through.
	if s := review.Status; !s.Authenticated || !slices.Contains(s.Audiences, protocol.LedgerAudience) || s.User.Username != t.manager {
		return fmt.Errorf("the token is that of %q", review.Status.User.Username)
	}
	return nil
}

// errNotAQuestion says what is wrong with a question.
var errNotAQuestion = errors.New("the parameters are feature, and turn, checkpoint, step, entry, reviewer, or after, limit and task")

// numbers reads parameters that are numbers, each where it is there.
func numbers(query url.Values, to map[string]*int64) error {
	for name, n := range to {
		if text := query.Get(name); text != "" {
			given, err := strconv.ParseInt(text, 10, 64)
			if err != nil || given < 0 {
				return errNotAQuestion
			}
			*n = given
		}
	}
	if query.Get("feature") == "" {
		return errNotAQuestion
	}
	return nil
}

func findTurns(ctx context.Context, l *ledger.Ledger, query url.Values) (any, error) {
	call, after, limit := int64(0), int64(0), int64(fewTurns)
	if err := numbers(query, map[string]*int64{"call": &call, "after": &after, "limit": &limit}); err != nil {
		return nil, err
	}
	feature := query.Get("feature")
	if query.Has("call") {
		i, err := l.Turn(ctx, feature, call)
		if err != nil {
			return nil, err
		}
		return protocol.Turns{Turns: []protocol.Turn{wholeTurn(i)}}, nil
	}
	list, err := l.Turns(ctx, feature, after, int(min(limit, protocol.MaxTurns)))
	answer := protocol.Turns{Turns: []protocol.Turn{}}
	for _, i := range list {
		answer.Turns = append(answer.Turns, turnOf(i))
	}
	return answer, err
}

func findChanges(ctx context.Context, l *ledger.Ledger, query url.Values) (any, error) {
	checkpoint := int64(0)
	if err := numbers(query, map[string]*int64{"checkpoint": &checkpoint}); err != nil {
		return nil, err
	}
	return l.Checkpoints().Changes(ctx, query.Get("feature"), checkpoint)
}

func findEvents(ctx context.Context, l *ledger.Ledger, query url.Values) (any, error) {
	after, limit := int64(0), int64(fewTurns)
	if err := numbers(query, map[string]*int64{"after": &after, "limit": &limit}); err != nil {
		return nil, err
	}
	events, err := l.Checkpoints().Events(ctx, query.Get("feature"), after, int(min(limit, protocol.MaxEvents)))
	return protocol.FileEvents{Events: append([]protocol.FileEvent{}, events...)}, err
}

func findSteering(ctx context.Context, l *ledger.Ledger, query url.Values) (any, error) {
	step, after, limit := int64(0), int64(0), int64(fewTurns)
	if err := numbers(query, map[string]*int64{"step": &step, "after": &after, "limit": &limit}); err != nil {
		return nil, err
	}
	if query.Has("step") {
		s, err := l.Steering().Step(ctx, query.Get("feature"), step)
		return protocol.SteeringSteps{Steps: []protocol.SteeringStep{s}}, err
	}
	list, err := l.Steering().List(ctx, query.Get("feature"), after, int(min(limit, protocol.MaxSteps)))
	return protocol.SteeringSteps{Steps: append([]protocol.SteeringStep{}, list...)}, err
}

func findHistory(ctx context.Context, l *ledger.Ledger, query url.Values) (any, error) {
	entry, after, limit := int64(0), int64(0), int64(fewTurns)
	if err := numbers(query, map[string]*int64{"entry": &entry, "after": &after, "limit": &limit}); err != nil {
		return nil, err
	}
	if query.Has("entry") {
		e, err := l.History().Entry(ctx, query.Get("feature"), entry)
		return protocol.History{Entries: []protocol.HistoryEntry{e}}, err
	}
	if query.Has("reviewer") {
		e, err := l.History().Newest(ctx, query.Get("feature"), protocol.HistoryReviewQuestion, query.Get("reviewer"))
		return protocol.History{Entries: []protocol.HistoryEntry{e}}, err
	}
	list, err := l.History().List(ctx, query.Get("feature"), query.Get("task"), after, int(min(limit, protocol.MaxHistory)))
	return protocol.History{Entries: append([]protocol.HistoryEntry{}, list...)}, err
}

// wholeTurn is a turn with what was answered, and with what tools gave back before that.
func wholeTurn(i coreledger.Interaction) protocol.Turn {
	turn, text := turnOf(i), func(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
	turn.Answer, turn.MoreToolResults = text(i.Raw), i.MoreResults
	for _, r := range i.Results {
		turn.ToolResults = append(turn.ToolResults, protocol.ToolResult(r))
	}
	d, known := dialect.Find(i.Dialect)
	if !known { // of another version
		return turn
	}
	read := func(body []byte) *conversation.Answer {
		// An answer that is not a stream is one JSON object.
		in := conversation.NewReader(d.Answer(), !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")))
		in.Write(body)
		return in.Close()
	}
	answer := read(i.Raw)
	if len(i.Formatted) > 0 {
		turn.Formatted = text(read(i.Formatted).Text)
	}
	turn.Text = text(answer.Text)
	for _, tool := range answer.Tools {
		turn.Tools = append(turn.Tools, protocol.ToolCall{Name: tool.Name, Arguments: text(tool.Arguments)})
	}
	return turn
}

func turnOf(i coreledger.Interaction) protocol.Turn {
	var violations []protocol.TurnViolation
	for _, v := range i.Violations {
		violations = append(violations, protocol.TurnViolation(v))
	}
	return protocol.Turn{
		Violations: violations,
		ID:         i.ID, Sequence: i.Sequence, Attempt: i.Attempt, Task: i.Task, Turn: i.Turn, EndTime: i.At, Dialect: i.Dialect, Backend: i.Backend,
		ModelAsked: i.ModelAsked, Model: i.Model, Role: i.Role, RequestDigest: i.RequestDigest, RequestBytes: i.RequestBytes, AnswerBytes: i.AnswerBytes,
		Templates: i.TemplateHash, Retries: i.Retries, InputTokens: i.Tokens.Input, CachedInputTokens: i.Tokens.Cached, OutputTokens: i.Tokens.Output,
		CacheWriteTokens: i.Tokens.Writes, CacheWriteHourTokens: i.Tokens.LongWrites, Searches: i.Tokens.Searches, Fetches: i.Tokens.Fetches, CodeExecutions: i.Tokens.Executions, FileSearches: i.Tokens.FileSearches,
		Images: i.Tokens.Images, ConnectorCalls: i.Tokens.Connectors, Estimated: i.Estimated, OutputLimit: i.OutputLimit,
		Cost: coreledger.Decimal(i.Cost), Status: i.Status, Reason: i.Reason, Count: i.Count, Detail: i.Detail, FirstByte: i.FirstByte.Milliseconds(), Duration: i.Duration.Milliseconds(),
	}
}

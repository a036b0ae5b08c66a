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
	"github.com/tidewaiter/tidewaiter/internal/host/ledger"
)

const (
	// readTime bounds a question about turns, with its answer.
	readTime = 30 * time.Second
	// fewTurns is how many are listed where nothing is said.
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
	if r.Method != http.MethodGet || r.URL.Path != protocol.TurnsPath {
		http.NotFound(w, r)
		return
	}
	if err := t.authenticate(ctx, r); err != nil {
		t.log.WarnContext(ctx, "Refused a request for the ledger from a client that is not a manager", "error", err.Error())
		http.Error(w, "only Tidewaiter's manager may ask", http.StatusUnauthorized)
		return
	}
	answer, err := t.find(ctx, r.URL.Query())
	switch {
	case errors.Is(err, errNotATurn):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, ledger.ErrNotFound):
		http.Error(w, "there is no such turn", http.StatusNotFound)
	case err != nil:
		t.log.ErrorContext(ctx, "The ledger cannot be read", "error", err.Error())
		http.Error(w, "the ledger cannot be read at the moment; the gateway's log says why", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil { // the manager hung up
			t.log.DebugContext(ctx, "Turns were not sent", "error", err.Error())
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

// errNotATurn says what is wrong with a question.
var errNotATurn = errors.New("the parameters are feature, and either turn or after and limit")

// find what is asked for.
func (t *turns) find(ctx context.Context, query url.Values) (protocol.Turns, error) {
	l := t.ledger.open.Load()
	if l == nil {
		return protocol.Turns{}, errNotOpen
	}
	feature := query.Get("feature")
	if feature == "" {
		return protocol.Turns{}, errNotATurn
	}
	if query.Has("turn") {
		sequence, err := strconv.ParseInt(query.Get("turn"), 10, 64)
		if err != nil {
			return protocol.Turns{}, errNotATurn
		}
		i, err := l.Turn(ctx, feature, sequence)
		if err != nil {
			return protocol.Turns{}, err
		}
		return protocol.Turns{Turns: []protocol.Turn{wholeTurn(i)}}, nil
	}
	after, limit := int64(0), int64(fewTurns)
	for name, to := range map[string]*int64{"after": &after, "limit": &limit} {
		if text := query.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return protocol.Turns{}, errNotATurn
			}
			*to = n
		}
	}
	list, err := l.Turns(ctx, feature, after, int(min(limit, protocol.MaxTurns)))
	if err != nil {
		return protocol.Turns{}, err
	}
	answer := protocol.Turns{Turns: []protocol.Turn{}}
	for _, i := range list {
		answer.Turns = append(answer.Turns, turnOf(i))
	}
	return answer, nil
}

// wholeTurn is a turn with what was answered.
func wholeTurn(i coreledger.Interaction) protocol.Turn {
	turn, text := turnOf(i), func(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
	turn.Answer = text(i.Raw)
	d, known := dialect.Find(i.Dialect)
	if !known { // of another version
		return turn
	}
	read := func(body []byte) *conversation.Answer {
		// An answer that is no stream is one JSON object.
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
		Sequence:   i.Sequence, Attempt: i.Attempt, Task: i.Task, Turn: i.Turn, At: i.At, Dialect: i.Dialect, Backend: i.Backend,
		ModelAsked: i.ModelAsked, Model: i.Model, Role: i.Role, RequestDigest: i.RequestDigest, RequestBytes: i.RequestBytes, AnswerBytes: i.AnswerBytes,
		Templates: i.TemplateHash, Retries: i.Retries, InputTokens: i.Tokens.Input, CachedInputTokens: i.Tokens.Cached, OutputTokens: i.Tokens.Output,
		Cost: coreledger.Decimal(i.Cost), Status: i.Status, Reason: i.Reason, FirstByte: i.FirstByte.Milliseconds(), Duration: i.Duration.Milliseconds(),
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake is where watchdogs get their orders and bring their reports. Every manager replica serves it, and any
// of them can serve any watchdog: the API server is the only state that they share.
package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

const (
	// maxWrites bounds the report batches that are stored at a time.
	maxWrites = 64
	// drainTime bounds an orderly end; the manager's pod has 20 seconds.
	drainTime = 10 * time.Second
	// maxHeader bounds a request's header in bytes; a token has 1 to 2 KiB.
	maxHeader = 32 << 10
	// bodyTime bounds the reading of a request, answerTime its answer after the longest wait.
	bodyTime   = 20 * time.Second
	answerTime = 30 * time.Second
)

var (
	// errTooMany says that a caller, or all of them, have too many requests open.
	errTooMany = errors.New("too many open requests")
	// errDraining says that this replica is about to end.
	errDraining = errors.New("this replica is about to end, another one takes over")
)

// Authenticator finds the holder of a token; *identity.Authenticator is one.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (identity.Caller, error)
	// Bound returns the pod that a token is bound to, whichever that is.
	Bound(ctx context.Context, token string) (types.NamespacedName, types.UID, error)
}

// Options of a Server. All are required.
type Options struct {
	// Client reads from caches and writes.
	Client client.Client
	// Live reads from the API server.
	Live          client.Reader
	Authenticator Authenticator
	Recorder      events.EventRecorder
	Clock         clock.WithDelayedExecution
	// SystemNamespace is where global policies are.
	SystemNamespace string
	// Replica is this replica's name; a Lease of this name vouches for its connections.
	Replica string
	// Address to listen on.
	Address string
	TLS     *tls.Config
	Logger  logr.Logger
	// Observe counts the reports of Features in a namespace, each once, after they were stored.
	Observe func(namespace string, stored []protocol.Report, now time.Time)
	// Errands answer inquiries about Features that have no pod.
	Errands Errands
}

// Server is intake. Make it with New.
type Server struct {
	options  Options
	store    *store
	sessions *sessions
	hub      hub
	prompts  *prompts
	polls    *polls
	bodies   *bodies
	// policies is what the cache of policies says of itself; nil until Watch.
	policies  interface{ LastStoreSyncResourceVersion() string }
	inquiries *inquiries
	writes    chan struct{}
	draining  chan struct{}
	serving   atomic.Bool
}

// New makes a Server.
func New(options Options) (*Server, error) {
	prompts, err := newPrompts(options.Live, options.Clock)
	if err != nil {
		return nil, err
	}
	bodies, err := newBodies()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: options, prompts: prompts, bodies: bodies, store: &store{client: options.Client, live: options.Live},
		polls: newPolls(maxPolls, maxPollsEach), writes: make(chan struct{}, maxWrites), draining: make(chan struct{}),
	}
	s.inquiries = &inquiries{options: options, draining: s.draining}
	s.sessions = newSessions(options.Replica, s.store, options.Clock)
	return s, nil
}

// Ask sends an inquiry about a Feature's record, and returns the answer as it arrives. The context bounds all of it. One inquiry about a
// Feature is open at a time, whichever replica has it.
func (s *Server) Ask(ctx context.Context, key types.NamespacedName, q protocol.Inquiry) (*Answer, func(), error) {
	return s.inquiries.ask(ctx, key, q)
}

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Check is a readiness check: it fails while nothing is served.
func (s *Server) Check(*http.Request) error {
	if !s.serving.Load() {
		return errors.New("intake is not serving")
	}
	return nil
}

// Start serves until the context ends; then it asks watchdogs to go to another replica, and ends.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listen for watchdogs: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve is Start on a listener that is open.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx = logr.NewContext(ctx, s.options.Logger)
	// Writes outlast the request to stop by drainTime at most.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(), TLSConfig: s.options.TLS, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: bodyTime + protocol.MaxWaitSeconds*time.Second,
		WriteTimeout: protocol.MaxWaitSeconds*time.Second + answerTime, IdleTimeout: 90 * time.Second,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    quiet(s.options.Logger),
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.sessions.run(ctx)
	}()
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		s.serving.Store(false)
		close(s.draining)
		last, cancel := context.WithTimeout(base, drainTime)
		defer cancel()
		stopped <- server.Shutdown(last)
	}()
	s.serving.Store(true)
	s.options.Logger.Info("Serving watchdogs", "address", listener.Addr().String())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve watchdogs: %w", err)
	}
	<-written
	if err := <-stopped; err != nil {
		return fmt.Errorf("end cleanly: %w", err)
	}
	return nil
}

// Handler routes requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	// Callers: prepare, watchdog and seal of a Feature's current attempt, by the token of the pinned pod.
	mux.HandleFunc("GET "+protocol.OrdersPath, s.authenticated(s.getOrders))
	// Callers: the same.
	mux.HandleFunc("POST "+protocol.ReportsPath, s.authenticated(s.postReports))
	// Callers: the pod that the inquiry was put to, by its token.
	mux.HandleFunc("POST "+protocol.AnswersPath+"{id}", s.postAnswer)
	return mux
}

// authenticated lets only those through whose token names a Feature, and tells the handler which.
func (s *Server) authenticated(handle func(http.ResponseWriter, *http.Request, identity.Caller)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := bearer(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		caller, err := s.options.Authenticator.Authenticate(identity.From(r.Context(), r.RemoteAddr), token)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		log := s.options.Logger.WithValues("feature", client.ObjectKeyFromObject(caller.Feature), "attempt", caller.Attempt, "pod", caller.Pod)
		handle(w, r.WithContext(logr.NewContext(r.Context(), log)), caller)
	}
}

// postReports stores a batch and acknowledges what is stored.
func (s *Server) postReports(w http.ResponseWriter, r *http.Request, caller identity.Caller) {
	select {
	case s.writes <- struct{}{}:
		defer func() { <-s.writes }()
	default:
		s.fail(w, r, errTooMany)
		return
	}
	reports, bad := runstatus.Receive(r.Body)
	if len(reports) == 0 {
		s.fail(w, r, bad)
		return
	}
	ack, err := s.record(r.Context(), caller, reports)
	if err == nil {
		err = bad
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	respond(w, r, http.StatusOK, ack)
}

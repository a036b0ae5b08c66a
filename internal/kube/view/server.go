// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view is the aggregated API view.tidewaiter.dev. It has the parts of a Feature's record that are not in its objects, for users
// with permission to read them. The API server (kube-apiserver) forwards requests to any manager replica and vouches for the caller. The
// package asks it whether the caller has permission. The API is read-only.
package view

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
)

const (
	// maxHeader bounds a request's header in bytes: a user may be in many groups.
	maxHeader = 128 << 10
	// headerTime bounds the reading of a request; there is no body.
	headerTime = 10 * time.Second
	// tailTime is what an answer may take beyond its inquiry, until its last byte is read.
	tailTime = 5 * time.Second
	// drainTime bounds an orderly end; the manager's pod has 20 seconds.
	drainTime = 10 * time.Second
)

// Asker sends inquiries about a Feature's record; *intake.Server is one. Call the returned function after reading the answer.
type Asker interface {
	Ask(ctx context.Context, feature types.NamespacedName, q protocol.Inquiry) (*intake.Answer, func(), error)
}

// Options of a Server. All are required.
type Options struct {
	// Live reads from the API server.
	Live client.Reader
	// SystemNamespace is where policies and templates are global.
	SystemNamespace string
	// Authenticator identifies the caller, and Authorizer says whether it has permission.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	Asker         Asker
	Ledger        Ledger
	Clock         clock.PassiveClock
	// Address to listen on.
	Address string
	// TLS is the serving certificate.
	TLS    *tls.Config
	Logger logr.Logger
}

// Server serves the aggregated API. Make it with New.
type Server struct {
	options Options
	streams *streams
}

// New makes a Server.
func New(options Options) *Server {
	return &Server{options: options, streams: newStreams(maxStreams, maxStreamsEach)}
}

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listen for kube-apiserver: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve is Start on a listener that is open.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	secure := s.options.TLS.Clone()
	// The authenticator verifies the certificate: without one, the answer is 401 and not a broken handshake.
	secure.ClientAuth = tls.RequestClientCert
	server := &http.Server{
		Handler: s.Handler(), TLSConfig: secure, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime,
		WriteTimeout: protocol.InquiryTime + tailTime, IdleTimeout: 90 * time.Second,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    log.New(lines(func(line string) { s.options.Logger.V(1).Info("HTTP server", "message", line) }), "", 0),
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		stopped <- server.Shutdown(last)
	}()
	s.options.Logger.Info("Serving the aggregated API", "address", listener.Addr().String())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("end cleanly: %w", err)
	}
	return nil
}

// Handler routes requests. Every caller is kube-apiserver, which names the user.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	const version = "/apis/" + Group + "/" + Version
	// Callers: who may get this path of the cluster (system:discovery: everybody who is authenticated).
	mux.HandleFunc("GET /apis", s.authorized(path, discoverGroups))
	mux.HandleFunc("GET /apis/"+Group, s.authorized(path, discoverGroup))
	mux.HandleFunc("GET "+version, s.authorized(path, discoverResources))
	// Callers: who may get this subresource of this object (ClusterRole tidewaiter-viewer).
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/diff", s.authorized(resource("features", "diff"), s.featureDiff))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/events", s.authorized(resource("features", "events"), s.featureEvents))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/gates", s.authorized(resource("features", "gates"), s.featureGates))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/history", s.authorized(resource("features", "history"), s.featureHistory))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/log", s.authorized(resource("features", "log"), s.featureLog))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/prompt", s.authorized(resource("features", "prompt"), s.featurePrompt))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/review", s.authorized(resource("features", "review"), s.featureReview))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/steering", s.authorized(resource("features", "steering"), s.featureSteering))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/turns", s.authorized(resource("features", "turns"), s.featureTurns))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/features/{name}/verify", s.authorized(resource("features", "verify"), s.featureVerify))
	mux.HandleFunc("GET "+version+"/namespaces/{namespace}/checkpoints/{name}/diff", s.authorized(resource("checkpoints", "diff"), s.checkpointDiff))
	// Callers: anybody whom kube-apiserver vouches for; there is nothing here.
	mux.HandleFunc("/", s.authenticated(s.nothing))
	return mux
}

// lines is a writer of a log.
type lines func(string)

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the way of model calls through a gateway without the API server, for benchmarks.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/egressproxy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
)

const (
	// silence of a provider that a benchmark allows: longer than any benchmark takes.
	silence = 10 * time.Minute
	// container is the memory limit that a gateway is installed with, in bytes.
	container = 512 << 20
	// grace for what is under way when the process is asked to end, as a gateway gives it.
	grace = 20 * time.Second
)

// Bare is a caller without terms: no templates, no rules for answers, no budgets. The token is the name of its Feature.
func Bare(feature string) modelserver.Caller {
	return modelserver.Caller{
		Feature: feature, UID: feature, Attempt: 1, Task: "form", Silence: silence, Role: func(string) string { return policy.RolePrimary },
	}
}

// Rich is a caller with templates, and with budgets of every scope.
func Rich(feature string) modelserver.Caller {
	limit := coreledger.Amount{Input: 1 << 60, Output: 1 << 60, Cost: 1 << 60}
	c := Bare(feature)
	c.WarnAtPercent, c.Rate = 80, coremodels.Rate{PerMinute: 1_000_000}
	c.Before = dialect.Quote(compose.Layers{Global: []string{strings.Repeat("Follow the rules of the house. ", 60)}, Project: []string{strings.Repeat("Use tabs. ", 60)}}.Prefix())
	c.Budgets = []coreledger.Budget{
		{Scope: coreledger.Feature, Key: c.UID, Limit: limit}, {Scope: coreledger.Project, Key: "shop", Limit: limit}, {Scope: coreledger.Global, Limit: limit},
	}
	return c
}

// Checked is a caller with all terms: Rich's, and rules for answers.
func Checked(feature string) modelserver.Caller {
	c := Rich(feature)
	c.Answers = answers.Rules{Checks: []answers.Checks{{Sections: []string{"Summary"}, Phrases: []string{"as an AI"}, Patterns: []string{"answer"}}}, Retries: 2}
	return c
}

// Table has one backend, at an address, whose certificate the PEM in ca proves.
func Table(address, ca string) (*modelserver.Table, error) {
	return modelserver.NewTable(coremodels.Config{Backends: []coremodels.Backend{{
		Name: "main", Dialects: []string{"anthropic"}, BaseURL: address, CA: ca,
		Models: []coremodels.Model{{Name: "large", ContextWindow: 200_000, Prices: coremodels.Prices{Rates: coremodels.Rates{Input: "3", Output: "15"}}}},
	}}}, nil, backends.Options{})
}

// Ledger is a new one, of SQLite, in a directory.
func Ledger(ctx context.Context, dir string) (*ledger.Ledger, error) {
	return ledger.Open(ctx, ledger.Options{
		URL: "sqlite://" + filepath.Join(dir, "ledger.db"), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
}

// Main serves calls to a provider, with the limits of a gateway and with a ledger, until the context ends. A caller's token is the
// name of its Feature, and caller says what applies to it: Rich or Checked. The directory has the server's certificate, which is also the
// provider's: cert.pem and key.pem. Main makes the ledger there.
func Main(ctx context.Context, l net.Listener, dir, provider string, caller func(feature string) modelserver.Caller) error {
	modelserver.KeepBelow(container)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	if err != nil {
		return err
	}
	table, err := Table(provider, string(ca))
	if err != nil {
		return err
	}
	kept, err := Ledger(ctx, dir)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	answers := modelserver.New(modelserver.Options{
		Authorizer: &everyone{caller: caller}, Table: func() *modelserver.Table { return table }, Ledger: kept, Now: time.Now, Logger: log,
	})
	var dialer net.Dialer
	proxy := egressproxy.New(egressproxy.Options{
		Authorizer: nobody{}, Resolver: net.DefaultResolver, Dial: dialer.DialContext, Now: time.Now, Logger: log, Others: answers,
	})
	err = proxy.Serve(ctx, l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, grace)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, answers.Drain(last), kept.Close())
}

// everyone may ask models. Callers are remembered, as a gateway remembers them.
type everyone struct {
	caller func(feature string) modelserver.Caller
	known  sync.Map
}

// Authorize implements models.Authorizer.
func (e *everyone) Authorize(_ context.Context, token string, _ modelserver.Claim) (modelserver.Caller, error) {
	known, is := e.known.Load(token)
	if !is {
		known, _ = e.known.LoadOrStore(token, e.caller(token))
	}
	return known.(modelserver.Caller), nil
}

// nobody may connect to a host.
type nobody struct{}

// Authorize implements egress.Authorizer.
func (nobody) Authorize(context.Context, string, coreegress.Field) (egressproxy.Caller, error) {
	return egressproxy.Caller{}, callers.ErrUnauthenticated
}

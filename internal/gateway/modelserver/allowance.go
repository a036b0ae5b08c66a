// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// allowance tells a watchdog what its Feature has used, and whether a call that wants an amount may be made now.
func (s *Server) allowance(w http.ResponseWriter, r *http.Request) {
	caller, f := s.caller(r)
	if f != nil {
		http.Error(w, f.Message, f.Status)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), reserveTime)
	defer cancel()
	a, err := s.allowed(ctx, caller, ledger.ParseAmount(r.URL.Query().Get(protocol.ParamWanted)))
	if err != nil {
		s.options.Logger.Warn("Cannot read a budget", "feature", caller.Feature, "error", err.Error())
		http.Error(w, "tidewaiter: the gateway cannot read its ledger at the moment; try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a); err != nil { // the watchdog hung up
		s.options.Logger.Debug("Cannot send an allowance", "feature", caller.Feature, "error", err.Error())
	}
}

func (s *Server) allowed(ctx context.Context, caller Caller, wanted ledger.Amount) (protocol.Allowance, error) {
	usage, err := s.options.Ledger.Usage(ctx, ledger.Feature, caller.UID)
	if err != nil {
		return protocol.Allowance{}, err
	}
	a := protocol.Allowance{Usage: protocol.Usage{
		InputTokens: usage.Input, CachedInputTokens: usage.Cached, OutputTokens: usage.Output, Cost: ledger.Decimal(usage.Cost), Calls: usage.Calls,
	}}
	if caller.CostAlertPercent > 0 {
		own, err := s.options.Ledger.Usage(ctx, ledger.Supervisor, caller.UID)
		if err != nil {
			return protocol.Allowance{}, err
		}
		a.SupervisorCost = ledger.Costly(usage.Amount, own.Amount, caller.CostAlertPercent)
	}
	for _, b := range caller.Budgets {
		used, reserved, err := s.options.Ledger.Taken(ctx, b)
		if err != nil {
			return protocol.Allowance{}, err
		}
		over, is := errors.AsType[*ledger.OverBudgetError](ledger.Over(b, used, reserved, wanted))
		switch {
		case is && over.Passes():
			a.Reserved = true
		case is && a.Exceeded == "":
			a.Exceeded = over.Error()
		}
		if a.Warning == "" {
			a.Warning = ledger.Nearly(b, used, caller.WarnAtPercent)
		}
	}
	return a, nil
}

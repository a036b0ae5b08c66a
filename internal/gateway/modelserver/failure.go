// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// failure is an answer that the gateway gives itself.
type failure struct {
	dialect.Failure

	reason string
	// wanted by a call that goes over a budget; nil for others.
	wanted *ledger.Amount
	// fails says that the task cannot be done.
	fails bool
	// elsewhere says that another backend may answer.
	elsewhere bool
	// speaks are the dialects of the backend that was to answer, where it does not speak the one of the call.
	speaks []string
	// wait before another try, in seconds; 0 is a second.
	wait int
	// detail for the ledger, such as the member that is refused; it may have words of the agent.
	detail string
	// recorded says that the ledger has a turn for it.
	recorded bool
	// repeated says that the log has the same of the call before.
	repeated bool
	// cause for the log, where it is more than the message.
	cause error
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

// told are the headers that tell the watchdog what it has to do.
func (f *failure) told() map[string]string {
	told := map[string]string{protocol.ReasonHeader: f.reason}
	if f.wanted != nil {
		told[protocol.WantedHeader] = f.wanted.String()
	}
	if len(f.speaks) > 0 {
		told[protocol.DialectsHeader] = strings.Join(f.speaks, ",")
	}
	if f.fails {
		told[protocol.FailsHeader] = url.QueryEscape(plain.CutBytes(f.Message, protocol.MaxFails))
	}
	return told
}

func fail(status int, reason string, cause error, format string, args ...any) *failure {
	return &failure{Failure: dialect.Failure{Status: status, Message: "tidewaiter: " + fmt.Sprintf(format, args...)}, reason: reason, cause: cause}
}

// refuse answers with what is wrong, in the dialect's own form, and says so in the log.
func (c *call) refuse(f *failure) {
	c.record.Reason, c.record.Status = f.reason, f.Status
	attributes := []any{"feature", c.record.Feature, "dialect", c.record.Dialect, "backend", c.record.Backend, "model", c.record.Model,
		"reason", f.reason, "status", f.Status, "message", f.Message}
	if f.cause != nil {
		attributes = append(attributes, "error", f.cause.Error())
	}
	if !f.repeated {
		c.server.options.Logger.Warn("Answered a model call with an error", attributes...)
	}
	c.reply.settle()
	if c.reply.started.Load() {
		c.interrupt(f)
		return
	}
	header := c.w.Header()
	header.Del("Content-Length")
	for name, value := range f.told() {
		header.Set(name, value)
	}
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	if f.Status == http.StatusServiceUnavailable || f.Status == http.StatusTooManyRequests {
		header.Set("Retry-After", strconv.Itoa(max(f.wait, 1)))
	}
	c.reply.deadline()
	c.w.WriteHeader(f.Status)
	_, _ = c.w.Write(c.dialect.Error(f.Failure)) // an agent that hung up does not read it
}

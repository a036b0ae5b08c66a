// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// reserveTime bounds the question whether a call may be made, settleTime what it takes to record one.
	reserveTime, settleTime = 5 * time.Second, 20 * time.Second
	// longestCall is when a call has ended that nobody has recorded the end of: its gateway is gone. Nothing is reserved any more
	// for a longer one, and it is recorded all the same.
	longestCall = 10 * time.Minute
	// mostLimits are how often a limit is lowered to what one more budget has left, before it is the least.
	mostLimits = 4
	// framing is how many bytes of a stream come with one of its words, about, in the dialects of these providers.
	framing = 16
	// leastKept and mostKept are how much memory is taken at a time for an answer that is recorded, in bytes: as much as it has, so that a stream
	// that has said little holds little. What is read of it takes up to keptTimes as much.
	leastKept, mostKept, keptTimes = 4 << 10, 64 << 10, 3
)

// turn is a call that is recorded: one that asks a model for an answer.
type turn struct {
	call     *call
	entry    ledger.Interaction
	reader   *conversation.Reader
	streamed bool
	// sent to the backend and received from it, in bytes.
	sent, received int64
	// output is how many tokens of its answer were reserved, and abandoned what it counts as where it is given up before its answer begins.
	output    int64
	abandoned ledger.Tokens
	// began is when the call was made, first is how long its answer took to begin, and tries are those before it.
	began time.Time
	first time.Duration
	tries int
	// status of the backend's answer; 0 before it.
	status int
	// most of the answer that is kept, in bytes.
	most int
	// unrecorded calls are let through without a record.
	unrecorded bool
	// raw is the answer as far as there is memory for it, which took this many bytes.
	raw []byte
	// lacks says why there was no memory for all of it; nil if there was.
	lacks error
	// held is memory for it and for what is read of it; reading is what the reader has taken of that.
	held    holding
	reading int64
	// audits says that the answer passes as it comes, and that what breaks a rule is recorded.
	audits bool
	// recorded says that there is nothing more to do.
	recorded bool
}

// reserve says that a call is about to be made. A failure has not been answered yet.
func (c *call) reserve() *failure {
	if c.endpoint.Kind != dialect.Generate {
		return nil
	}
	if f := c.priced(); f != nil {
		return f
	}
	c.turn = &turn{call: c, held: holding{server: c.server, feature: c.caller.Feature}, began: c.server.options.Now(), tries: c.record.Tries, entry: ledger.Interaction{
		ID: newID(c.server.options.Now()), FeatureUID: c.caller.UID, Keep: c.caller.Keep, Attempt: c.caller.Attempt, Task: c.caller.Task,
		Dialect: c.dialect.Name, Backend: c.route.Backend.Name, ModelAsked: c.endpoint.Asked(c.request), Model: c.route.Model.Name, Role: c.record.Role,
		Turn: c.number(), RequestDigest: c.digest, RequestBytes: c.record.Sent, TemplateHash: c.caller.Templates,
		Results: c.results.list, MoreResults: c.results.more, Detail: takenOut(c.request.TakenOut),
	}}
	c.turn.entry.Namespace, c.turn.entry.Feature, _ = strings.Cut(c.caller.Feature, "/")
	c.turn.sent = int64(len(c.body))
	limit, wanted, err := c.turn.reserve()
	if err == nil && limit > 0 {
		c.limit = limit
		c.turn.entry.Detail = strings.Trim(c.turn.entry.Detail+fmt.Sprintf("; a budget limits the answer to %d tokens", limit), "; ")
		return c.compose()
	}
	if err == nil {
		return nil
	}
	if over, is := errors.AsType[*ledger.OverBudgetError](err); is {
		c.turn = nil
		return overBudget(over, wanted)
	}
	if c.caller.Unrecorded {
		c.server.options.Logger.Error("Letting a call through without a record", "feature", c.caller.Feature, "error", err.Error())
		c.turn.unrecorded = true
		return nil
	}
	c.turn = nil
	return unrecorded(err)
}

// number of the turn of the run that the call belongs to, as its watchdog says; 0 where it does not say so.
func (c *call) number() int64 {
	turn, err := strconv.ParseInt(c.r.Header.Get(dialect.TurnHeader), 10, 64)
	if err != nil {
		return 0
	}
	return max(turn, 0)
}

// reserve what the call uses at most. If budgets have room for only a part of the answer, limit is what the answer has to be limited to, in tokens.
func (t *turn) reserve() (limit int64, wanted ledger.Amount, err error) {
	c := t.call
	without, _ := c.route.Backend.Members()
	asked, price := c.request.Limit(slices.Concat(without, c.route.Backend.Unread(c.dialect))), c.price.Dearest()
	if asked.Tokens > 0 && asked.Thinking >= asked.Tokens {
		// Interleaved thoughts are in no limit of an answer (https://docs.claude.com/en/docs/build-with-claude/extended-thinking#interleaved-thinking).
		asked.Tokens += asked.Thinking
	}
	output := ledger.Output(asked.Tokens, c.route.Model.MaxOutput)
	least := min(output, ledger.LeastOutput+asked.Thinking)
	if c.endpoint.Side { // its request has no limit
		least = output
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), reserveTime)
	defer cancel()
	for tries := 1; ; tries++ {
		tokens := ledger.Expect(t.sent, c.route.Model.ContextWindow, output*asked.Choices)
		wanted, t.output = price.Wanted(tokens), tokens.Output
		err = c.server.options.Ledger.Reserve(ctx, ledger.Reservation{
			ID: t.entry.ID, FeatureUID: c.caller.UID, Namespace: t.entry.Namespace, Until: t.began.Add(longestCall), Wanted: wanted,
		}, c.caller.Budgets)
		over, is := errors.AsType[*ledger.OverBudgetError](err)
		if !is || over.Passes() || output <= least {
			return limit, wanted, err
		}
		output = max(least, min(output-1, over.Fits(tokens, price)/asked.Choices))
		if tries == mostLimits {
			output = least
		}
		limit = output
	}
}

// newID of a call begins with the time, in a number of digits that is the same until 2119: the newest rows are in one place of the ledger's index,
// so that a transaction writes few of its pages.
func newID(now time.Time) string {
	return strconv.FormatInt(now.UnixNano(), 36) + rand.Text()
}

// note in the ledger a call that has no turn.
func (c *call) note(status int, reason, detail string) {
	if c.caller.UID == "" {
		return
	}
	i := ledger.Interaction{
		At: c.server.options.Now(), FeatureUID: c.caller.UID, Keep: c.caller.Keep, Attempt: c.caller.Attempt, Task: c.caller.Task,
		Dialect: c.dialect.Name, Backend: c.record.Backend, ModelAsked: c.endpoint.Asked(c.request), Model: c.record.Model, Role: c.record.Role,
		RequestBytes: c.record.Sent, Status: status, Reason: reason, Detail: detail, Duration: c.server.options.Now().Sub(c.began),
	}
	i.Namespace, i.Feature, _ = strings.Cut(c.caller.Feature, "/")
	c.server.options.Ledger.Fold(c.r.Context(), i)
}

// takenOut is what the ledger says of what the backend did not get.
func takenOut(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "taken out: " + strings.Join(names, ", ")
}

// priced refuses a model whose cost nobody knows where a budget limits the cost.
func (c *call) priced() *failure {
	if c.route.Model.Prices.Known() {
		return nil
	}
	for _, b := range c.caller.Budgets {
		if b.Limit.Cost > 0 {
			return fail(http.StatusServiceUnavailable, reasonNoModel, nil, "a budget limits the cost (%s), and the model %q of the backend %q has no prices. An administrator adds them, with \"0\" for a model that costs nothing",
				b.Origins[ledger.Cost], c.route.Model.Name, c.route.Backend.Name)
		}
	}
	return nil
}

// overBudget has a status after which clients of every dialect try again: the watchdog holds an agent with a used-up budget until there is more.
func overBudget(over *ledger.OverBudgetError, wanted ledger.Amount) *failure {
	reason := protocol.ReasonBudgetExceeded
	if over.Passes() {
		reason = protocol.RefusalReserved
	}
	f := fail(http.StatusServiceUnavailable, reason, nil, "%v", over)
	f.wanted = &wanted
	return f
}

func unrecorded(err error) *failure {
	return fail(http.StatusServiceUnavailable, reasonUnrecorded, err, "the gateway cannot write its ledger at the moment, and the policy (ledger.failurePolicy) lets no call through without it; try again")
}

// answered begins with the answer of a backend.
func (t *turn) answered(now time.Time, status int, streamed, checked bool) {
	if t == nil {
		return
	}
	t.first, t.status, t.streamed, t.most = now.Sub(t.began), status, streamed, ledger.MaxAnswer
	if !streamed {
		t.most = conversation.MaxWhole
	}
	if checked {
		t.most = maxHeld
	}
	t.reader = conversation.NewReader(t.call.dialect.Answer(), streamed)
}

// see the next bytes of the answer. Over says that they end it: it is recorded before the agent sees them.
func (t *turn) see(p []byte) (over bool) {
	if t == nil {
		return false
	}
	t.received += int64(len(p))
	if t.streamed { // anything else is read when it is whole, where it is kept
		t.reader.Write(p)
	}
	if t.keep(len(p)) {
		t.raw = append(t.raw, p...)
	}
	return t.streamed && t.reader.Answer().Ended
}

// keep says whether there is memory for more bytes. An answer is kept from its beginning, without gaps.
func (t *turn) keep(n int) bool {
	if int64(len(t.raw)) != t.received-int64(n) || len(t.raw)+n > t.most {
		return false
	}
	for int64(len(t.raw)+n)*keptTimes > t.held.amount-t.reading {
		if t.lacks = t.held.try(int64(min(max(len(t.raw)+n, leastKept), mostKept)) * keptTimes); t.lacks != nil {
			return false
		}
	}
	return true
}

// pay for what the reader holds of a stream.
func (t *turn) pay(ctx context.Context) *failure {
	if t == nil {
		return nil
	}
	more := int64(t.reader.Size()) - t.reading
	if more <= 0 {
		return nil
	}
	if f := t.held.take(ctx, more); f != nil {
		return f
	}
	t.reading += more
	return nil
}

// read is the answer as far as it has come, when nothing more comes.
func (t *turn) read() *conversation.Answer {
	if !t.streamed && t.whole() {
		return t.reader.Whole(t.raw)
	}
	return t.reader.Close()
}

// early says that a stream has ended before its answer has. What stands between may end a stream as if it were whole, and clients take what there is for
// the answer. An answer of which a part could not be read may have said its end there.
func (t *turn) early() bool {
	if t == nil || !t.streamed || t.status >= http.StatusBadRequest {
		return false
	}
	a := t.read()
	return !a.Ended && a.Stop == conversation.StopNone && a.Failure == "" && !a.Cut
}

// whole says whether all that came was kept.
func (t *turn) whole() bool { return int64(len(t.raw)) == t.received }

// charged is what the provider has counted. Of an answer that it has not counted to the end, as where the agent hangs up, it is
// an estimate: nothing that was answered is free of budgets.
func (t *turn) charged(a *conversation.Answer) (tokens ledger.Tokens, estimated bool) {
	counted := ledger.Tokens{
		Input: a.Usage.Input, Cached: a.Usage.Cached, Writes: a.Usage.Writes, LongWrites: a.Usage.LongWrites, Output: a.Usage.Output, Uses: ledger.Uses(a.Usage.Uses),
	}
	words := int64(len(a.Text))
	for _, tool := range a.Tools {
		words += int64(len(tool.Arguments))
	}
	complete := counted.Sent() > 0 && (counted.Output > 0 || words == 0)
	if a.Counted && a.Ended && complete || t.status >= http.StatusBadRequest {
		return counted, false
	}
	if t.streamed { // what a model thinks is not read; an event has several times the bytes of its words
		words = max(words, t.received/framing)
	} else { // a part of it cannot be read
		words = max(words, t.received)
	}
	return ledger.Charge(counted, t.sent, t.call.route.Model.ContextWindow, words), true
}

// abandon a call before its answer has begun. Taken says that the backend may have had it, since a time.
func (t *turn) abandon(since time.Time, taken bool) {
	if t == nil || !taken {
		return
	}
	most := t.output
	if t.call.request.Streamed || t.call.endpoint.Streams {
		most = 0
	}
	t.abandoned = ledger.Abandoned(t.sent, t.call.route.Model.ContextWindow, most, t.call.server.options.Now().Sub(since))
}

// record the call; nil where that need not be, or was done. The agent may be gone: it is recorded all the same.
func (t *turn) record() error {
	if t == nil || t.recorded {
		return nil
	}
	t.recorded = true
	c, o := t.call, t.call.server.options
	e := &t.entry
	e.At, e.Retries, e.Status, e.Reason = o.Now(), int64(max(0, c.record.Tries-t.tries-1)), c.record.Status, c.record.Reason
	e.FirstByte, e.Duration, e.AnswerBytes, e.Raw = t.first, e.At.Sub(t.began), t.received, t.raw[:min(len(t.raw), ledger.MaxAnswer)]
	if len(e.Formatted) > ledger.MaxAnswer {
		e.Formatted = e.Formatted[:ledger.MaxAnswer]
	}
	e.Tokens, e.Estimated = t.abandoned, t.abandoned != (ledger.Tokens{})
	if t.reader != nil {
		a := t.read()
		if a.Model != "" {
			e.Model = a.Model
		}
		if t.audits {
			t.audit(a)
		}
		e.Tokens, e.Estimated = t.charged(a)
	}
	if t.reader != nil || e.Estimated {
		e.Cost = c.price.Cost(e.Tokens)
		c.record.Tokens, c.record.Cost = c.record.Tokens.Plus(e.Tokens), c.record.Cost+e.Cost
		if e.Estimated {
			c.record.Estimated++
		}
	}
	if t.unrecorded {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), settleTime)
	defer cancel()
	if err := o.Ledger.Settle(ctx, e.ID, *e); err != nil {
		o.Logger.Error("Cannot record a call", "feature", c.caller.Feature, "call", e.ID, "error", err.Error())
		if !c.caller.Unrecorded {
			return err
		}
	}
	return nil
}

// close records the call, should nobody have done so, and gives its memory back. An answer that was cut off, or given up, is
// recorded as far as it came; nobody waits for that.
func (t *turn) close() {
	if t == nil {
		return
	}
	_ = t.record() // which says so in the log
	t.raw, t.entry = nil, ledger.Interaction{}
	t.held.end()
}

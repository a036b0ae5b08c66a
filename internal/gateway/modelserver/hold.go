// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// maxHeld of an answer, in bytes: a stream has some thirty times the bytes of its words, and a model may think for long.
const maxHeld = 32 << 20

// retextMemory is what it takes to replace the text of an answer, in bytes: a copy that ends cleanly, the answer with another text in a buffer that
// grows, and what is read of both. What holds the first answer is there already.
func retextMemory(raw, text int) int64 { return int64(4*raw + 4*text) }

// mayBeFinal says whether rules may apply to the answer. If a runtime makes calls of its own, such as for titles, they offer no tools, and
// their answers are not final. Nor is the answer of a turn in which the supervisor forbids tool calls.
func (c *call) mayBeFinal() bool {
	return c.endpoint.Kind == dialect.Generate && !c.endpoint.Side && c.caller.Answers.Any() && (c.request.Tools && !c.request.Bare() || !c.caller.SideCalls)
}

// hold what has come until it is known what it is. Part is the last of it.
func (r *relay) hold(part []byte, over bool) (more bool, f *failure) {
	t, rules := r.call.turn, r.call.caller.Answers
	switch {
	case !t.whole() && t.received <= maxHeld:
		return false, noMemory(t.lacks)
	case !t.whole() && rules.Audit: // without a text around it, rather than not at all
		if more, f = r.release(over); more {
			t.audits, more = true, r.call.send(part)
		}
		return more, f
	case !t.whole() && len(rules.Checks) == 0:
		return false, fail(http.StatusBadRequest, reasonRejected, nil, "the model's answer has more than %d bytes, and the gateway cannot put the texts of Output templates around it: ask for less at once", maxHeld)
	case over || !t.whole():
		return false, r.judge()
	case t.reader.Answer().Acts:
		return r.release(false)
	}
	return true, nil
}

// release the held part of an answer without rules. The rest of it passes as it comes.
func (r *relay) release(over bool) (more bool, f *failure) {
	c := r.call
	r.checks = false
	c.reply.settle()
	c.forget()
	if over {
		if f := c.settled(); f != nil {
			return false, f
		}
	}
	if !c.turn.streamed && c.turn.whole() {
		c.w.Header().Set("Content-Length", strconv.Itoa(len(c.turn.raw)))
	}
	c.reply.start(c.record.Status)
	return c.send(c.turn.raw), nil
}

// judge checks a complete answer, and passes the accepted part to the agent.
func (r *relay) judge() *failure {
	c, t := r.call, r.call.turn
	a := t.read()
	switch {
	case !t.whole():
	case passes(c.caller.Answers, a):
		_, f := r.release(true)
		return f
	case !a.Ended:
		return fail(http.StatusServiceUnavailable, reasonCutOff, nil, "the backend's answer broke off, or the gateway cannot read it; try again")
	}
	text := string(a.Text)
	v := c.caller.Answers.Judge(text, a.Cut || !t.whole()) // needs no desk: a reader keeps conversation.MaxText
	body := t.raw
	if !v.Rejected && v.Text != text {
		c.passage.leave() // the backend has said all
		if f := t.held.take(c.r.Context(), retextMemory(len(t.raw), len(v.Text))); f != nil {
			return f
		}
		var err error
		if gone := c.work(c.r.Context(), len(t.raw), func() { body, err = c.dialect.Retext(t.raw, t.streamed, v.Text) }); gone != nil {
			return gone
		}
		if err != nil {
			return fail(http.StatusBadGateway, reasonRejected, err, "the gateway cannot correct or format the answer, because the backend %q gives it in an unknown form", c.route.Backend.Name)
		}
		t.entry.Formatted = body
	}
	t.judged(v)
	if v.Rejected {
		return c.reject(v, text)
	}
	if f := c.settled(); f != nil {
		return f
	}
	c.reply.settle()
	if !t.streamed {
		c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	c.reply.start(c.record.Status)
	c.send(body)
	return nil
}

// passes says that an answer does not end a turn: it calls a tool, is an error of the provider, or is empty and the model did not end it.
func passes(rules answers.Rules, a *conversation.Answer) bool {
	said := strings.TrimSpace(string(a.Text)) != "" || a.Cut
	return a.Acts || !said && (a.Failure != "" || a.Ended && (len(rules.Checks) == 0 || a.Stop != conversation.StopEnd))
}

// audit an answer that the agent gets as it comes: what breaks a rule is recorded.
func (t *turn) audit(a *conversation.Answer) {
	rules, unread := t.call.caller.Answers, !t.streamed && !t.whole()
	if unread || a.Ended && !passes(rules, a) {
		t.judged(rules.Judge(string(a.Text), a.Cut || unread))
	}
}

// judged is the result of checking the answer.
func (t *turn) judged(v answers.Verdict) {
	for _, x := range v.Violations {
		t.entry.Violations = append(t.entry.Violations, ledger.Violation{Type: string(x.Type), Severity: string(x.Severity), Message: x.Message})
	}
	r := &t.call.record
	switch {
	case v.Rejected: // which says so itself
	case len(v.Violations) > 0 && t.call.caller.Answers.Audit:
		r.Checked = CheckedReported
	case len(t.entry.Formatted) > 0:
		r.Checked = CheckedChanged
	default:
		r.Checked = CheckedAccepted
	}
}

// reject an answer: repeat the request, or send an error to the agent.
func (c *call) reject(v answers.Verdict, text string) *failure {
	c.rejected++
	c.record.Rejected, c.record.Reason = c.rejected, reasonRejected
	if f := c.settled(); f != nil {
		return f
	}
	rules := c.caller.Answers
	if c.rejected <= rules.Retries {
		c.server.options.Logger.Info("Asking the backend for a better answer", "feature", c.caller.Feature, "task", c.caller.Task, "violations", len(v.Violations))
		o := dialect.Objection{Text: answers.Objection(v.Violations)}
		if len(text) <= answers.MaxChecked {
			o.Answer = text
		}
		c.repeat, c.objections = true, append(c.objections, o)
		c.results = results{} // the turn of this answer has them
		return nil
	}
	c.record.Checked = CheckedRejected
	f := fail(http.StatusBadRequest, reasonRejected, nil, "the model's answer breaks the rules of the Output templates, and %d retries did not help: %s", rules.Retries, answers.Summary(v.Violations))
	f.fails = rules.Fail
	return f
}

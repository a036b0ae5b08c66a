// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// MaxReason bounds the reason of a verdict, in characters.
const MaxReason = 300

// Verdict is the answer of an assessor.
type Verdict struct {
	// Verdict is ReviewAligned, ReviewMinorDrift or ReviewMajorDivergence of the protocol.
	Verdict string `json:"verdict"`
	// Reason for users and, after a MajorDivergence, for the planner; one line of visible characters.
	Reason string `json:"reason"`
	// Directive for the agent; nil for none. Only a MinorDrift has one.
	Directive *Correction `json:"directive"`
}

// Correction says what the agent has to change. Its texts are as the model wrote them.
type Correction struct {
	// Description says what to change, and Rationale why.
	Description string `json:"description"`
	Rationale   string `json:"rationale"`
	// Path, Line and Quote are the evidence. Path and Quote are empty if the correction names no file.
	Path  string `json:"path"`
	Line  int    `json:"line"`
	Quote string `json:"quote"`
}

// driftRule takes the place of the rule that a finding has.
const driftRule = "drift"

// verdictTool that the model of an assessor has to call.
func verdictTool() speech.Tool {
	return speech.Tool{Name: "give_verdict", Description: "Gives the verdict on the work.", Schema: json.RawMessage(VerdictSchema())}
}

// VerdictSchema of a verdict, as JSON.
func VerdictSchema() string {
	return fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["verdict","reason"],"properties":{`+
		`"verdict":{"type":"string","enum":[%q,%q,%q]},"reason":{"type":"string","minLength":1,"maxLength":%d},`+
		`"directive":{"type":"object","additionalProperties":false,"required":["description"],"properties":{"description":{"type":"string","minLength":1,"maxLength":%d},`+
		`"rationale":{"type":"string","maxLength":%d},"path":{"type":"string","maxLength":%d},"line":{"type":"integer","minimum":1},"quote":{"type":"string","maxLength":%d}}}}}`,
		protocol.ReviewAligned, protocol.ReviewMinorDrift, protocol.ReviewMajorDivergence, MaxReason, MaxDescription, MaxRationale, MaxPath, MaxQuote)
}

// ReadVerdict takes the answer of an assessor's model. The objection is empty if the verdict can be used; otherwise it says to the model what is wrong.
func ReadVerdict(arguments json.RawMessage) (v Verdict, objection string) {
	if objection := tooLong(arguments); objection != "" {
		return Verdict{}, objection
	}
	if objection := answers.Read(VerdictSchema(), arguments, &v); objection != "" {
		return Verdict{}, objection
	}
	v.Reason = plain.Line(v.Reason, MaxReason)
	if !usable(v.Reason) {
		return Verdict{}, "The reason says nothing, or it has a link or a mark of the supervisor: give the reason in plain words."
	}
	if v.Verdict != protocol.ReviewMinorDrift {
		v.Directive = nil
		return v, ""
	}
	switch d := v.Directive; {
	case d == nil:
		return Verdict{}, "MinorDrift needs a directive: say in directive.description what the agent has to change."
	case !usable(plain.Line(d.Description, MaxDescription)) || forged(plain.Line(d.Rationale, MaxRationale)):
		return Verdict{}, "The directive says nothing, or it has a link or a mark of the supervisor: say in plain words what the agent has to change."
	case (d.Path == "") != (d.Quote == ""):
		return Verdict{}, "directive.path and directive.quote belong together: give both, or neither."
	}
	return v, ""
}

// usable says whether a text can go to an agent.
func usable(text string) bool { return strings.Trim(text, ". ") != "" && !forged(text) }

// Assess decides what comes of a verdict. A MinorDrift gives one directive, and is Aligned without one that counts. Text and known are as in Keep.
func Assess(r Reviewer, v Verdict, text func(path string) (content string, is bool), known func(id string) bool) (outcome string, given []protocol.Directive, discarded []Discarded) {
	if v.Verdict != protocol.ReviewMinorDrift || v.Directive == nil {
		return v.Verdict, nil, nil
	}
	d, reason := correction(r, *v.Directive, text)
	if reason == "" && known(d.ID) {
		reason = Known
	}
	if reason != "" {
		return protocol.ReviewAligned, nil, []Discarded{discard(v.Directive.Path, driftRule, reason)}
	}
	return v.Verdict, []protocol.Directive{d}, nil
}

// correction as a directive; otherwise the reason why it does not count.
func correction(r Reviewer, c Correction, text func(path string) (string, bool)) (d protocol.Directive, reason Reason) {
	d = protocol.Directive{
		Source: r.Name, Type: r.Directive, Priority: protocol.PriorityNormal,
		Description: strings.TrimRight(plain.Line(c.Description, MaxDescription), ". "), Rationale: plain.Line(c.Rationale, MaxRationale),
	}
	if !usable(d.Description) || forged(d.Rationale) {
		return d, Unusable
	}
	if c.Path == "" && c.Quote == "" {
		d.ID = id(r.Name, driftRule, "", words(d.Description))
		d.Description += "."
		return d, ""
	}
	name, quote, line, reason := stands(c.Path, c.Quote, c.Line, text)
	if reason != "" {
		return d, reason
	}
	if forged(name) {
		return d, Unusable
	}
	d.ID, d.Files = id(r.Name, driftRule, name, quote), []string{name}
	d.Description = fmt.Sprintf("%s (%s:%d).", d.Description, judge.Escape(name), line)
	return d, ""
}

// VerdictWords say to users what comes of a verdict, such as "Assessor review: the work drifts, 1 functional directive. The form has no test".
func VerdictWords(r Reviewer, v Verdict, outcome string) string {
	said := map[string]string{
		protocol.ReviewAligned:         "the work follows the request and the plan",
		protocol.ReviewMinorDrift:      "the work drifts, 1 " + strings.ToLower(r.Directive) + " directive",
		protocol.ReviewMajorDivergence: "the work diverges from the request or the plan",
	}[outcome]
	if outcome != v.Verdict {
		said = "the work drifts, and the directive does not count"
	}
	return fmt.Sprintf("%s review: %s. %s", r.Title, said, v.Reason)
}

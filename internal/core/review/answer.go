// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// Bounds of an answer. MaxSummary, MaxDescription and MaxRationale are in characters, the others of texts in bytes.
const (
	MaxFindings    = 12
	MaxChecks      = 3
	MaxSummary     = 300
	MaxDescription = 200
	MaxRationale   = 200
	MaxQuote       = 200
	MaxRule        = 64
	MaxPath        = 512
)

// Answer of a reviewer.
type Answer struct {
	// Summary for users, in one line of visible characters.
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
	// StillThere are the answered directives whose reason the reviewer still finds in the work.
	StillThere []Still `json:"stillThere"`
	// Documents that it proposes to write.
	Documents []knowledge.Note `json:"documents"`
}

// Still is an answered directive that is not addressed.
type Still struct {
	// ID is one that the question has shown.
	ID   string `json:"id"`
	Path string `json:"path"`
	// Quote is a part of the file.
	Quote string `json:"quote"`
}

// Finding is something that the agent must change. Its texts are as the model wrote them.
type Finding struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	// Quote is a part of the file.
	Quote string `json:"quote"`
	// Rule names what the work departs from.
	Rule string `json:"rule"`
	// Description says what to change, and Rationale why.
	Description string `json:"description"`
	Rationale   string `json:"rationale"`
	// Priority is one of the priorities of directives.
	Priority string `json:"priority"`
	// Cause says what is wrong where the changes contradict a document: CodeWrong or DesignOutdated; empty where they do not.
	Cause string `json:"cause,omitempty"`
}

// Causes of a finding of a reviewer that weighs.
const (
	// CodeWrong: the changes have to follow the document.
	CodeWrong = "CodeWrong"
	// DesignOutdated: the changes are right. The reviewer contradicts the document, or changes it, and gives no directive.
	DesignOutdated = "DesignOutdated"
)

// tool that the model has to call.
func (r Reviewer) tool(writes bool) speech.Tool {
	t := speech.Tool{Name: "report_findings", Description: "Reports what the review has found.", Schema: json.RawMessage(Schema(r, writes))}
	if r.Mute {
		t.Name, t.Description = "write_documents", "Writes down what the next agents should know."
	}
	return t
}

// Schema of the answer of a reviewer, as JSON. Writes says whether it can write documents.
func Schema(r Reviewer, writes bool) string {
	text := func(limit int) string { return fmt.Sprintf(`{"type":"string","minLength":1,"maxLength":%d}`, limit) }
	finding := fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","line","quote","rule","description","priority"],"properties":{"path":%s,`+
		`"line":{"type":"integer","minimum":1},"quote":%s,"rule":%s,"description":%s,"rationale":{"type":"string","maxLength":%d},"priority":{"type":"string","enum":["Critical","Normal","Low"]}}}`,
		text(MaxPath), text(MaxQuote), text(MaxRule), text(MaxDescription), MaxRationale)
	if r.Weighs && writes {
		finding = strings.TrimSuffix(finding, "}}") + fmt.Sprintf(`,"cause":{"type":"string","enum":["%s","%s"]}}}`, CodeWrong, DesignOutdated)
	}
	still := fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id","path","quote"],"properties":{"id":%s,"path":%s,"quote":%s}}`,
		text(protocol.MaxDirectiveID), text(MaxPath), text(MaxQuote))
	required, members := `"findings"`, fmt.Sprintf(`"findings":{"type":"array","maxItems":%d,"items":%s},"stillThere":{"type":"array","maxItems":%d,"items":%s}`, MaxFindings, finding, MaxChecks, still)
	switch {
	case r.Mute:
		required, members = `"documents"`, r.documentsSchema()
	case writes:
		members += "," + r.documentsSchema()
	}
	return fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["summary",%s],"properties":{"summary":%s,%s}}`, required, text(MaxSummary), members)
}

// MaxAnswer bounds an answer, in bytes: twice what a question asks for, because models do not count bytes.
const MaxAnswer = 8000

// tooLong is an objection to an answer that is larger than MaxAnswer; empty if it is not.
func tooLong(arguments json.RawMessage) string {
	if len(arguments) <= MaxAnswer {
		return ""
	}
	return fmt.Sprintf("The answer has %d bytes: give one of less than %d.", len(arguments), MaxAnswer/2)
}

// Read takes the answer of the model of a reviewer. Writes says whether it can write documents. The objection is empty if the answer can be used; otherwise it says to the model
// what is wrong.
func Read(r Reviewer, writes bool, arguments json.RawMessage) (a Answer, objection string) {
	if objection := tooLong(arguments); objection != "" {
		return Answer{}, objection
	}
	if objection := answers.Read(Schema(r, writes), arguments, &a); objection != "" {
		return Answer{}, objection
	}
	outdated := func(f Finding) bool { return f.Cause == DesignOutdated }
	if len(a.Documents) == 0 && slices.ContainsFunc(a.Findings, outdated) {
		return Answer{}, "The cause of a finding is " + DesignOutdated + ", and documents is empty: name the document in contradicts, and write down under another name what holds now."
	}
	a.Summary = plain.Line(a.Summary, MaxSummary)
	return a, ""
}

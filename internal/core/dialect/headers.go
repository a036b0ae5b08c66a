// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"
)

// Value is the part of a header's value that reaches the provider; empty for none. A beta feature of an API passes if it only changes the
// form of requests and answers, or if the policy lists it as vendor/feature: others cost more, or reach further.
func (d Dialect) Value(header, value string, a Allowed) string {
	if !strings.EqualFold(header, d.betas.header) {
		return value
	}
	var pass []string
	for beta := range strings.SplitSeq(value, ",") {
		beta = strings.TrimSpace(beta)
		family := strings.TrimRight(beta, "-0123456789")
		tool := d.betas.tools[family]
		switch {
		case slices.Contains(d.betas.plain, family),
			family == d.betas.state && a.State,
			slices.Contains(a.Tools, d.betas.vendor+"/"+family),
			tool != "" && slices.Contains(a.Tools, tool):
			pass = append(pass, beta)
		}
	}
	return strings.Join(pass, ",")
}

// betas of an API, by their names without dates.
type betas struct {
	header, vendor string
	// plain ones change only the form of requests and answers. State is for what the provider keeps, and tools for what it runs.
	plain []string
	state string
	tools map[string]string
}

// anthropicBetas follow github.com/anthropics/anthropic-sdk-go v1.84.0 and what Claude Code sends; a date is in the name of each.
// context-1m and fast-mode have other prices, managed-agents and environments run elsewhere: they are not here.
var anthropicBetas = betas{
	header: "anthropic-beta", vendor: "anthropic", state: "files-api",
	plain: []string{
		"claude-code", "interleaved-thinking", "redact-thinking", "thinking-token-count", "thinking-binding-controls", "thinking-display-updates", "thinking-resumption",
		"context-management", "compact", "model-context-window-exceeded", "prompt-caching", "prompt-caching-scope", "extended-cache-ttl", "cache-diagnosis",
		"mid-conversation-system", "mid-conversation-system-clear-at", "mid-conversation-tool-changes", "mid-conversation-output-config", "per-turn-control",
		"inline-tools", "advanced-tool-use", "tool-search-tool", "tool-examples", "fine-grained-tool-streaming", "token-efficient-tools", "dangerous-tool-use", "computer-use",
		"effort", "task-budgets", "structured-outputs", "token-counting", "pdfs", "output-128k",
	},
	tools: map[string]string{
		"web-search": "anthropic/web_search", "web-fetch": "anthropic/web_fetch", "code-execution": "anthropic/code_execution", "advisor-tool": "anthropic/advisor",
		"mcp-client": "anthropic/mcp_servers", "mcp-servers": "anthropic/mcp_servers", "skills": "anthropic/skills",
	},
}

// stainless are the headers by which the official clients of both vendors tell of themselves.
var stainless = []string{
	"x-stainless-lang", "x-stainless-package-version", "x-stainless-os", "x-stainless-arch", "x-stainless-runtime", "x-stainless-runtime-version",
	"x-stainless-retry-count", "x-stainless-timeout", "x-stainless-read-timeout", "x-stainless-async", "x-stainless-helper", "x-stainless-helper-method",
}

// PassesBack says whether a header of an answer reaches the agent.
func (d Dialect) PassesBack(header string) bool {
	header = strings.ToLower(header)
	return slices.ContainsFunc(d.AnswerHeaders, func(allowed string) bool {
		return header == allowed || strings.HasSuffix(allowed, "-") && strings.HasPrefix(header, allowed)
	})
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// geminiAnswer reads https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse, and a stream of them. Of several candidates the
// first one counts: agents ask for one.
type geminiAnswer struct {
	ids geminiIDs
}

type geminiResponse struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts geminiParts `json:"parts"`
		} `json:"content"`
		Finish    string                   `json:"finishReason"`
		Grounding lenient[geminiGrounding] `json:"groundingMetadata"`
		Pages     lenient[geminiPages]     `json:"urlContextMetadata"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		// Prompt has the cached ones among it.
		Prompt int64 `json:"promptTokenCount"`
		Cached int64 `json:"cachedContentTokenCount"`
		// Tools is what tools of the provider have put into the prompt, which Prompt does not count.
		Tools int64 `json:"toolUsePromptTokenCount"`
		// Candidates does not count the thoughts.
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Model string `json:"modelVersion"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// geminiGrounding says what the answer rests on: https://ai.google.dev/gemini-api/docs/google-search. Google bills each query.
type geminiGrounding struct {
	Queries []string `json:"webSearchQueries"`
	Images  []string `json:"imageSearchQueries"`
	Files   []string `json:"retrievalQueries"`
	Chunks  []struct {
		Web  *struct{} `json:"web"`
		Maps *struct{} `json:"maps"`
		File *struct{} `json:"retrievedContext"`
	} `json:"groundingChunks"`
}

// geminiPages are what it has read: https://ai.google.dev/gemini-api/docs/url-context
type geminiPages struct {
	List []struct{} `json:"urlMetadata"`
}

// uses of tools; one where there is nothing but what was found.
func (g geminiGrounding) uses() (u conversation.Uses) {
	u.Searches, u.FileSearches = int64(len(g.Queries)+len(g.Images)), int64(len(g.Files))
	for _, c := range g.Chunks {
		if c.Web != nil || c.Maps != nil {
			u.Searches = max(u.Searches, 1)
		}
		if c.File != nil {
			u.FileSearches = max(u.FileSearches, 1)
		}
	}
	return u
}

func geminiStop(finish string, tools bool) conversation.Stop {
	switch {
	case finish == "":
		return conversation.StopNone
	case finish == "STOP" && tools:
		return conversation.StopTools
	case finish == "STOP":
		return conversation.StopEnd
	case finish == "MAX_TOKENS":
		return conversation.StopLength
	default:
		return conversation.StopOther
	}
}

// Event implements conversation.Decoder.
func (d *geminiAnswer) Event(a *conversation.Answer, data []byte) { d.Whole(a, data) }

// Whole implements conversation.Decoder.
func (d *geminiAnswer) Whole(a *conversation.Answer, body []byte) {
	var r geminiResponse
	if json.Unmarshal(body, &r) != nil {
		return
	}
	if r.Error != nil {
		a.Fail(r.Error.Message)
	}
	if r.Model != "" {
		a.By(r.Model)
	}
	if u := r.Usage; u != nil {
		a.Count(conversation.Usage{Input: max(u.Prompt-u.Cached, 0) + max(u.Tools, 0), Cached: u.Cached, Output: max(u.Candidates, 0) + max(u.Thoughts, 0)})
	}
	if d.ids == nil {
		d.ids = geminiIDs{}
	}
	for _, c := range r.Candidates {
		if c.Index != 0 {
			a.Cut = true
			continue
		}
		for _, p := range c.Content.Parts {
			a.Say(p.said())
			if p.runs() {
				a.Usage.Executions++
			}
			if call := p.call(); call != nil {
				a.Argue(a.Call(d.ids.of(call.ID, call.Name), call.Name), string(call.Args))
			}
		}
		// A later part of a stream repeats what an earlier one has said.
		found, has := c.Grounding.v.uses(), &a.Usage.Uses
		has.Searches, has.FileSearches, has.Fetches = max(has.Searches, found.Searches), max(has.FileSearches, found.FileSearches), max(has.Fetches, int64(len(c.Pages.v.List)))
		if stop := geminiStop(c.Finish, len(a.Tools) > 0); stop != conversation.StopNone {
			a.Stop, a.Ended = stop, true
		}
	}
	if r.Feedback.Block != "" {
		a.Stop, a.Ended = conversation.StopOther, true
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compose puts the templates of a Feature before what its agent sends to a model. The sequence is always the same: global
// templates, templates of the project, then what the agent sent, which never changes.
package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxText of one template in bytes, the bound of spec.text of a Template.
	MaxText = 64 << 10
	// MaxLayer bounds the templates of one scope together, in bytes: every request of every agent carries them.
	MaxLayer = 256 << 10
)

// Markers say where a text comes from. No template may hold one, so that the parts can be told apart again.
const (
	globalStart  = "<!-- GLOBAL_TEMPLATE_START -->"
	globalEnd    = "<!-- GLOBAL_TEMPLATE_END -->"
	projectStart = "<!-- PROJECT_TEMPLATE_START -->"
	projectEnd   = "<!-- PROJECT_TEMPLATE_END -->"
	promptStart  = "<!-- USER_PROMPT_START -->"
)

// marked is how every marker begins, in lower case.
var marked = []string{"<!-- global_template_", "<!-- project_template_", "<!-- user_prompt_", "<!-- formatted_output_"}

// Check says why a text cannot be a template; the message is for its author.
func Check(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it is empty: write a text, or delete the template")
	}
	return CheckText(text)
}

// CheckText is Check for a text that may be empty.
func CheckText(text string) error {
	if len(text) > MaxText {
		return fmt.Errorf("it has %d bytes, and the limit is %d: shorten it", len(text), MaxText)
	}
	if strings.ToValidUTF8(text, "") != text {
		return errors.New("it is not UTF-8: save it in that encoding")
	}
	if m := Marker(text); m != "" {
		return fmt.Errorf("it holds the marker %q, which tells where a text comes from: remove it", m)
	}
	return nil
}

// Marker returns the beginning of the first marker of a kind that a text holds, as it stands there; empty if it holds none.
func Marker(text string) string {
	for _, m := range marked {
		for at := range len(text) - len(m) + 1 { // lower case can have another length
			if text[at] == m[0] && strings.EqualFold(text[at:at+len(m)], m) {
				return text[at : at+len(m)]
			}
		}
	}
	return ""
}

// Layers are the templates that apply to one Feature, each scope in its order. The zero value composes nothing.
type Layers struct {
	Global, Project []string
}

// Empty says that no template applies: the agent's request passes unchanged.
func (l Layers) Empty() bool { return len(l.Global) == 0 && len(l.Project) == 0 }

// Validate says that a scope has more text than a request may carry.
func (l Layers) Validate() error {
	for _, scope := range []struct {
		name  string
		texts []string
	}{{"global", l.Global}, {"project", l.Project}} {
		if n := len(joined(scope.texts)); n > MaxLayer {
			return fmt.Errorf("the Input templates of scope %s have %d bytes together, and the limit is %d: shorten or delete some", scope.name, n, MaxLayer)
		}
	}
	return nil
}

// Prefix is the text before what the agent sends; empty if no template applies. Otherwise it has a section for both scopes, even if one is empty.
func (l Layers) Prefix() string {
	if l.Empty() {
		return ""
	}
	var b strings.Builder
	for _, part := range []string{globalStart, joined(l.Global), globalEnd, projectStart, joined(l.Project), projectEnd, promptStart} {
		if part != "" {
			b.WriteString(part)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// joined are the texts of one scope, one paragraph after the other.
func joined(texts []string) string {
	trimmed := make([]string, 0, len(texts))
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			trimmed = append(trimmed, t)
		}
	}
	return strings.Join(trimmed, "\n\n")
}

// Hash identifies the composed text; empty if there is none.
func (l Layers) Hash() string {
	if l.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(l.Prefix()))
	return hex.EncodeToString(sum[:])
}

// Parts of a composed text.
type Parts struct{ Global, Project, Rest string }

// Extract takes a composed text apart; ok is false for any other text.
func Extract(text string) (p Parts, ok bool) {
	take := func(start, end string) (part string, ok bool) {
		rest, found := strings.CutPrefix(text, start+"\n")
		if !found {
			return "", false
		}
		if after, empty := strings.CutPrefix(rest, end+"\n"); empty {
			text = after
			return "", true
		}
		part, after, found := strings.Cut(rest, "\n"+end+"\n")
		text = after
		return part, found
	}
	var global, project bool
	p.Global, global = take(globalStart, globalEnd)
	p.Project, project = take(projectStart, projectEnd)
	rest, prompt := strings.CutPrefix(text, promptStart+"\n")
	if !global || !project || !prompt {
		return Parts{}, false
	}
	p.Rest = rest
	return p, true
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// Credential is how a provider authenticates a caller.
type Credential int

// Credentials. Key is a header with the backend's key. Google is an OAuth token of a Google service account, AWS a
// signature of the request (Signature Version 4).
const (
	Key Credential = iota
	Google
	AWS
)

// Kind says how to call a provider. Kinds() lists them.
type Kind struct {
	// Name in the configuration of backends.
	Name string
	// Serves has the endpoints of dialects that the provider serves, by the path of the endpoint.
	Serves map[string]Place
	// KeyHeader carries the key, behind KeyPrefix. If it is empty, the dialect's own header carries the key.
	KeyHeader, KeyPrefix string
	// Credential is what the provider takes.
	Credential Credential
	// Headers that the provider requires.
	Headers map[string]string
	// LimitMember of Chat Completions bounds an answer; empty for max_tokens, which most servers know and OpenAI's reasoning models refuse.
	LimitMember string
	// BothLimits: the provider reads max_completion_tokens next to max_tokens. One with a LimitMember does so, too.
	BothLimits bool
	// StreamUsage: the provider counts the tokens of a streamed answer of Chat Completions if stream_options ask for it.
	StreamUsage bool
}

// Place is where a provider serves an endpoint, and how its request differs from the dialect's.
type Place struct {
	// Path below the base URL. The name of the model replaces {model}.
	Path string
	// Streamed is the path for an answer that is streamed; empty: Path.
	Streamed string
	// Dated is the path if the backend's query has an api-version that is a date; empty means Path.
	Dated string
	// Without are members that the request is sent without, With is JSON of members that it is sent with.
	Without []string
	With    string
	// Betas that the provider knows: the gateway moves the ones in the header Anthropic-Beta into the member anthropic_beta, and does not send
	// the header. Nil: the header passes.
	Betas []string
	// Query lists the dialect's parameters that pass; nil: all of them.
	Query []string
}

// apiVersion is the parameter that names the version of Azure's API.
const apiVersion = "api-version"

// Target is the destination of a call.
type Target struct {
	// Path below the base URL, escaped.
	Path string
	// Query that is sent with it: the backend's own, and what may pass of the agent's.
	Query url.Values
	// Without, With and Betas are as in Place.
	Without []string
	With    string
	Betas   []string
}

// Recasts says whether the target may need a changed request.
func (t Target) Recasts() bool { return len(t.Without)+len(t.With)+len(t.Betas) > 0 }

// Recast is a request as the target takes it. Betas are the values of the agent's header.
func (t Target) Recast(body []byte, betas []string) []byte {
	with := t.With
	var known []string
	for _, value := range betas {
		for beta := range strings.SplitSeq(value, ",") {
			if beta = strings.TrimSpace(beta); slices.Contains(t.Betas, beta) && !slices.Contains(known, beta) {
				known = append(known, beta)
			}
		}
	}
	if len(known) > 0 { // each is a plain word
		with += `,"anthropic_beta":["` + strings.Join(known, `","`) + `"]`
	}
	return dialect.Recast(body, t.Without, with)
}

// errNotServed says that a backend does not have an endpoint of a dialect.
var errNotServed = errors.New("is not served")

// Target of a call of an endpoint for an answer of a model. query has the agent's parameters for the dialect. It fails for an
// endpoint that the backend does not have.
func (b Backend) Target(e dialect.Endpoint, model string, streamed bool, query url.Values) (Target, error) {
	kind, _ := FindKind(b.Kind)
	at, served := kind.Serves[e.Path]
	switch {
	case kind.Serves == nil: // the dialect says it all
		at = Place{Path: e.Path}
		if path := b.Paths[e.Path]; path != "" {
			at.Path = path
		}
	case !served:
		return Target{}, fmt.Errorf("%s %w by the backend %q, which is of the kind %s", e.Path, errNotServed, b.Name, b.Kind)
	}
	path := at.Path
	switch {
	case at.Dated != "" && dated(b.Query[apiVersion]):
		path = at.Dated
	case at.Streamed != "" && streamed:
		path = at.Streamed
	}
	t := Target{Path: strings.ReplaceAll(path, dialect.ModelPlace, escaped(model)), Query: url.Values{}, Without: at.Without, With: at.With, Betas: at.Betas}
	for name, values := range query {
		if at.Query == nil || slices.Contains(at.Query, name) {
			t.Query[name] = values
		}
	}
	for name, value := range b.Query {
		t.Query.Set(name, value)
	}
	return t, nil
}

// SendKey returns the header that carries a key to the backend in a dialect.
func (b Backend) SendKey(d dialect.Dialect, key string) (name, value string) {
	kind, _ := FindKind(b.Kind)
	switch {
	case b.KeyHeader != "":
		return b.KeyHeader, b.KeyPrefix + key
	case kind.KeyHeader != "":
		return kind.KeyHeader, kind.KeyPrefix + key
	}
	return d.Key(key)
}

// Sent are headers that every request to the backend has: its kind's, and its own.
func (b Backend) Sent() map[string]string {
	kind, _ := FindKind(b.Kind)
	if len(kind.Headers) == 0 {
		return b.Headers
	}
	sent := maps.Clone(kind.Headers)
	maps.Copy(sent, b.Headers)
	return sent
}

// azureUsage is the first dated version of Azure's API with stream_options; those before refuse it.
// https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
const azureUsage = "2024-09-01-preview"

// CountsStreams says whether the backend counts the tokens of a streamed answer of Chat Completions if stream_options ask for it.
func (b Backend) CountsStreams() bool {
	if b.StreamUsage != nil {
		return *b.StreamUsage
	}
	kind, _ := FindKind(b.Kind)
	version := b.Query[apiVersion]
	return kind.StreamUsage && (!dated(version) || version >= azureUsage)
}

// LimitMember is the member that bounds an answer of a dialect; empty for the dialect's own.
func (b Backend) LimitMember(d dialect.Dialect) string {
	if d.Name != chatDialect {
		return ""
	}
	kind, _ := FindKind(b.Kind)
	return kind.LimitMember
}

// Unread are members of a dialect that would bound an answer, and that the backend may not read. The gateway does not trust an agent's values there.
func (b Backend) Unread(d dialect.Dialect) dialect.Names {
	kind, _ := FindKind(b.Kind)
	if d.Name != chatDialect || kind.LimitMember != "" || kind.BothLimits {
		return nil
	}
	return foldedLimit
}

// foldedLimit serves every call.
var foldedLimit = dialect.Fold(completionLimit)

// dated says whether a version of Azure's API is a date: those have other paths than v1 and its previews.
func dated(version string) bool { return version != "" && version[0] >= '0' && version[0] <= '9' }

// escaped is the name of a model as one segment of a path: whatever it is, it does not change the endpoint. The sign @ stays, as in
// the documentation of Vertex AI.
func escaped(model string) string {
	var out strings.Builder
	for _, c := range []byte(model) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~@", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}

// FindKind finds the kind of a name; the zero Kind, which has only what the dialect describes, has the empty name.
func FindKind(name string) (Kind, bool) {
	if name == "" {
		return Kind{}, true
	}
	k, found := kindsByName[name]
	return k, found
}

// kindsByName serves every call.
var kindsByName = func() map[string]Kind {
	list := map[string]Kind{}
	for _, k := range Kinds() {
		list[k.Name] = k
	}
	return list
}()

// speaks says whether a provider of the kind serves a dialect.
func (k Kind) speaks(d dialect.Dialect) bool {
	return k.Serves == nil || slices.ContainsFunc(d.Endpoints, func(e dialect.Endpoint) bool {
		_, serves := k.Serves[e.Path]
		return serves && e.Kind == dialect.Generate
	})
}

// validateKind says what is wrong with what a backend says about its kind.
func (b Backend) validateKind(at string) error {
	var errs []error
	kind, known := FindKind(b.Kind)
	if !known {
		var list []string
		for _, k := range Kinds() {
			list = append(list, k.Name)
		}
		return fmt.Errorf("%s.kind: %q is not one of %s; leave it out for a server that has its dialects' own paths", at, b.Kind, strings.Join(list, ", "))
	}
	for _, name := range b.Dialects {
		if d, ok := dialect.Find(name); ok && !kind.speaks(d) {
			errs = append(errs, fmt.Errorf("%s.dialects: a backend of the kind %s does not speak %s", at, b.Kind, name))
		}
	}
	if b.Kind != generic && (len(b.Paths) > 0 || b.KeyHeader != "" || b.KeyPrefix != "") {
		errs = append(errs, fmt.Errorf("%s: paths, keyHeader and keyPrefix belong to the kind %s; the kind %q has its own", at, generic, b.Kind))
	}
	for _, from := range slices.Sorted(maps.Keys(b.Paths)) {
		errs = append(errs, b.validatePath(from, fmt.Sprintf("%s.paths[%s]", at, from)))
	}
	if !headerName(b.KeyHeader) {
		errs = append(errs, fmt.Errorf("%s.keyHeader: %q is not the name of a header", at, b.KeyHeader))
	}
	if b.KeyPrefix != "" && b.KeyHeader == "" {
		errs = append(errs, fmt.Errorf("%s.keyPrefix: it has no keyHeader", at))
	}
	if strings.ContainsFunc(b.KeyPrefix, func(c rune) bool { return c < ' ' || c > '~' }) {
		errs = append(errs, fmt.Errorf("%s.keyPrefix: %q has a character that no header can have", at, b.KeyPrefix))
	}
	if kind.Credential != Key && !strings.HasPrefix(b.BaseURL, "https:") {
		errs = append(errs, fmt.Errorf("%s.baseURL: a backend of the kind %s needs https, because the gateway sends its credentials there", at, b.Kind))
	}
	if (b.Region != "") != (kind.Credential == AWS) || strings.ContainsAny(b.Region, "/ \n") {
		errs = append(errs, fmt.Errorf("%s.region: a backend of the kind %s needs one such as us-east-1, and no other kind has any", at, bedrock))
	}
	return errors.Join(errs...)
}

func (b Backend) validatePath(from, at string) error {
	served := slices.ContainsFunc(b.Dialects, func(name string) bool {
		d, _ := dialect.Find(name)
		return slices.ContainsFunc(d.Endpoints, func(e dialect.Endpoint) bool {
			return e.Path == from && (e.Kind == dialect.Generate || e.Kind == dialect.Measure)
		})
	})
	if !served {
		return fmt.Errorf("%s: none of the backend's dialects has the path %q", at, from)
	}
	path := strings.ReplaceAll(b.Paths[from], dialect.ModelPlace, "model")
	u, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(path, "/") || u.Path != path || strings.Contains(path, "//") || slices.Contains(strings.Split(path, "/"), "..") {
		return fmt.Errorf("%s: %q is not a path such as /api/%s/chat; parameters are in query", at, b.Paths[from], dialect.ModelPlace)
	}
	return nil
}

// headerName says whether a text is the name of a header; the empty one stands for none.
func headerName(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

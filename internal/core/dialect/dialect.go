// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect knows the wire formats of model providers: the paths, the headers, how a request carries the key, where a request names
// the model, and the form of errors. Bodies are bytes in and bytes out; what a dialect does not know passes unchanged.
package dialect

import (
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TaskHeader names the task that an agent works on. The watchdog sets it in every call that it sends on to the gateway.
const TaskHeader = "Tidewaiter-Task"

// TurnHeader has the turn of the run that a call belongs to, as status.run.turn counts it. The watchdog sets it if it follows the conversation.
const TurnHeader = "Tidewaiter-Turn"

// RoleHeader names the role of a call of the watchdog itself: RoleSupervisor of internal/core/policy. Calls of an agent do not have it.
const RoleHeader = "Tidewaiter-Role"

// MaxBody of a request, in bytes: what Anthropic takes, the largest of the providers (32 MB,
// https://docs.claude.com/en/api/overview).
const MaxBody = 32 << 20

// Kind of an endpoint.
type Kind int

// Kinds. Generate asks a model for an answer. Measure asks about a request without an answer (how many tokens it has). List lists models.
// Probe asks whether the server is available.
const (
	Generate Kind = iota
	Measure
	List
	Probe
)

// Endpoint is one request that a dialect knows.
type Endpoint struct {
	Method string
	// Path below the dialect's prefix, and below the base URL of a backend; {model} stands for the name of a model.
	Path string
	Kind Kind
	// Side: the generated text is not for users, such as a summary with which a client continues.
	Side bool
	// Stores says that the provider keeps the answer unless the member "store" of the request is false.
	Stores bool
	// Streams: the answer is a stream, whatever the request says.
	Streams bool
	// Plain: the request has no place for templates.
	Plain bool
	// Parameter is a query parameter that the request must have, with this Value; empty for none.
	Parameter, Value string
	// Model in the path of a request; empty if the body names it.
	Model string
}

// Failure is an error as a client of the dialect understands it.
type Failure struct {
	// Status of HTTP. Clients of every dialect try again after 429 and after 5xx.
	Status int
	// Message for users: what is wrong, and what to do.
	Message string
	// Code that clients of the dialect act on; empty for none.
	Code string
}

// Dialect is one wire format.
type Dialect struct {
	// Name in the configuration of backends.
	Name string
	// Prefix of its paths at watchdog and gateway, such as /anthropic.
	Prefix string
	// Endpoints that are served; any other request is refused.
	Endpoints []Endpoint
	// Headers of a request that reach the provider, in lower case; one that ends in "-" stands for all that begin with it.
	// Headers that every dialect needs are not in the list.
	Headers []string
	// AnswerHeaders of an answer that reach the agent, as Headers are written.
	AnswerHeaders []string
	// betas are the features that a header of a request asks for; zero for none.
	betas betas
	// Query parameters that reach the provider.
	Query []string
	// Key returns the header that carries a provider's key.
	Key func(key string) (name, value string)
	// System is the member of a request that holds the system prompt.
	System string
	// History is the member of a request that holds the conversation so far.
	History string
	// wall is what is known of a request: what it may have a provider do, and which of its names somebody reads. Filter goes by it.
	wall *shape
	// choice is the member that says which tools may be called.
	choice string
	// canonical gives the one spelling of a member's name; nil where each has only one.
	canonical func(name string) string
	// inPath: the path of a request names the model, and no member need do so.
	inPath bool
	// usageOnDemand: the tokens of a streamed answer are counted where the request asks for it.
	usageOnDemand bool
	// limits are the members that bound an answer.
	limits limits
	// message reads an entry of the history.
	message func(entry []byte) conversation.Message
	// tools finds tool calls and their results in the history.
	tools tools
	// turn gives one more turn of the conversation, of the model or of its user, with a text as the inside of a JSON string.
	turn func(model bool, text string) string
	// behind gives where a text of a supervisor stands behind an entry of the history, the text as the inside of a JSON string.
	behind func(r Request, entry span, text string) ([]place, error)
	// behindText does so for a history that is one text; nil where there is none.
	behindText func(history span, text string) []place
	// noTools is the value of choice that lets no tool be called.
	noTools string
	// place finds where a text stands before all that the agent says to the model.
	place func(Request) (place, error)
	// Answer returns a reader of one answer.
	Answer func() conversation.Decoder
	// retext gives what replaces the text of one answer.
	retext func(text string) retexter
	// Models returns the JSON body of a list of models.
	Models func(names []string) []byte
	// Error returns the JSON body of a failure.
	Error func(Failure) []byte
	// Broken returns the bytes that end a broken stream of events in a form that clients understand.
	Broken func(Failure) []byte
}

// All are the dialects. A new one is a file and an entry here.
func All() []Dialect { return slices.Clone(all) }

// all serves every call.
var all = []Dialect{anthropic(), openaiResponses(), openaiChat(), gemini()}

// Find the dialect of a name.
func Find(name string) (Dialect, bool) {
	for _, d := range all {
		if d.Name == name {
			return d, true
		}
	}
	return Dialect{}, false
}

// Serve finds the dialect and the endpoint of a request, by its method and its path. If the prefix is known and the endpoint is not, the
// result is still the dialect of the prefix, so that the client understands the error.
func Serve(method, path string) (d Dialect, e Endpoint, known, found bool) {
	for _, candidate := range all {
		rest, is := strings.CutPrefix(path, candidate.Prefix)
		if !is || rest != "" && rest[0] != '/' {
			continue
		}
		d, known = candidate, true
		for _, e := range d.Endpoints {
			if model, is := e.matches(rest); is && e.Method == method {
				e.Model = model
				return d, e, true, true
			}
		}
	}
	return d, Endpoint{}, known, false
}

// ModelPlace stands in a path for the name of a model.
const ModelPlace = "{model}"

// matches says whether a path is the endpoint's, and which model it names.
func (e Endpoint) matches(path string) (model string, is bool) {
	before, after, named := strings.Cut(e.Path, ModelPlace)
	if !named {
		return "", path == e.Path
	}
	model, begins := strings.CutPrefix(path, before)
	model, ends := strings.CutSuffix(model, after)
	return model, begins && ends && model != "" && !strings.ContainsAny(model, "/:")
}

// Asked is the model that a request of the endpoint names.
func (e Endpoint) Asked(r Request) string {
	if e.Model != "" {
		return e.Model
	}
	return r.Model
}

// Prefixes of all dialects, each once.
func Prefixes() []string {
	var list []string
	for _, d := range All() {
		if !slices.Contains(list, d.Prefix) {
			list = append(list, d.Prefix)
		}
	}
	return list
}

// everyDialect are the headers that no dialect can do without.
var everyDialect = []string{"accept", "user-agent"}

// Passes says whether a header of a request reaches the provider. Everything else does not: credentials of the caller,
// cookies, and what speaks about the way that the request has come.
func (d Dialect) Passes(header string) bool {
	header = strings.ToLower(header)
	for _, list := range [][]string{everyDialect, d.Headers} {
		for _, allowed := range list {
			if header == allowed || strings.HasSuffix(allowed, "-") && strings.HasPrefix(header, allowed) {
				return true
			}
		}
	}
	return false
}

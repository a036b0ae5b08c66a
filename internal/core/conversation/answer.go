// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversation describes what an agent and a model say, in terms that hold for every dialect. The dialects read their wire formats
// into it as the bytes pass; they skip what they cannot read, without an error.
package conversation

// Bounds of the memory of one answer. The answer itself passes complete.
const (
	// MaxText of an answer, in bytes. The longest outputs of models are some 128,000 tokens of about four bytes.
	MaxText = 1 << 20
	// MaxTools that one answer calls.
	MaxTools = 256
	// MaxArguments of a call, in bytes.
	MaxArguments = 256 << 10
	// MaxArgued of all calls of an answer, in bytes.
	MaxArgued = 4 << 20
)

// Stop says why an answer ended.
type Stop string

// Reasons to stop.
const (
	// StopNone: it has not ended, or not cleanly.
	StopNone Stop = ""
	// StopEnd: the model finished its answer.
	StopEnd Stop = "End"
	// StopTools: it wants tools to be called.
	StopTools Stop = "Tools"
	// StopLength: there was no more room.
	StopLength Stop = "Length"
	// StopOther: anything else, such as a refusal.
	StopOther Stop = "Other"
)

// Uses of tools that a provider runs itself. Some of them it bills by use.
type Uses struct {
	// Searches of the web, and Fetches of pages.
	Searches, Fetches int64
	// Executions of code.
	Executions int64
	// FileSearches look through files that the provider keeps.
	FileSearches int64
	// Images that were made.
	Images int64
	// Connectors are calls of MCP servers.
	Connectors int64
}

// Usage of an answer, in tokens but for Uses. Each token is in one of the fields: a dialect that counts some among others is
// read so that they are apart.
type Usage struct {
	// Input of the request that the provider neither had in its cache nor put there.
	Input int64
	// Cached input was in the provider's cache.
	Cached int64
	// Writes are input that the provider put into its cache, LongWrites input that it keeps there for an hour at a price of its own.
	Writes, LongWrites int64
	// Output includes the model's thoughts.
	Output int64
	// Uses of tools that the provider runs.
	Uses
}

// Sent is the number of tokens of the request.
func (u Usage) Sent() int64 { return u.Input + u.Cached + u.Writes + u.LongWrites }

// Total of all tokens.
func (u Usage) Total() int64 { return u.Sent() + u.Output }

// Tool is one of the model's tool calls.
type Tool struct {
	ID, Name string
	// Arguments as the model wrote them, in most dialects JSON; cut after MaxArguments.
	Arguments []byte
}

// Answer of a model, as far as it has come.
type Answer struct {
	// Model that says it has answered; By sets it.
	Model string
	Stop  Stop
	// Text for users, without the model's thoughts; cut after MaxText.
	Text []byte
	// Tools in the sequence in which the model began them.
	Tools []Tool
	Usage Usage
	// Counted says that the provider has sent a usage.
	Counted bool
	// Failure is an error in the midst of a stream; Fail sets it.
	Failure string
	// Cut says that something was more than is remembered.
	Cut bool
	// Acts says that the answer calls a tool, or that the provider continues at the next request: more follows after it.
	Acts bool
	// Ended says that the answer is whole.
	Ended bool
	// argued is the size of all arguments.
	argued int
}

// Say adds text.
func (a *Answer) Say(text string) {
	room := MaxText - len(a.Text)
	if len(text) > room {
		a.Cut, text = true, text[:max(room, 0)]
	}
	a.Text = append(a.Text, text...)
}

// Final says that the model has ended its turn: the conversation continues only with a new message.
func (a *Answer) Final() bool {
	return a.Ended && !a.Acts && a.Stop != StopNone
}

// Call begins a tool call, and returns its place in Tools; -1 where there are too many.
func (a *Answer) Call(id, name string) int {
	a.Acts = true
	if len(a.Tools) == MaxTools {
		a.Cut = true
		return -1
	}
	a.Tools = append(a.Tools, Tool{ID: label(id, MaxID), Name: label(name, MaxName)})
	return len(a.Tools) - 1
}

// Argue adds to the arguments of a call.
func (a *Answer) Argue(tool int, text string) {
	if tool < 0 || tool >= len(a.Tools) {
		return
	}
	t := &a.Tools[tool]
	if room := min(MaxArguments-len(t.Arguments), MaxArgued-a.argued); len(text) > room {
		a.Cut, text = true, text[:room]
	}
	a.argued += len(text)
	t.Arguments = append(t.Arguments, text...)
}

// Count merges a usage into the answer's. It ignores numbers of 0 or less, because providers send some counts early and some late.
func (a *Answer) Count(u Usage) {
	a.Counted = true
	for _, x := range []struct {
		to   *int64
		from int64
	}{
		{&a.Usage.Input, u.Input}, {&a.Usage.Cached, u.Cached}, {&a.Usage.Writes, u.Writes}, {&a.Usage.LongWrites, u.LongWrites},
		{&a.Usage.Output, u.Output}, {&a.Usage.Searches, u.Searches}, {&a.Usage.Fetches, u.Fetches}, {&a.Usage.Executions, u.Executions},
		{&a.Usage.FileSearches, u.FileSearches}, {&a.Usage.Images, u.Images}, {&a.Usage.Connectors, u.Connectors},
	} {
		if x.from > 0 {
			*x.to = x.from
		}
	}
}

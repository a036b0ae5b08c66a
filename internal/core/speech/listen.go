// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// maxSaid bounds what is kept of one answer in its own words, in bytes. Of a longer one text and calls are kept.
const maxSaid = 4 << 20

// echo keeps an answer in the words of its dialect.
type echo interface {
	// event of a stream.
	event(data []byte)
	// whole is an answer that is not a stream.
	whole(body []byte)
	// said is what goes back to the model; nil where nothing can.
	said() json.RawMessage
}

// Answer of a model.
type Answer struct {
	// Call is the ID of the call in the gateway's ledger; empty if the gateway has not said it.
	Call string
	// Message as it goes back to the model.
	Message Message
	Stop    conversation.Stop
	Usage   conversation.Usage
	// Counted says that the provider has sent a usage.
	Counted bool
	// Ended says that the answer is complete. Failure is the error that ended it otherwise, if there is one.
	Ended   bool
	Failure string
	// Refused says that the request fails however often it is made.
	Refused bool
	// Cut says that the answer was longer than the stored part.
	Cut bool
}

// Listener reads an answer while it comes. Make it with Listen.
type Listener struct {
	reader *conversation.Reader
	ear    *ear
}

// Listen to an answer that is a stream of server-sent events, or one JSON document.
func (s Speech) Listen(streamed bool) *Listener {
	e := &ear{decoder: s.Dialect.Answer(), echo: s.echo()}
	return &Listener{reader: conversation.NewReader(e, streamed), ear: e}
}

// Write takes the next bytes.
func (l *Listener) Write(p []byte) { l.reader.Write(p) }

// Close ends the input, and returns the answer.
func (l *Listener) Close() Answer {
	heard := l.reader.Close()
	a := Answer{
		Message: Message{Model: true, Text: string(heard.Text)}, Stop: heard.Stop, Usage: heard.Usage, Counted: heard.Counted,
		Ended: heard.Ended, Failure: heard.Failure, Refused: l.ear.refused, Cut: heard.Cut,
	}
	sound := !heard.Cut && l.ear.size <= maxSaid
	for _, t := range heard.Tools {
		c, asItIs := call(t)
		sound = sound && asItIs
		a.Message.Calls = append(a.Message.Calls, c)
	}
	if sound {
		if said := l.ear.echo.said(); said != nil && consistent(said, a.Message.Calls) {
			a.Message.Said = said
		}
	}
	return a
}

// toolName is a name of a tool that every provider accepts.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// call is what a model asks for, in a form that providers take back; asItIs, where that is how the model has said it.
func call(t conversation.Tool) (c Call, asItIs bool) {
	c = Call{ID: t.ID, Name: t.Name, Arguments: t.Arguments}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	asItIs = c.ID != ""
	switch {
	case !toolName.MatchString(c.Name):
		c.Name, c.Arguments, c.Broken, asItIs = "unknown", json.RawMessage("{}"), true, false
	case !object(c.Arguments):
		c.Arguments, c.Broken = json.RawMessage("{}"), true
	case !utf8.Valid(c.Arguments) || halves(c.Arguments):
		var whole map[string]any
		if json.Unmarshal(c.Arguments, &whole) == nil { // with a mark for each invalid character
			c.Arguments, asItIs = encoded(whole), false
		}
	}
	return c, asItIs
}

// halves says whether a JSON text may have half a character, written as \ud800 to \udfff. Whole ones are written so, too: then the call
// is said back in other words that mean the same.
func halves(text []byte) bool {
	return bytes.Contains(text, []byte(`\ud`)) || bytes.Contains(text, []byte(`\uD`))
}

// ear hears an answer in two ways.
type ear struct {
	decoder conversation.Decoder
	echo    echo
	size    int
	refused bool
}

// Event implements conversation.Decoder.
func (e *ear) Event(a *conversation.Answer, data []byte) {
	e.decoder.Event(a, data)
	e.refused = e.refused || refuses(data)
	if e.size += len(data); e.size <= maxSaid {
		e.echo.event(data)
	}
}

// Whole implements conversation.Decoder.
func (e *ear) Whole(a *conversation.Answer, body []byte) {
	e.decoder.Whole(a, body)
	e.refused = e.refused || refuses(body)
	if e.size += len(body); e.size <= maxSaid {
		e.echo.whole(body)
	}
}

// refuses says whether an event or an answer is an error that the same request will have again.
func refuses(data []byte) bool {
	var failure struct {
		Error    *struct{ Type, Code, Status any } // some servers write numbers
		Response *struct{ Error *struct{ Code any } }
	}
	if json.Unmarshal(data, &failure) != nil {
		return false
	}
	if r := failure.Response; r != nil && r.Error != nil && r.Error.Code == "invalid_prompt" {
		return true
	}
	return failure.Error != nil && (failure.Error.Type == "invalid_request_error" || failure.Error.Code == "invalid_prompt" || failure.Error.Status == "INVALID_ARGUMENT")
}

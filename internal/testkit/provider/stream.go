// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

// stream is an answer under way.
type stream struct {
	http.ResponseWriter

	status int
	// turn that is played, and done when nobody listens any more.
	turn Turn
	done <-chan struct{}
	// cut breaks the stream off at event number cutAt; sent have been.
	cut  Cut
	sent int
	// over says that nothing is sent any more.
	over bool
}

// cutAt is the event at which streams are cut: something has been sent by then in every dialect, and no answer is over.
const cutAt = 4

// WriteHeader notes the status.
func (w *stream) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// json answers at once.
func (w *stream) json(status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.ResponseWriter.Write(encode(v)) // fails where the client has closed the connection
}

// encode what can always be written down: texts, numbers, lists and objects.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// event sends one server-sent event. Whatever comes between events goes before it.
func (w *stream) event(name string, v any) {
	switch w.sent {
	case 0:
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusOK)
	case 1:
		w.wait(time.Duration(w.turn.Silence))
	}
	if w.turn.has(Comments) {
		w.raw([]byte(": still at it\n\n"))
	}
	w.send(name, encode(v))
}

// send data as an event.
func (w *stream) send(name string, data []byte) {
	if name != "" {
		name = "event: " + name + "\n"
	}
	event := []byte(name + "data: " + string(data) + "\n\n")
	if w.sent++; w.cut != "" && w.sent >= cutAt {
		w.breakOff(name)
	}
	w.raw(event)
	w.wait(time.Duration(w.turn.Pause))
}

// breakOff the stream where its turn says so.
func (w *stream) breakOff(name string) {
	switch w.cut {
	case CutEnd:
		w.over = true
		return
	case CutEvent:
		w.raw([]byte(name + `data: {"type":`))
	case CutCharacter:
		w.raw(append([]byte(name+`data: {"type":"`), "…"[0]))
	}
	panic(http.ErrAbortHandler) // the connection breaks
}

// raw bytes of the stream, in the manner of its turn.
func (w *stream) raw(data []byte) {
	if w.over {
		return
	}
	if w.turn.has(Returns) {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	for _, part := range w.pieces(data) {
		_, _ = w.ResponseWriter.Write(part) // fails where the client has closed the connection
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// pieces of an event: behind the first byte of its first character of several bytes, or in its middle.
func (w *stream) pieces(data []byte) [][]byte {
	if !w.turn.has(Tears) {
		return [][]byte{data}
	}
	at := bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf }) + 1
	if at == 0 {
		at = len(data) / 2
	}
	return [][]byte{data[:at], data[at:]}
}

// wait as long as somebody listens.
func (w *stream) wait(d time.Duration) {
	if d <= 0 || w.over {
		return
	}
	select {
	case <-time.After(d):
	case <-w.done:
	}
}

// typed event, whose data has its name too.
func (w *stream) typed(kind string, fields object) {
	fields["type"] = kind
	w.event(kind, fields)
}

// numbered is the ID of something in an answer.
func numbered(kind, id string, i int) string { return fmt.Sprintf("%s_%s_%d", kind, id, i) }

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// stream is an answer under way.
type stream struct {
	http.ResponseWriter

	status int
	// pause between two events, unless done is closed.
	pause time.Duration
	done  <-chan struct{}
	// cut the connection after so many events; 0 never does.
	cut, sent int
}

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

// event sends one server-sent event.
func (w *stream) event(name string, v any) {
	if w.sent == 0 {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusOK)
	}
	if w.sent++; w.cut > 0 && w.sent > w.cut {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	data := encode(v)
	if name != "" {
		fmt.Fprintf(w.ResponseWriter, "event: %s\n", name)
	}
	fmt.Fprintf(w.ResponseWriter, "data: %s\n\n", data)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	if w.pause > 0 {
		select {
		case <-time.After(w.pause):
		case <-w.done:
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// eventStream is the media type of AWS's streams.
	// https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html describes their frames.
	eventStream = "application/vnd.amazon.eventstream"
	// maxFrame of a stream, in bytes. A frame has one event, a few words of a model.
	maxFrame = 1 << 20
	// maxFailure of an answer that is an error, in bytes, and of the message in it.
	maxFailure, maxMessage = 64 << 10, 1 << 10
)

// translate an answer of Bedrock into one of the dialect: a stream into server-sent events, and an error into the dialect's.
func translate(answer *http.Response, d dialect.Dialect) {
	switch {
	case answer.StatusCode >= http.StatusBadRequest:
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxFailure)) // of what is cut off, the status remains
		_ = answer.Body.Close()
		body := d.Error(dialect.Failure{Status: answer.StatusCode, Message: message(text, answer.Status)})
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer.Header.Set("Content-Type", "application/json")
		answer.Header.Del("Content-Encoding")
	case strings.HasPrefix(answer.Header.Get("Content-Type"), eventStream):
		answer.Body, answer.ContentLength = &events{in: bufio.NewReader(answer.Body), closer: answer.Body, decoder: eventstream.NewDecoder(), dialect: d}, -1
		answer.Header.Set("Content-Type", "text/event-stream")
	}
}

// message of an error, or other words where it has none.
func message(text []byte, other string) string {
	var failure struct{ Message string }
	if json.Unmarshal(text, &failure) != nil || failure.Message == "" {
		return other
	}
	return plain.CutBytes(failure.Message, maxMessage)
}

// events reads a stream of AWS as server-sent events.
type events struct {
	in      *bufio.Reader
	closer  io.Closer
	decoder *eventstream.Decoder
	dialect dialect.Dialect
	// payload is where frames are read to, and out what is left of an event.
	payload, out []byte
	end          error
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.end != nil {
			return 0, e.end
		}
		e.out, e.end = e.next()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error { return e.closer.Close() }

// next event, and what ends the stream after it.
func (e *events) next() ([]byte, error) {
	length, err := e.in.Peek(4)
	if err != nil {
		if errors.Is(err, io.EOF) && len(length) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if n := binary.BigEndian.Uint32(length); n > maxFrame {
		return nil, fmt.Errorf("a frame of the backend's stream has %d bytes, and the limit is %d", n, maxFrame)
	}
	frame, err := e.decoder.Decode(e.in, e.payload[:0])
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("a frame of the backend's stream: %w", err)
	}
	e.payload = frame.Payload
	switch kind := header(frame, eventstreamapi.MessageTypeHeader); kind {
	case eventstreamapi.EventMessageType:
		return event(frame)
	case eventstreamapi.ExceptionMessageType:
		name := header(frame, eventstreamapi.ExceptionTypeHeader)
		return e.dialect.Broken(dialect.Failure{Status: exception(name), Message: message(frame.Payload, name)}), io.EOF
	case eventstreamapi.ErrorMessageType:
		text := header(frame, eventstreamapi.ErrorMessageHeader)
		return e.dialect.Broken(dialect.Failure{Status: http.StatusBadGateway, Message: plain.CutBytes(text, maxMessage)}), io.EOF
	default:
		return nil, fmt.Errorf("a frame of the backend's stream is of the type %q, which is not known", plain.CutBytes(kind, maxMessage))
	}
}

// event of the provider's own format, which stands in a frame of the type chunk. Frames of other types say nothing to the agent.
func event(frame eventstream.Message) ([]byte, error) {
	if header(frame, eventstreamapi.EventTypeHeader) != "chunk" {
		return nil, nil
	}
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	var inner struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(frame.Payload, &chunk); err != nil {
		return nil, fmt.Errorf("a frame of the backend's stream has no JSON: %w", err)
	}
	if err := json.Unmarshal(chunk.Bytes, &inner); err != nil {
		return nil, fmt.Errorf("an event of the backend's stream is no JSON: %w", err)
	}
	if strings.ContainsFunc(inner.Type, func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }) {
		return nil, errors.New("an event of the backend's stream has a type that is not one word")
	}
	// JSON has ends of lines only between its values, where they mean nothing.
	for i, c := range chunk.Bytes {
		if c == '\n' || c == '\r' {
			chunk.Bytes[i] = ' '
		}
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", inner.Type, chunk.Bytes), nil
}

// header of a frame as text; empty where there is none.
func header(frame eventstream.Message, name string) string {
	text, _ := frame.Headers.Get(name).(eventstream.StringValue)
	return string(text)
}

// exception is the status of HTTP that an exception within a stream stands for.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html
func exception(name string) int {
	switch name {
	case "throttlingException":
		return http.StatusTooManyRequests
	case "validationException":
		return http.StatusBadRequest
	case "serviceUnavailableException":
		return http.StatusServiceUnavailable
	case "modelTimeoutException":
		return http.StatusGatewayTimeout
	default: // internalServerException, modelStreamErrorException
		return http.StatusInternalServerError
	}
}

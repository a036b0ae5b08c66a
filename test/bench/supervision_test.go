// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

const (
	// lateTurn is the turn of the budget. Its request has about lateSize bytes, of which toolsSize are tools and system prompt. It and its
	// neighbours say newSize bytes that the one before has not said. The turns before have what is left.
	lateTurn  = 200
	lateSize  = 200 << 10
	toolsSize = 40 << 10
	newSize   = 2 << 10
	// window of the model, in tokens: a session of lateSize bytes fills a quarter of it, and one of 500 turns less than it may.
	window = 1_000_000
)

// coder is an agent that sends all of its conversation with each request, as the CLIs do.
type coder struct {
	dialect dialect.Dialect
	// head and tail are what stands before and behind the conversation.
	head, tail string
	entries    []string
	turns      int
}

func newCoder(d dialect.Dialect) *coder {
	system, tools := program(0, toolsSize/2), program(1, toolsSize/2)
	c := &coder{dialect: d, head: `{"model":"large","` + d.History + `":[`}
	task := `{"role":"user","content":[{"type":"text","text":"Add a form."}]}`
	switch d.Name {
	case "anthropic":
		c.tail = fmt.Sprintf(`],"system":[{"type":"text","text":%s}],"tools":[{"name":"Read","description":%s,"input_schema":{"type":"object"}}],"stream":true}`, system, tools)
	case "openai-chat":
		c.entries = []string{fmt.Sprintf(`{"role":"system","content":%s}`, system)}
		c.tail = fmt.Sprintf(`],"tools":[{"type":"function","function":{"name":"Read","description":%s,"parameters":{"type":"object"}}}],"stream":true}`, tools)
	case "gemini":
		c.tail = fmt.Sprintf(`],"systemInstruction":{"parts":[{"text":%s}]},"tools":[{"functionDeclarations":[{"name":"Read","description":%s,"parameters":{"type":"OBJECT"}}]}]}`, system, tools)
		task = `{"role":"user","parts":[{"text":"Add a form."}]}`
	case "openai-responses":
		c.head = fmt.Sprintf(`{"model":"large","instructions":%s,"input":[`, system)
		c.tail = fmt.Sprintf(`],"tools":[{"type":"function","name":"Read","description":%s,"parameters":{"type":"object"}}],"stream":true}`, tools)
	}
	c.entries = append(c.entries, task)
	return c
}

// program is a JSON string of so many bytes: lines of a program, with tabs and quotes in them.
func program(file, size int) string {
	const line = "\tif err := r.step%04d(ctx, \"%04d\", &options{retry: %t}); err != nil {\n\t\treturn fmt.Errorf(\"step: %%w\", err)\n\t}\n"
	var b strings.Builder
	quoted := 2
	for i := 0; ; i++ {
		text := fmt.Sprintf(line, file, i, i%2 == 0)
		if quoted += len(strconv.Quote(text)) - 2; quoted > size {
			return strconv.Quote(b.String() + strings.Repeat("/", max(0, size+len(strconv.Quote(text))-2-quoted)))
		}
		b.WriteString(text)
	}
}

// read another file, which takes so many bytes of the conversation.
func (c *coder) read(size int) {
	c.turns++
	c.call(fmt.Sprintf("/workspace/internal/step%d.go", c.turns), c.turns, size)
}

// call a tool that reads a file.
func (c *coder) call(path string, file, size int) {
	id := fmt.Sprintf("call_%06d", len(c.entries))
	arguments := fmt.Sprintf(`{"file_path":%q,"limit":2000}`, path)
	say := fmt.Sprintf("I read %s to see what calls it.", path)
	var entries []string
	add := func(format string, values ...any) { entries = append(entries, fmt.Sprintf(format, values...)) }
	// The result is as long as the rest leaves it.
	const result = "RESULT"
	switch c.dialect.Name {
	case "anthropic":
		add(`{"role":"assistant","content":[{"type":"text","text":%q},{"type":"tool_use","id":%q,"name":"Read","input":%s}]}`, say, id, arguments)
		add(`{"role":"user","content":[{"tool_use_id":%q,"type":"tool_result","content":%s}]}`, id, result)
	case "openai-chat":
		add(`{"role":"assistant","content":%q,"tool_calls":[{"id":%q,"type":"function","function":{"name":"Read","arguments":%q}}]}`, say, id, arguments)
		add(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, result)
	case "gemini":
		add(`{"role":"model","parts":[{"text":%q},{"functionCall":{"id":%q,"name":"Read","args":%s},"thoughtSignature":"s"}]}`, say, id, arguments)
		add(`{"role":"user","parts":[{"functionResponse":{"id":%q,"name":"Read","response":{"output":%s}}}]}`, id, result)
	case "openai-responses":
		add(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, say)
		add(`{"type":"function_call","call_id":%q,"name":"Read","arguments":%q}`, id, arguments)
		add(`{"type":"function_call_output","call_id":%q,"output":%s}`, id, result)
	}
	rest := size - len(strings.Join(entries, ",")) + len(result) - len(",")
	last := &entries[len(entries)-1]
	*last = strings.Replace(*last, result, program(file, rest), 1)
	c.entries = append(c.entries, entries...)
}

// request with the whole conversation. Anthropic's client marks the end of what is to be cached, which is another entry each time.
func (c *coder) request() []byte {
	list := strings.Join(c.entries, ",")
	if c.dialect.Name == "anthropic" {
		list = strings.TrimSuffix(list, "}]}") + `,"cache_control":{"type":"ephemeral"}}]}`
	}
	return []byte(c.head + list + c.tail)
}

// provider answers at once with a few events, that a tool is to be called.
type provider struct {
	// received is the size of the last request.
	received atomic.Int64
}

// ServeHTTP implements http.Handler.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	d, e, _, found := dialect.Serve(r.Method, r.URL.Path)
	if !found || e.Kind != dialect.Generate { // watchdogs ask for what was used, now and then
		http.NotFound(w, r)
		return
	}
	p.received.Store(n)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set(protocol.WindowHeader, strconv.Itoa(window))
	for _, event := range toolCall(d.Name, n/4) {
		_, _ = io.WriteString(w, "data: "+event+"\n\n")
	}
}

// toolCall is a short answer of a dialect, for a prompt of so many tokens.
func toolCall(name string, tokens int64) []string {
	switch name {
	case "anthropic":
		return []string{
			fmt.Sprintf(`{"type":"message_start","message":{"model":"large","usage":{"input_tokens":%d,"output_tokens":1}}}`, tokens),
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Read","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":\"a\"}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}`,
			`{"type":"message_stop"}`,
		}
	case "openai-chat":
		return []string{
			`{"model":"large","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"Read","arguments":"{\"file_path\":\"a\"}"}}]}}]}`,
			`{"model":"large","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			fmt.Sprintf(`{"model":"large","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":20}}`, tokens),
			`[DONE]`,
		}
	case "gemini":
		return []string{fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"t","name":"Read","args":{"file_path":"a"}},"thoughtSignature":"s"}]},"finishReason":"STOP","index":0}],`+
			`"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":20},"modelVersion":"large"}`, tokens)}
	case "openai-responses":
		item := `{"type":"function_call","id":"f","call_id":"t","name":"Read","arguments":"{\"file_path\":\"a\"}"}`
		return []string{
			`{"type":"response.created","response":{"model":"large"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":` + item + `}`,
			`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
			fmt.Sprintf(`{"type":"response.completed","response":{"model":"large","status":"completed","output":[%s],"usage":{"input_tokens":%d,"output_tokens":20}}}`, item, tokens),
		}
	}
	panic("say here how a model calls a tool in " + name)
}

// forgetful is a memory of a watchdog that does not begin anew.
type forgetful struct{}

// Load implements steer.Cache.
func (forgetful) Load() ([]byte, error) { return nil, nil }

// Keep implements steer.Cache.
func (forgetful) Keep([]byte) error { return nil }

// Recorded implements steer.Recorder.
func (forgetful) Recorded() journal.Steered { return journal.Steered{} }

// Steered implements steer.Recorder.
func (forgetful) Steered(protocol.SteeringStep) error { return nil }

// supervisor of one session, with the built-in policy.
func supervisor(t *testing.T) *steer.Service {
	p := policy.Merge(policy.Sources{})
	return steer.New(steer.Options{
		Terms: func() session.Terms { return session.NewTerms("form", &p, "implementor", anomaly.Compaction{}) }, Cache: forgetful{}, Recorder: forgetful{}, Now: time.Now, Log: errorsOf(t),
	})
}

// supervised is the way to a provider through a watchdog that supervises the conversation, and through one that does not.
type supervised struct {
	t *testing.T
	// service of the session that is played.
	service     atomic.Pointer[steer.Service]
	provider    provider
	heard, deaf string
	client      *http.Client
}

// Known implements modelproxy.Observer.
func (v *supervised) Known(list []byte) conversation.Known { return v.service.Load().Known(list) }

// Asked implements modelproxy.Observer.
func (v *supervised) Asked(ctx context.Context, r dialect.Request) ([]byte, modelproxy.Exchange) {
	return v.service.Load().Asked(ctx, r)
}

func newSupervised(t *testing.T) *supervised {
	v := &supervised{t: t, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	server := httptest.NewTLSServer(&v.provider)
	t.Cleanup(server.Close)
	t.Cleanup(v.client.CloseIdleConnections)
	v.heard, v.deaf = watchdogOf(t, server, v), watchdogOf(t, server, nil)
	return v
}

// ask once: the time until the end of the answer, and by how many bytes the provider received more than was sent.
func (v *supervised) ask(watchdog string, c *coder, body []byte) (took time.Duration, more int64) {
	path := c.dialect.Prefix
	for _, e := range c.dialect.Endpoints {
		if e.Kind == dialect.Generate && !e.Side {
			path += strings.ReplaceAll(e.Path, dialect.ModelPlace, "large")
			if e.Parameter != "" {
				path += "?" + e.Parameter + "=" + e.Value
			}
			break
		}
	}
	began := time.Now()
	answer, err := v.client.Post(watchdog+path, "application/json", bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	took = time.Since(began)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("Read")) {
		v.t.Fatalf("%s answers %d: %s, %v", path, answer.StatusCode, text, err)
	}
	return took, v.provider.received.Load() - int64(len(body))
}

// supervision measures what it adds to a call that the watchdog hears and supervises the conversation, and what it remembers of one.
func supervision(t *testing.T, s scale, b *board.Board) {
	sessions, turn, beside := 40, lateTurn, 12
	if !s.full {
		sessions, turn, beside = 1, 24, 2
	}
	v := newSupervised(t)
	for _, d := range dialect.All() {
		for _, noted := range []bool{false, true} {
			var took [2][]time.Duration
			for range sessions {
				v.play(newCoder(d), noted, turn, beside, func(way int, d time.Duration) { took[way] = append(took[way], d) })
			}
			heard, deaf := took[supervising], took[passing]
			name := fmt.Sprintf("/turn=%d/%s", turn, d.Name)
			if noted {
				name += "/note=1"
			}
			b.Ratio("supervision-request-p50"+name, board.Median(heard), board.Median(deaf), board.AtMost(1.4))
			b.Ratio("supervision-request-p99"+name, board.Quantile(heard, 0.99), board.Quantile(deaf, 0.99), board.AtMost(1.6))
		}
		remembered(t, s, b, d)
	}
}

// Ways to send a request: through the watchdog that supervises the conversation, and through the one that passes it on as it comes.
const (
	supervising = iota
	passing
)

// play a session up to a turn and so many turns beyond it, and give the times of that turn and of so many on either side, by each way. A session with a note has been told once at its beginning, because it read one file
// again and again.
func (v *supervised) play(c *coder, noted bool, turn, beside int, result func(way int, took time.Duration)) {
	v.service.Store(supervisor(v.t))
	if noted {
		v.loop(c)
	}
	before := (lateSize - toolsSize - (beside+1)*newSize) / (turn - beside)
	for c.turns < turn-beside-1 {
		v.ask(v.heard, c, c.request())
		c.read(before)
	}
	var bodies [][]byte
	for range 2*beside + 1 {
		c.read(newSize)
		bodies = append(bodies, c.request())
	}
	runtime.GC() // what the agent has left is not what is measured
	for i, body := range bodies {
		var more int64
		for n := range 2 {
			way := (i + n) % 2 // what comes second finds the body in the processor's caches
			var took time.Duration
			switch way {
			case supervising:
				took, more = v.ask(v.heard, c, body)
			case passing:
				took, _ = v.ask(v.deaf, c, body)
			}
			result(way, took)
		}
		if noted != (more > 0) {
			v.t.Fatalf("turn %d of %s: the provider received %d bytes more than the agent sent; a note is there: %t", turn-beside+i, c.dialect.Name, more, noted)
		}
	}
	if said := v.service.Load().Conversation(); said.Turn < int64(turn+beside) || len(said.Anomalies) > 0 {
		v.t.Fatalf("%s: heard %d turns and found %+v", c.dialect.Name, said.Turn, said.Anomalies)
	}
}

// loop until the model is told.
func (v *supervised) loop(c *coder) {
	for range lateTurn / 10 {
		if _, more := v.ask(v.heard, c, c.request()); more > 0 {
			return
		}
		c.turns++
		c.call("/workspace/a.go", 0, newSize/4)
	}
	v.t.Fatalf("%s: nothing was said about a loop", c.dialect.Name)
}

// remembered is what a supervisor remembers of a session of 500 turns, beside what it does of one turn.
func remembered(t *testing.T, s scale, b *board.Board, d dialect.Dialect) {
	turns, sessions := 500, 8
	if !s.full {
		turns, sessions = 10, 1
	}
	services := make([]*steer.Service, sessions)
	after := func(turns int) float64 {
		clear(services)
		before := heap()
		for i := range services {
			services[i] = supervisor(t)
			c := newCoder(d)
			for range turns {
				hear(t, services[i], c)
				c.read(newSize)
			}
		}
		defer runtime.KeepAlive(services)
		return (heap() - before) / float64(len(services))
	}
	one := after(1)
	whole := after(turns)
	b.Add(fmt.Sprintf("supervision-memory/turns=%d/%s", turns, d.Name), board.Number(whole)+"MiB", board.Number(one)+"MiB", whole, board.AtMost(8))
}

// hear a turn, and the answer to it.
func hear(t *testing.T, s *steer.Service, c *coder) {
	r, err := c.dialect.ReadFurther(c.request(), nil, nil, s.Known)
	if err != nil {
		t.Fatal(err)
	}
	body, exchange := s.Asked(t.Context(), r)
	reader := conversation.NewReader(c.dialect.Answer(), true)
	for _, event := range toolCall(c.dialect.Name, int64(len(body))/4) {
		reader.Write([]byte("data: " + event + "\n\n"))
	}
	exchange.Answered(reader.Close(), window)
}

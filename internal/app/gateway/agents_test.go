// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// tongue is how an agent asks in a dialect, and how it knows the end of an answer.
type tongue struct{ path, body, end string }

var tongues = []tongue{
	{
		"/anthropic/v1/messages",
		`{"model":"any","max_tokens":4000,"stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%s}]}`,
		"event: message_stop\n",
	},
	{
		"/openai/v1/responses", `{"model":"any","stream":true,"tools":[{"type":"function","name":"Bash"}],"input":%s}`,
		"event: response.completed\n",
	},
	{
		"/openai/v1/chat/completions",
		`{"model":"any","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"Bash"}}],"messages":[{"role":"user","content":%s}]}`,
		"data: [DONE]\n",
	},
}

// play is what the model answers: words with pauses between them, and how many tokens that are.
type play struct {
	words  int
	pause  time.Duration
	output int64
}

func (p play) script() string {
	return fmt.Sprintf("```script\nturns:\n- text: %s\n  pause: %s\n  output: %d\n```\n", strings.TrimSpace(strings.Repeat("word ", p.words)), p.pause, p.output)
}

// try is a call that an agent has made once, and what it saw.
type try struct {
	mark, digest string
	output       int64
	status       int
	header       http.Header
	text         string
	// ended: it saw the end of the answer.
	ended bool
}

// reason of an answer of the gateway's own.
func (x try) reason() string { return x.header.Get(protocol.ReasonHeader) }

// broken off after it had begun.
func (x try) broken() bool { return x.status == http.StatusOK && !x.ended }

// refusal is what an error of any dialect says.
func (x try) refusal() string {
	var e struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(x.text), &e); err != nil || e.Error.Type == "" {
		return ""
	}
	return e.Error.Message
}

// ask once. What breaks off, or is not answered, is no error.
func (speaks tongue) ask(ctx context.Context, client *http.Client, url string, header http.Header, p play) (x try) {
	x = try{mark: "mark-" + rand.Text(), output: p.output}
	prompt, err := json.Marshal("Answer " + x.mark + ".\n\n" + p.script())
	if err != nil {
		panic(err)
	}
	body := fmt.Appendf(nil, speaks.body, prompt)
	sum := sha256.Sum256(body)
	x.digest = hex.EncodeToString(sum[:])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+speaks.path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return x
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)                                                                            // as far as it came
	x.status, x.header, x.text = answer.StatusCode, answer.Header, strings.ReplaceAll(string(text), "\r\n", "\n") // some providers end lines so
	x.ended = x.status == http.StatusOK && strings.Contains(x.text, speaks.end)
	return x
}

// crew are agents of a pod: each makes calls one after the other, in a dialect of its own, and each again until it has seen its
// end, as the CLIs do.
type crew struct {
	done    chan struct{}
	working sync.WaitGroup

	mu    sync.Mutex
	tries []try
}

// work begins. The agents ask the watchdog at a URL.
func (f *fleet) work(url string, agents int, p play) *crew {
	c := &crew{done: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: agents}}
	f.Cleanup(client.CloseIdleConnections)
	for n := range agents {
		c.working.Go(func() {
			for ended := true; ; {
				if ended {
					select {
					case <-c.done:
						return
					default:
					}
				}
				x := tongues[n%len(tongues)].ask(f.Context(), client, url, http.Header{}, p)
				c.mu.Lock()
				c.tries = append(c.tries, x)
				c.mu.Unlock()
				if ended = x.ended; !ended {
					select {
					case <-f.Context().Done():
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			}
		})
	}
	return c
}

// end when each agent has seen the end of its last call.
func (c *crew) end() []try {
	close(c.done)
	c.working.Wait()
	return c.tries
}

// count the tries for which something holds.
func (c *crew) count(holds func(try) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.tries {
		if holds(x) {
			n++
		}
	}
	return n
}

// more says that so many more answers have been seen to the end.
func (c *crew) more(answers int) func() bool {
	seen := func(x try) bool { return x.ended }
	before := c.count(seen)
	return func() bool { return c.count(seen) >= before+answers }
}

// client of one gateway, as a watchdog is.
func (g *gateway) client(t *testing.T) *http.Client {
	t.Helper()
	client := clientOf(g.rotator.Bundle())
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// clientOf gateways that have a certificate of a CA.
func clientOf(ca []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: protocol.GatewayService + "." + kubetest.SystemNamespace + ".svc", MinVersion: tls.VersionTLS13}}}
}

// as a pod that works on a task.
func as(token, task string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}, dialect.TaskHeader: {task}}
}

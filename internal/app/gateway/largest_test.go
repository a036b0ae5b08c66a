// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/upstream"
)

const (
	// crowd is how many agents there are, each of a Feature of its own.
	crowd = 200
	// largestAnswer is the largest that is read where it is no stream, in bytes.
	largestAnswer = 7 << 20
	// Every so many agents one sends the largest request; in the long form more of them do.
	largestEvery, largestEveryLong = 20, 4
	// patience of an agent with errors that another try may mend: less than what its client has, and many times what it needs here.
	patience = 4 * time.Minute
)

// manner is how a provider answers.
type manner struct {
	encoding string
	streamed bool
	body     []byte
	// end of the answer as the agent sees it.
	end string
}

// manners are the largest answers of each kind.
func manners(t *testing.T) map[string]manner {
	words := strings.Repeat("word ", 200)
	whole := `{"type":"message","model":"large","content":[{"type":"text","text":"` + strings.Repeat(words, largestAnswer/len(words)) + `"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	var stream strings.Builder
	stream.WriteString("data: {\"type\":\"message_start\",\"message\":{\"model\":\"large\",\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	for stream.Len() < largestAnswer {
		fmt.Fprintf(&stream, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", words)
	}
	const end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	stream.WriteString(end)
	var zipped, packed bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(gz, whole)
	_ = gz.Close()
	zs, err := zstd.NewWriter(&packed, zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(zs, whole)
	_ = zs.Close()
	return map[string]manner{
		"streamed": {"", true, []byte(stream.String()), end}, "whole": {"", false, []byte(whole), whole[len(whole)-40:]},
		"gzip": {"gzip", false, zipped.Bytes(), whole[len(whole)-40:]}, "zstd": {"zstd", false, packed.Bytes(), whole[len(whole)-40:]},
	}
}

// TestLargestOfEverything: 200 agents at once send the largest requests and get the largest answers of each kind. Each of them gets its answer in the
// end, no error is one that another try does not mend, and the process stays below its container's limit.
func TestLargestOfEverything(t *testing.T) {
	f := newFleet(t, "sqlite://"+filepath.Join(t.TempDir(), "largest.db"), 0)
	kinds := manners(t)
	server := upstream.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 4<<10)
		n, _ := io.ReadFull(r.Body, head)
		_, _ = io.Copy(io.Discard, r.Body)
		_, kind, _ := strings.Cut(string(head[:n]), "manner-")
		kind, _, _ = strings.Cut(kind, "-")
		m := kinds[kind]
		if m.encoding != "" {
			w.Header().Set("Content-Encoding", m.encoding)
		}
		if w.Header().Set("Content-Type", "application/json"); m.streamed {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = w.Write(m.body)
	}))
	ca, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	f.must(err)
	configure(t, fmt.Sprintf("backends:\n- name: main\n  dialects: [anthropic]\n  baseURL: %s\n  ca: %s\n  models: [{name: large, prices: {input: \"3\", output: \"15\"}}]\n", server.URL, ca))
	limit := containerLimit(t)
	f.options = append(f.options, fmt.Sprintf("--memory-limit=%d", limit))
	g := f.add()
	project := env.Project(t)
	began := time.Now()
	var agents []*attempt.Attempt
	for n := range crowd {
		agents = append(agents, attempt.Start(t, env, attempt.Feature(t, env, project, fmt.Sprint("agent-", n))))
	}
	for _, a := range agents {
		f.until("the pod is known", func() bool { _, err := g.allowance(t, a.Token); return err == nil })
	}
	t.Logf("%d agents are ready after %s", crowd, time.Since(began))
	every := largestEvery
	if os.Getenv("TIDEWAITER_LONG") != "" {
		every = largestEveryLong
	}
	largest := strings.Repeat("x", dialect.MaxBody-(4<<10))
	names := []string{"streamed", "whole", "gzip", "zstd"}
	began = time.Now()
	var working sync.WaitGroup
	var mu sync.Mutex
	tries, reasons := 0, map[string]int{}
	client := g.client(t)
	for n, a := range agents {
		working.Go(func() {
			name := names[n/every%len(names)] // each kind for largest requests, too
			if n%every != 0 {
				name = names[n%len(names)]
			}
			padding := largest[:256<<10]
			if n%every == 0 {
				padding = largest
			}
			body := fmt.Sprintf(`{"model":"any","max_tokens":1000,"stream":%v,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"manner-%s-"}],"x":"`, kinds[name].streamed, name) + padding + `"}`
			for {
				what, mends, pause := askOnce(t, client, "https://"+g.address, a, body, kinds[name].end)
				mu.Lock()
				tries++
				reasons[what]++
				mu.Unlock()
				if what == "answered" {
					return
				}
				if !mends || time.Since(began) > patience {
					t.Errorf("agent %d, %s, %d bytes: %s after %s", n, name, len(body), what, time.Since(began))
					return
				}
				time.Sleep(pause + time.Duration(n%every)*20*time.Millisecond)
			}
		})
	}
	working.Wait()
	peak := g.Peak(t)
	t.Logf("%d answers in %d tries and %s: %v; the gateway's peak is %d of %d MiB", crowd, tries, time.Since(began), reasons, peak>>20, limit>>20)
	if peak >= limit {
		t.Errorf("the gateway occupied %d MiB of %d MiB", peak>>20, limit>>20)
	}
	if !g.ready() {
		t.Error("the gateway is not ready")
	}
}

// askOnce says what came of a call, and whether another try may mend it.
func askOnce(t *testing.T, client *http.Client, url string, a *attempt.Attempt, body, end string) (what string, mends bool, pause time.Duration) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+tongues[0].path, strings.NewReader(body))
	if err != nil {
		return err.Error(), false, 0
	}
	request.Header = as(a.Token, "form")
	answer, err := client.Do(request)
	if err != nil { // an answer that comes before the end of the request may be lost with its connection
		return "no answer", true, time.Second
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		mends := answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout
		return fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Tidewaiter-Reason")), mends, time.Duration(max(seconds, 1)) * time.Second
	}
	last := tail{most: len(end)}
	if _, err := io.Copy(&last, answer.Body); err != nil || string(last.text) != end {
		return "cut off", true, time.Second
	}
	return "answered", false, 0
}

// tail keeps the last bytes of what is written.
type tail struct {
	text []byte
	most int
}

// Write implements io.Writer.
func (l *tail) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-l.most):]
	return len(p), nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const (
	// siegers are the connections of the hostile Feature, and defended how many calls each of the three healthy ones makes meanwhile; in
	// the long form they go on for two minutes.
	siegers, defended = 64, 60
	longSiege         = 2 * time.Minute
	// retries of a call: what a client's few, each after a pause, come to.
	retries = 20
)

// containerLimit is the memory limit that the gateway is installed with, in bytes.
func containerLimit(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("../../../config/gateway/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
}

// sieger attacks once; what it is answered does not matter.
type sieger func(ctx context.Context, send func(body io.Reader, header ...string) *http.Response)

func attacks() []sieger {
	read := func(answer *http.Response) {
		if answer != nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
	}
	request := func(stream bool, script, more string) string {
		return fmt.Sprintf(`{"model":"any","max_tokens":1000,"stream":%v,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%q}]%s}`, stream, script, more)
	}
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	_, _ = pack.Write(bytes.Repeat([]byte{' '}, 40<<20))
	_ = pack.Close()
	huge := request(false, play{words: 3, output: 1}.script(), `,"x":"`+strings.Repeat("x", 31<<20)+`"`)
	stalled := func(ctx context.Context, send func(io.Reader, ...string) *http.Response, header ...string) {
		body, more := io.Pipe()
		stop := context.AfterFunc(ctx, func() { _ = more.Close() })
		defer stop()
		go func() { _, _ = more.Write(packed.Bytes()[:10]) }()
		read(send(body, header...))
		_ = body.Close()
	}
	unread := func(stream bool) sieger {
		long := request(stream, play{words: 200_000, output: 1}.script(), "")
		return func(ctx context.Context, send func(io.Reader, ...string) *http.Response) {
			answer := send(strings.NewReader(long))
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			if answer != nil {
				_ = answer.Body.Close()
			}
		}
	}
	return []sieger{
		func(ctx context.Context, send func(io.Reader, ...string) *http.Response) { stalled(ctx, send) },
		func(ctx context.Context, send func(io.Reader, ...string) *http.Response) {
			stalled(ctx, send, "Content-Encoding", "gzip")
		},
		func(ctx context.Context, send func(io.Reader, ...string) *http.Response) {
			stalled(ctx, send, "Content-Encoding", "zstd")
		},
		unread(true), unread(false),
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(strings.NewReader(huge)))
		},
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(bytes.NewReader(packed.Bytes()), "Content-Encoding", "gzip"))
		},
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(strings.NewReader("{}")))
		},
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(strings.NewReader(request(true, "```script\nturns:\n- text: a b c\n  delay: 20s\n```\n", ""))))
		},
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(strings.NewReader(request(true, "```script\nturns:\n- text: a\n  fail: {status: 529, times: 9}\n```\n", ""))))
		},
	}
}

// TestSiegeOfTheGateway: one Feature with 64 connections sends bodies that stall, are huge or expand, reads no answers, is refused, and makes the
// provider slow and fail, all at once. Three others beside it see no error that trying again does not mend, and the process stays below its
// container's limit.
func TestSiegeOfTheGateway(t *testing.T) {
	f := newFleet(t, "sqlite://"+filepath.Join(t.TempDir(), "siege.db"), 0)
	limit := containerLimit(t)
	f.options = append(f.options, fmt.Sprintf("--memory-limit=%d", limit))
	g := f.add()
	project := env.Project(t)
	hostile := f.attempt(project, "hostile")
	client := g.client(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var siege sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	list := attacks()
	for n := range siegers {
		siege.Go(func() {
			for ctx.Err() == nil {
				list[n%len(list)](ctx, func(body io.Reader, header ...string) *http.Response {
					request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+g.address+tongues[0].path, body)
					if err != nil {
						panic(err)
					}
					request.Header = as(hostile.Token, "form")
					for i := 0; i < len(header); i += 2 {
						request.Header.Set(header[i], header[i+1])
					}
					answer, err := client.Do(request)
					what := "no answer"
					if err == nil {
						what = fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Tidewaiter-Reason"))
					}
					mu.Lock()
					defer mu.Unlock()
					answers[what]++
					return answer
				})
				select { // as an agent's client does between two tries
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	var healthy sync.WaitGroup
	began := time.Now()
	for n := range 3 {
		a := f.attempt(project, fmt.Sprint("healthy-", n))
		healthy.Go(func() {
			client := g.client(t)
			var took []time.Duration
			tried := 0
			for len(took) < defended || os.Getenv("TIDEWAITER_LONG") != "" && time.Since(began) < longSiege {
				since, x := time.Now(), try{}
				for range retries {
					tried++
					if x = tongues[n].ask(t.Context(), client, "https://"+g.address, as(a.Token, "form"), play{words: 3, output: 1}); x.ended {
						break
					}
					time.Sleep(500 * time.Millisecond)
				}
				if !x.ended {
					t.Errorf("healthy-%d: call %d: %d %s %.300s", n, len(took), x.status, x.reason(), x.text)
					return
				}
				took = append(took, time.Since(since))
			}
			slices.Sort(took)
			t.Logf("healthy-%d: %d calls in %d tries, p50 %s, p99 %s", n, len(took), tried, took[len(took)/2], took[len(took)*99/100])
		})
	}
	healthy.Wait()
	peak := g.Peak(t)
	end()
	siege.Wait()
	t.Logf("%s; the gateway's peak is %d of %d MiB; the hostile Feature was answered %v", time.Since(began), peak>>20, limit>>20, answers)
	if peak >= limit {
		t.Errorf("the gateway occupied %d MiB of %d MiB", peak>>20, limit>>20)
	}
	if !g.ready() {
		t.Error("the gateway is not ready")
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// Attackers and provider of a siege are other machines in the world. Here they are processes of their own, so that the gateway and the healthy agents are
// not slower because of what it takes to generate, encrypt and answer the attack.
const (
	attackersProgram, providerProgram = "attackers", "provider"
	// siegeBegins is what attackers say when they have prepared what they send.
	siegeBegins  = "The siege begins.\n"
	messagesPath = "/v1/messages"
	// hugeSize is what one kind of attack sends, in bytes. Requests of scriptLarge bytes and more are those of attacks; whether they ask for a stream stands
	// in the first headSize bytes.
	hugeSize, scriptLarge, headSize = 31 << 20, 512 << 10, 256
)

// hugeScript is played to the request of 31 MiB, and longScript has an answer of a million bytes.
var hugeScript = request(false, play{words: 3, output: 1}.script())

func longScript(stream bool) string {
	return request(stream, play{words: 200_000, output: 1}.script())
}

// programs that a test of this package runs: the gateway, unless the first argument names another.
func programs(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case attackersProgram:
			return attack(ctx, args[1:], out)
		case providerProgram:
			return provide(ctx, out)
		}
	}
	return Main(ctx, args, out)
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
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	_, _ = pack.Write(bytes.Repeat([]byte{' '}, 40<<20))
	_ = pack.Close()
	huge := hugeScript[:len(hugeScript)-1] + `,"x":"` + strings.Repeat("x", hugeSize) + `"}`
	stalled := func(ctx context.Context, send func(io.Reader, ...string) *http.Response, header ...string) {
		body, more := io.Pipe()
		stop := context.AfterFunc(ctx, func() { _ = more.Close() })
		defer stop()
		go func() { _, _ = more.Write(packed.Bytes()[:10]) }()
		read(send(body, header...))
		_ = body.Close()
	}
	unread := func(stream bool) sieger {
		long := longScript(stream)
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
			read(send(strings.NewReader(request(true, "```script\nturns:\n- text: a b c\n  delay: 20s\n```\n"))))
		},
		func(_ context.Context, send func(io.Reader, ...string) *http.Response) {
			read(send(strings.NewReader(request(true, "```script\nturns:\n- text: a\n  fail: {status: 529, times: 9}\n```\n"))))
		},
	}
}

// request of a script.
func request(stream bool, script string) string {
	return fmt.Sprintf(`{"model":"any","max_tokens":1000,"stream":%v,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%q}]}`, stream, script)
}

// besiege a gateway in a Feature's name until the program is ended; it then says how often each answer came.
func besiege(f *fleet, hostile *attempt.Attempt) *program.Program {
	f.Helper()
	g, dir := f.gateways[0], f.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	f.must(errors.Join(os.WriteFile(ca, g.rotator.Bundle(), 0o600), os.WriteFile(token, []byte(hostile.Token), 0o600)))
	attackers := program.StartIdle(f.T, nil, attackersProgram, g.address, ca, token)
	f.until("the siege begins", func() bool { return strings.Contains(attackers.Log(), siegeBegins) })
	return attackers
}

// attack a gateway, given its address and the files of its CA and of a token, until the context ends.
func attack(ctx context.Context, args []string, out io.Writer) error {
	address := args[0]
	ca, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	token, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	list, client := attacks(), clientOf(ca)
	fmt.Fprint(out, siegeBegins)
	var siege sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for n := range siegers {
		siege.Go(func() {
			for ctx.Err() == nil {
				list[n%len(list)](ctx, func(body io.Reader, header ...string) *http.Response {
					request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+tongues[0].path, body)
					if err != nil {
						panic(err)
					}
					request.Header = as(string(token), "form")
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
					counts[what]++
					return answer
				})
				select { // as an agent's client does between two tries
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	siege.Wait()
	fmt.Fprintln(out, counts)
	return nil
}

// provider of a siege, which the gateways that are added later have as their backend.
func (f *fleet) besiegedProvider() *program.Program {
	f.Helper()
	p := program.Start(f.T, nil, providerProgram)
	f.until("the provider serves", func() bool { return strings.HasSuffix(p.Log(), "\n") })
	f.config = strings.TrimSpace(p.Log()) + "\n"
	f.backend(fmt.Sprintf("concurrency: %d", backendConcurrency))
	return p
}

// provide models until the context ends, and say how a gateway is configured for them. What it answers to the large requests of a siege is made before:
// making it would take more processor time than the gateway does.
func provide(ctx context.Context, out io.Writer) error {
	scripted := provider.New("")
	play := func(body string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		scripted.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, messagesPath, strings.NewReader(body)))
		return answer
	}
	huge, whole, streamed := play(hugeScript), play(longScript(false)), play(longScript(true))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < scriptLarge {
			scripted.ServeHTTP(w, r)
			return
		}
		head := make([]byte, headSize)
		_, _ = io.ReadFull(r.Body, head)   // a gateway that has ended the call does not read what follows
		_, _ = io.Copy(io.Discard, r.Body) // the same
		switch {
		case r.ContentLength > hugeSize:
			replay(w, huge)
		case bytes.Contains(head, []byte(`"stream":true`)):
			replay(w, streamed)
		default:
			replay(w, whole)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	ca, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if err != nil {
		return err
	}
	fmt.Fprint(out, configOf(server.URL, ca))
	<-ctx.Done()
	server.CloseClientConnections()
	server.Close()
	return nil
}

// replay an answer that was recorded, as fast as it is read.
func replay(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // fails where the gateway has ended the call
}

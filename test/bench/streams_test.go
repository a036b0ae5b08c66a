// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

const (
	// streamsTime bounds a round of open streams.
	streamsTime = 2 * time.Minute
	// streamsOfFeature is how many streams one Feature has: fewer than a gateway lets it have.
	streamsOfFeature = 20
	// lastWord is what the last event has of those that come before a stream stays open.
	lastWord = `"text":""`
)

// holder is a gateway or a reverse proxy as a process of its own, and agents that hold streams of a provider open through it.
type holder struct {
	*server

	client   *http.Client
	provider *hosted
	body     []byte
}

// streams is what memory a gateway's process occupies with 500 streams that are open, beside a reverse proxy's. Its account of memory has room for some
// 700.
func streams(t *testing.T, s scale, b *board.Board) {
	open, rounds := 500, 3
	if !s.full {
		open, rounds = 25, 1
	}
	var wholes, each, proxies, eachOfProxy []float64
	for range rounds {
		whole, more := hold(t, gatewayProgram, open)
		wholes, each = append(wholes, whole), append(each, more)
		whole, more = hold(t, proxyProgram, open)
		proxies, eachOfProxy = append(proxies, whole), append(eachOfProxy, more)
	}
	name := "/open=" + short(open)
	ratio := func(row string, of, beside []float64, unit string) {
		b.Add(row+name, board.Number(board.Median(of))+unit, board.Number(board.Median(beside))+unit, board.Median(of)/board.Median(beside), board.Bound{})
	}
	ratio("gateway-memory-resident", wholes, proxies, "MiB")
	ratio("gateway-memory-resident-of-a-stream", each, eachOfProxy, "KiB")
}

// hold so many streams open in a new process: what is resident of it then, in MiB, and by how much more that is for each stream than
// before them, in KiB.
func hold(t *testing.T, program func() (string, error), open int) (whole, each float64) {
	ctx, cancel := context.WithTimeout(t.Context(), streamsTime)
	defer cancel()
	h := &holder{provider: &hosted{}, body: request(40<<10, 20), client: &http.Client{Transport: &http.Transport{
		DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is this machine
	}}}
	provider := httptest.NewTLSServer(h.provider)
	defer provider.Close()
	defer h.client.CloseIdleConnections()
	var end func()
	h.server, end = start(ctx, t, program, provider)
	defer end()

	// Whatever is made once is there after a first stream.
	asking, hangUp := context.WithCancel(ctx)
	h.ask(asking, 1)
	h.await(ctx, 1)
	hangUp()
	h.await(ctx, 0)
	before := h.resident()

	asking, hangUp = context.WithCancel(ctx)
	defer hangUp()
	h.ask(asking, open)
	h.await(ctx, open)
	during := h.resident()
	return during / 1024, (during - before) / float64(open)
}

// ask for so many streams, of which a few begin at once, and read each until it stays open. They end with the context.
func (h *holder) ask(ctx context.Context, streams int) {
	var group errgroup.Group
	group.SetLimit(16)
	for i := range streams {
		group.Go(func() error { return h.begin(ctx, fmt.Sprintf("shop/feature-%d", i/streamsOfFeature)) })
	}
	h.must(group.Wait())
}

func (h *holder) begin(ctx context.Context, feature string) error {
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"?beta=true", bytes.NewReader(h.body))
	if err != nil {
		return err
	}
	ask.Header.Set("Content-Type", "application/json")
	ask.Header.Set("Accept", "text/event-stream")
	ask.Header.Set("Authorization", "Bearer "+feature)
	answer, err := h.client.Do(ask)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), lastWord) {
			return nil
		}
	}
	return fmt.Errorf("status %d, and a stream that ends: %w", answer.StatusCode, lines.Err())
}

// await that the provider has so many streams open.
func (h *holder) await(ctx context.Context, open int) {
	for h.provider.open.Load() != int64(open) {
		select {
		case <-ctx.Done():
			h.t.Fatalf("%d streams are open, want %d", h.provider.open.Load(), open)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

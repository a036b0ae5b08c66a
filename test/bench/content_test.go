// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// hardContents are what files are made of that are hard to judge, by what is repeated.
func hardContents() map[string]string {
	const value = "x7Kq92mZpL4wVt8s"
	r := rand.New(rand.NewPCG(1, 2))
	random := func(from string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = from[r.IntN(len(from))]
		}
		return string(b)
	}
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return map[string]string{
		"base64": random(base64, 1<<20), "base64-lines": random(base64, 76) + "\n", "bytes": random(string(every), 1<<20), "zeros": "\x00",
		"newlines": "\n", "letters": "a", "dashes": "-", "equals": "=", "quotes": `"'`,
		"keyword": "key", "keywords": "key token secret password ", "names": "secret_token_key_password_access_auth: ",
		"tokens": "sk.ey.s.hf_", "long-tokens": random("sk_ey", 1<<16) + "\n",
		"assignments": "key = '" + value + "'\n", "assignments-in-one-line": "key='" + value + "',", "twitter": "twitter: " + value + "\n",
		"jfrog": "jfrog: x7Kq92mZp\n", "terraform": "atlasv1" + value, "azure": "=abc7Q~abcdefghijklmnopqrstuvwxyz012~\n",
		"key-headers": "-----BEGIN PRIVATE KEY-----\n", "key-headers-without-end": "-----BEGIN PRIVATE KE\n", "commands": "curl -u a:", "jwt": "ey" + value + value + ".ey",
		"invisible": "a\u200b\u202e\U000e0041", "han": "漢字", "bom": "\ufeff",
	}
}

// contentInput is one new file, under every rule.
func contentInput(content []byte) judge.Input {
	in := judge.Input{
		Changes: []judge.Change{{
			Path: "a.yaml", Kind: judge.Added,
			New: judge.Entry{Mode: judge.ModeFile, ID: "1111111111111111111111111111111111111111", Size: int64(len(content))},
		}},
		Policy: policy.Merge(policy.Sources{}),
		Names:  func([]string) map[string][]string { return map[string][]string{"": {"a.yaml"}} },
	}
	in.Contents = func(_ []string, _ int64, visit func(int, []byte, bool)) { visit(0, content, true) }
	return in
}

// contents judges one file of whatever content beside hashing it.
func contents(t *testing.T, s scale, b *board.Board) {
	sizes, most := []int{1, 2, 4, 8, 16, 32, 64}, 50
	unit := 1 << 20
	if !s.full {
		sizes, most, unit = []int{1, 2}, 2, 1<<10
	}
	all := hardContents()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	growth, slowest := 0.0, time.Duration(0)
	var hashed time.Duration
	for _, name := range names {
		text := bytes.Repeat([]byte(all[name]), 64*unit/len(all[name])+1)
		took := func(size int) time.Duration {
			best := time.Duration(math.MaxInt64)
			for range 2 {
				began := time.Now()
				if _, err := judge.Judge(t.Context(), contentInput(text[:size*unit])); err != nil {
					t.Fatal(err)
				}
				best = min(best, time.Since(began))
			}
			return best
		}
		var times []time.Duration
		for _, size := range sizes {
			times = append(times, took(size))
		}
		// Above the time of the smaller half, so that what is too short to be measured tells nothing.
		for i := 1; i < len(times); i++ {
			if times[i-1] > 20*time.Millisecond {
				growth = max(growth, float64(times[i])/float64(times[i-1]))
			}
		}
		measured := took(most)
		began := time.Now()
		sha1.Sum(text[:most*unit]) //nolint:gosec // as Git names it
		hashed = time.Since(began)
		b.Beside(fmt.Sprintf("content-time/MiB=%d/%s", most, name), measured, hashed, board.AtMost(1000))
		slowest = max(slowest, measured)
	}
	b.Beside("content-time/slowest", slowest, hashed, board.AtMost(1000))
	b.Figure("content-growth/twice-the-size", growth, "x", board.AtMost(3))
	b.Beside("content-cancel/slowest", cancelling(t, all, most*unit), hashed, board.AtMost(100))
	b.Figure("content-budget", secrets.Budget, "", board.Bound{})
}

// cancelling is how long judgements go on at the most after they were called off, each in the middle.
func cancelling(t *testing.T, all map[string]string, size int) time.Duration {
	slowest := time.Duration(0)
	for _, part := range all {
		in := contentInput(bytes.Repeat([]byte(part), size/len(part)+1)[:size])
		for _, after := range []time.Duration{time.Millisecond, 30 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan time.Time, 1)
			timer := time.AfterFunc(after, func() {
				called <- time.Now()
				cancel()
			})
			_, err := judge.Judge(ctx, in)
			ended := time.Now()
			timer.Stop()
			cancel()
			if errors.Is(err, context.Canceled) {
				slowest = max(slowest, ended.Sub(<-called))
			}
		}
	}
	return slowest
}

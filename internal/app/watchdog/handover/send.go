// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
)

const (
	// sendTime bounds one try.
	sendTime = time.Minute
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 4 << 10
)

// Sender sends to a gateway, on connections of its own: model calls do not wait for it. Without a gateway it is nil.
func Sender(gateway string, link gatewayclient.Link) func(ctx context.Context, path string, packed []byte) error {
	if gateway == "" {
		return nil
	}
	transport := &http.Transport{DialTLSContext: link.Dial, MaxIdleConnsPerHost: 1, IdleConnTimeout: 20 * time.Second, DisableCompression: true}
	return func(ctx context.Context, path string, packed []byte) error {
		ctx, cancel := context.WithTimeout(ctx, sendTime)
		defer cancel()
		target, err := url.Parse(gateway)
		if err != nil {
			return fmt.Errorf("address of the gateway: %w", err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.JoinPath(path).String(), bytes.NewReader(packed))
		if err != nil {
			return err
		}
		token, err := link.ReadToken()
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Content-Encoding", "gzip")
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // as far as it came
		switch answer.StatusCode {
		case http.StatusNoContent:
			return nil
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return fmt.Errorf("%w: status %d: %.200s", ErrRefused, answer.StatusCode, bytes.TrimSpace(text))
		}
		return fmt.Errorf("the gateway answers with status %d: %.200s", answer.StatusCode, bytes.TrimSpace(text))
	}
}

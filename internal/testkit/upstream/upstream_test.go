// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
)

// TestForget: requests are HTTP/2 on one connection. Once that is forgotten nothing is answered on it, while a new one works.
func TestForget(t *testing.T) {
	arrived := make(chan string, 3)
	server := Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Proto
		_, _ = io.WriteString(w, r.Proto)
	}))
	ask := func(ctx context.Context, client *http.Client) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	for range 2 {
		if got, err := ask(t.Context(), server.Client()); err != nil || got != "HTTP/2.0" {
			t.Fatalf("answered %q, %v", got, err)
		}
		<-arrived
	}
	if n := server.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
	server.Forget()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := ask(ctx, server.Client())
		ended <- err
	}()
	anew := server.Client().Transport.(*http.Transport).Clone()
	if got, err := ask(t.Context(), &http.Client{Transport: anew}); err != nil || got != "HTTP/2.0" {
		t.Errorf("on a new connection: %q, %v", got, err)
	}
	<-arrived
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("on the forgotten connection: %v", err)
	}
	if len(arrived) != 0 {
		t.Error("the request on the forgotten connection has arrived")
	}
}

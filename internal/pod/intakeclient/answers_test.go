// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/intakeclient"
	"github.com/tidewaiter/tidewaiter/internal/testkit/fakeintake"
)

// TestAnswers: the replica that waits is found, what is written goes there, and what goes wrong is told.
func TestAnswers(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		elsewhere int
		write     func(io.Writer) error
		want      string
	}{
		"an answer":                {0, text("all of it"), `{"code":200}` + "\nall of it"},
		"of another replica first": {3, text("all of it"), `{"code":200}` + "\nall of it"},
		"an empty one":             {0, text(""), `{"code":200}` + "\n"},
		"a long one":               {1, text(strings.Repeat("x", 1<<20)), `{"code":200}` + "\n" + strings.Repeat("x", 1<<20)},
		"none":                     {0, func(io.Writer) error { return boom }, `{"code":404,"message":"boom"}` + "\n"},
		"a part": {0, func(w io.Writer) error {
			_, err := io.WriteString(w, "a part")
			return errors.Join(err, boom)
		}, `{"code":200}` + "\na part\n!boom"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			intake := fakeintake.Start(t, protocol.Orders{Version: protocol.OrdersVersion})
			intake.Elsewhere(test.elsewhere)
			calls := 0
			write := func(w io.Writer) error {
				calls++
				return test.write(w)
			}
			if err := client(intake).Answer(t.Context(), "q1", write, func(error) int { return http.StatusNotFound }); err != nil {
				t.Fatal(err)
			}
			if got, _ := intake.Answer("q1"); got != test.want || calls != 1 {
				t.Errorf("got %.60q after %d calls, want %.60q", got, calls, test.want)
			}
		})
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// TestAnAnswerThatNoOneWaitsForIsNotMade: the search for a replica ends, and costs nothing but requests.
func TestAnAnswerThatNoOneWaitsForIsNotMade(t *testing.T) {
	intake := fakeintake.Start(t, protocol.Orders{Version: protocol.OrdersVersion})
	intake.Elsewhere(1 << 20)
	err := client(intake).Answer(t.Context(), "q1", func(io.Writer) error {
		t.Error("the answer was made")
		return nil
	}, func(error) int { return 0 })
	var status *intakeclient.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusMisdirectedRequest {
		t.Errorf("got %v", err)
	}
}

// TestAnInquiryIsHeardOnce beside orders that stay as they are.
func TestAnInquiryIsHeardOnce(t *testing.T) {
	intake := fakeintake.Start(t, protocol.Orders{Version: protocol.OrdersVersion})
	heard := make(chan protocol.Inquiry, 8)
	c := intakeclient.NewClient(intakeclient.Options{
		URL: intake.URL, ServerName: fakeintake.ServerName, CAPath: intake.CAPath, TokenPath: intake.TokenPath,
		Inquire: func(q protocol.Inquiry) { heard <- q },
	})
	_, etag, _, err := c.Orders(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	intake.Inquire(protocol.Inquiry{ID: "q1", Kind: protocol.InquiryDiff, To: 7})
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, again, changed, err := c.Orders(ctx, etag, protocol.MaxWaitSeconds*1e9/30); err != nil || changed || again != etag {
			t.Errorf("orders: %q, %v, %v", again, changed, err)
		}
		cancel()
	}
	if got := <-heard; got.To != 7 || len(heard) != 0 {
		t.Errorf("heard %+v and %d more", got, len(heard))
	}
}

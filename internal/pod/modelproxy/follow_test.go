// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const nothingLeft = "nothing is left"

// follows a gateway that answers questions about calls that are held with ask, until the test ends.
func follows(t *testing.T, ask func(ctx context.Context, wanted string) (protocol.Allowance, error)) *allowances {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	a := newAllowances(func(ctx context.Context, wanted string) (protocol.Allowance, error) {
		if wanted == "" {
			return protocol.Allowance{}, nil
		}
		return ask(ctx, wanted)
	})
	go func() {
		defer close(done)
		a.follow(ctx, time.Minute, 24*time.Hour)
	}()
	return a
}

// TestACallThatIsGivenUpDuringAQuestion: the answer says that a budget is exceeded, and nobody waits for it any more. That is told at once.
func TestACallThatIsGivenUpDuringAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		a := follows(t, func(context.Context, string) (protocol.Allowance, error) {
			<-answer
			return protocol.Allowance{Exceeded: nothingLeft}, nil
		})
		<-a.told // at the start
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.wait(ctx, "1,2,3") }()
		synctest.Wait()
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		began := time.Now()
		close(answer)
		synctest.Wait()
		select { // the answer may have been replaced by the next already
		case last := <-a.told:
			if last.Exceeded != "" {
				t.Errorf("told %+v, and nothing follows", last)
			}
		default:
			t.Error("nothing is told")
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it is told %s later", took)
		}
	})
}

// TestACallThatIsHeldDuringAQuestion: it is asked for at once, whether or not another one was given up meanwhile.
func TestACallThatIsHeldDuringAQuestion(t *testing.T) {
	for name, given := range map[string]bool{"one more": false, "in the place of another": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				a := follows(t, func(_ context.Context, wanted string) (protocol.Allowance, error) {
					if wanted == "0,0,1" {
						return protocol.Allowance{}, nil
					}
					<-answer
					return protocol.Allowance{Exceeded: nothingLeft}, nil
				})
				<-a.told
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				go func() { _ = a.wait(ctx, "1,2,3") }()
				synctest.Wait()
				small := make(chan error, 1)
				go func() { small <- a.wait(t.Context(), "0,0,1") }()
				synctest.Wait()
				if given {
					giveUp()
				}
				began := time.Now()
				close(answer)
				if err := <-small; err != nil || time.Since(began) > time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			})
		})
	}
}

// TestAGatewayThatIsAwayIsAskedAgain: it was said that a budget is exceeded, and when nobody waits for it any more the gateway is away.
func TestAGatewayThatIsAwayIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := newAllowances(func(_ context.Context, wanted string) (protocol.Allowance, error) {
			switch {
			case away.Load():
				return protocol.Allowance{}, errors.New("the gateway is away")
			case wanted != "":
				return protocol.Allowance{Exceeded: nothingLeft}, nil
			}
			return protocol.Allowance{}, nil
		})
		go a.follow(ctx, time.Minute, 24*time.Hour)
		<-a.told
		call, giveUp := context.WithCancel(t.Context())
		go func() { _ = a.wait(call, "1,2,3") }()
		if last := <-a.told; last.Exceeded == "" {
			t.Fatalf("%+v", last)
		}
		synctest.Wait()
		away.Store(true)
		giveUp()
		synctest.Wait()
		away.Store(false)
		began := time.Now()
		if last := <-a.told; last.Exceeded != "" || time.Since(began) > time.Hour {
			t.Errorf("%s later: %+v", time.Since(began), last)
		}
		cancel()
		synctest.Wait()
	})
}

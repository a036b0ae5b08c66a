// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// forged is a token that says what a good one says, and that nobody has signed.
func forged(change func(claims map[string]any)) string {
	claims := map[string]any{
		"iss": "https://kubernetes.default.svc", "aud": []string{protocol.TokenAudience}, "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"pod": map[string]any{"name": "x", "uid": "uid"}},
	}
	change(claims)
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err) // claims of a test
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(payload) + ".Zm9yZ2Vk"
}

func ofPod(n int) func(map[string]any) {
	return func(claims map[string]any) {
		claims["kubernetes.io"] = map[string]any{"pod": map[string]any{"uid": fmt.Sprint("uid-", n)}}
	}
}

// flooded is an authenticator whose API server keeps forged tokens waiting until it is told otherwise.
func flooded(t *testing.T) (a *identity.Authenticator, clock *clocktesting.FakeClock, reviews *atomic.Int32, goOn func()) {
	t.Helper()
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	reviews, waiting := &atomic.Int32{}, make(chan struct{})
	slow := interceptor.NewClient(watching, interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if r, ok := o.(*authenticationv1.TokenReview); ok && strings.HasSuffix(r.Spec.Token, ".Zm9yZ2Vk") {
			reviews.Add(1)
			select {
			case <-waiting:
			case <-ctx.Done():
			}
			return nil // not authenticated
		}
		return w.Create(ctx, o, opts...)
	}})
	clock = clocktesting.NewFakeClock(time.Now())
	if a, err = identity.New(identity.Options{Client: slow, Live: env.Client, Clock: clock}); err != nil {
		t.Fatal(err)
	}
	return a, clock, reviews, sync.OnceFunc(func() { close(waiting) })
}

// TestAFloodOfGarbageHoldsNobodyUp: thousands of forged tokens from one address, each of another pod, wait for the API
// server; who comes from elsewhere is let in, and so is who was let in before from the same address.
func TestAFloodOfGarbageHoldsNobodyUp(t *testing.T) {
	a, clock, reviews, goOn := flooded(t)
	defer goOn()
	project := env.Project(t)
	old, fresh := attempt.Start(t, env, attempt.Feature(t, env, project, "old")), attempt.Start(t, env, attempt.Feature(t, env, project, "fresh"))
	evil := identity.From(t.Context(), "10.0.0.66")
	if _, err := a.Authenticate(evil, old.Token); err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	var busy atomic.Int32
	for n := range 4000 {
		flood.Go(func() {
			_, err := a.Authenticate(evil, forged(ofPod(n)))
			if errors.Is(err, identity.ErrBusy) {
				busy.Add(1)
			} else if !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("a forged token: %v", err)
			}
		})
	}
	for busy.Load() < 4000-8 && reviews.Load() < 32 { // the rest waits for the API server
		time.Sleep(time.Millisecond)
	}
	if _, err := a.Authenticate(identity.From(t.Context(), "10.0.0.7"), fresh.Token); err != nil {
		t.Errorf("a good token from elsewhere: %v", err)
	}
	clock.Step(31 * time.Second) // it is time to ask again
	if _, err := a.Authenticate(evil, old.Token); err != nil {
		t.Errorf("a token that was proved before: %v", err)
	}
	goOn()
	flood.Wait()
	if n := reviews.Load(); n > 8 {
		t.Errorf("the API server was asked %d times", n)
	}
}

// TestAFloodFromManyAddressesIsBoundByItsClaims: all say that they are one pod, or of an issuer that nobody knows.
func TestAFloodFromManyAddressesIsBoundByItsClaims(t *testing.T) {
	for name, change := range map[string]func(n int) func(map[string]any){
		"one pod": func(int) func(map[string]any) { return ofPod(1) },
		"a strange issuer": func(n int) func(map[string]any) {
			return func(claims map[string]any) { ofPod(n)(claims); claims["iss"] = "https://evil.example.com" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, reviews, goOn := flooded(t)
			defer goOn()
			project := env.Project(t)
			old, fresh := attempt.Start(t, env, attempt.Feature(t, env, project, "old")), attempt.Start(t, env, attempt.Feature(t, env, project, "fresh"))
			if _, err := a.Authenticate(t.Context(), old.Token); err != nil {
				t.Fatal(err)
			}
			var flood sync.WaitGroup
			var busy atomic.Int32
			for n := range 200 {
				flood.Go(func() {
					token := forged(func(claims map[string]any) { change(n)(claims); claims["jti"] = n })
					if _, err := a.Authenticate(identity.From(t.Context(), fmt.Sprint("10.0.1.", n)), token); errors.Is(err, identity.ErrBusy) {
						busy.Add(1)
					}
				})
			}
			for busy.Load() < 200-4 && reviews.Load() < 32 {
				time.Sleep(time.Millisecond)
			}
			if _, err := a.Authenticate(identity.From(t.Context(), "10.0.0.7"), fresh.Token); err != nil {
				t.Errorf("a good token: %v", err)
			}
			goOn()
			flood.Wait()
			if n := reviews.Load(); n > 4 {
				t.Errorf("the API server was asked %d times", n)
			}
		})
	}
}

// TestWhatCannotPassIsNotAskedAbout: the token itself says so.
func TestWhatCannotPassIsNotAskedAbout(t *testing.T) {
	a, _, reviews, goOn := flooded(t)
	goOn()
	for name, tc := range map[string]struct {
		token string
		want  error
	}{
		"no token at all":       {"x", identity.ErrUnauthenticated},
		"three parts of it":     {"a.b.c", identity.ErrUnauthenticated},
		"no JSON":               {"a." + base64.RawURLEncoding.EncodeToString([]byte("x")) + ".Zm9yZ2Vk", identity.ErrUnauthenticated},
		"another audience":      {forged(func(c map[string]any) { c["aud"] = "vault" }), identity.ErrUnauthenticated},
		"no audience":           {forged(func(c map[string]any) { delete(c, "aud") }), identity.ErrUnauthenticated},
		"an audience of number": {forged(func(c map[string]any) { c["aud"] = 1 }), identity.ErrUnauthenticated},
		"no issuer":             {forged(func(c map[string]any) { delete(c, "iss") }), identity.ErrUnauthenticated},
		"expired":               {forged(func(c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() }), identity.ErrUnauthenticated},
		"no expiry":             {forged(func(c map[string]any) { delete(c, "exp") }), identity.ErrUnauthenticated},
		"bound to no pod":       {forged(func(c map[string]any) { delete(c, "kubernetes.io") }), identity.ErrForbidden},
	} {
		if _, err := a.Authenticate(t.Context(), tc.token); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := reviews.Load(); n != 0 {
		t.Errorf("the API server was asked %d times", n)
	}
	if _, err := a.Authenticate(t.Context(), forged(func(c map[string]any) { c["aud"] = protocol.TokenAudience })); !errors.Is(err, identity.ErrUnauthenticated) || reviews.Load() != 1 {
		t.Errorf("one that may be good: %v, %d reviews", err, reviews.Load())
	}
}

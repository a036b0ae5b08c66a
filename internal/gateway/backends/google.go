// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"
)

const (
	// googleScope of a token for Vertex AI.
	// https://cloud.google.com/vertex-ai/docs/authentication
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
	// googleTokens is where a service account gets its tokens, whatever its key says: the key may be a project's, which must not choose whom the
	// gateway asks. https://developers.google.com/identity/protocols/oauth2/service-account
	googleTokens = "https://oauth2.googleapis.com/token"
	// maxSources of tokens are kept, one for each key.
	maxSources = 256
)

// google gives requests a token of a service account, or of the identity of the gateway's pod.
type google struct {
	client *http.Client

	mu      sync.Mutex
	sources *lru.Cache[[sha256.Size]byte, oauth2.TokenSource]
}

func newGoogle(r *route) *google {
	sources, err := lru.New[[sha256.Size]byte, oauth2.TokenSource](maxSources)
	if err != nil {
		panic(err) // only an invalid size causes it
	}
	return &google{client: r.tokens(), sources: sources}
}

func (g *google) grant(ctx context.Context, r *http.Request, _ []byte, key string) error {
	source, err := g.source(key)
	if err != nil {
		return err
	}
	token, err := source.Token()
	if err != nil {
		return fmt.Errorf("get a token: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	token.SetAuthHeader(r)
	return nil
}

// source of tokens for a key; an empty one is the pod's identity.
func (g *google) source(key string) (oauth2.TokenSource, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	digest := sha256.Sum256([]byte(key))
	if source, known := g.sources.Get(digest); known {
		return source, nil
	}
	// A token outlives the call that requested it.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, g.client)
	source, err := g.newSource(ctx, key)
	if err == nil {
		g.sources.Add(digest, source)
	}
	return source, err
}

func (g *google) newSource(ctx context.Context, key string) (oauth2.TokenSource, error) {
	if key == "" {
		found, err := googleauth.FindDefaultCredentials(ctx, googleScope)
		if err != nil {
			return nil, fmt.Errorf("the backend has no key, and the gateway's pod has no identity at Google: %w", err)
		}
		return found.TokenSource, nil
	}
	// Other kinds of credentials name files, URLs and programs.
	config, err := googleauth.JWTConfigFromJSON([]byte(key), googleScope)
	if err != nil {
		return nil, errors.New("the key is not that of a Google service account, as JSON")
	}
	config.TokenURL = googleTokens
	return config.TokenSource(ctx), nil
}

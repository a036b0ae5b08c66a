// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// clockSkew is how much the API server's clock may be behind ours.
	clockSkew = time.Minute
	// maxIssuer bounds the name of an issuer in bytes; it is a URL.
	maxIssuer = 512
)

// claims is what a token says of itself. Nothing of it is proved: it decides which tokens the API server is not asked
// about, and who waits behind whom, never who is let in.
type claims struct {
	Issuer     string   `json:"iss"`
	Audience   audience `json:"aud"`
	Expiry     float64  `json:"exp"`
	Kubernetes struct {
		Pod struct {
			UID string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// audience is one text or a list of them (RFC 7519, section 4.1.3).
type audience []string

// UnmarshalJSON reads both forms.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims reads a token that cannot be longer than maxToken, and refuses those that the API server would refuse as well.
func readClaims(token string, now time.Time) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return c, fmt.Errorf("the token is not a JSON Web Token: %w", ErrUnauthenticated)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, fmt.Errorf("the token is not a JSON Web Token: %w", ErrUnauthenticated)
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return c, fmt.Errorf("the token is not a JSON Web Token: %w", ErrUnauthenticated)
	}
	switch {
	case c.Issuer == "" || len(c.Issuer) > maxIssuer:
		return c, fmt.Errorf("the token names no issuer: %w", ErrUnauthenticated)
	case !slices.Contains(c.Audience, protocol.TokenAudience):
		return c, fmt.Errorf("token for audience %q: %w", protocol.TokenAudience, ErrUnauthenticated)
	case c.Expiry <= float64(now.Add(-clockSkew).Unix()):
		return c, fmt.Errorf("the token has expired: %w", ErrUnauthenticated)
	case c.Kubernetes.Pod.UID == "" || len(c.Kubernetes.Pod.UID) > 64:
		return c, fmt.Errorf("the token is not bound to a pod: %w", ErrForbidden)
	}
	return c, nil
}

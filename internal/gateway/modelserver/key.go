// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// keyTime bounds the reading of a project's key: an agent waits for it.
const keyTime = 5 * time.Second

// unlock finds the key for the backend: the gateway's, or the project's own.
func (c *call) unlock() *failure {
	b := c.route.Backend
	if of := c.route.Key; of != (policy.SecretKey{}) {
		ctx, cancel := context.WithTimeout(c.r.Context(), keyTime)
		defer cancel()
		var err error
		if c.key, err = c.caller.Key(ctx, of); err != nil {
			return fail(http.StatusServiceUnavailable, reasonNoKey, err, "%v", err)
		}
	}
	for _, entry := range c.client.Missing() {
		if entry == b.Key && c.key != "" { // the project has brought one
			continue
		}
		f := fail(http.StatusServiceUnavailable, reasonNoKey, nil, "the gateway has no key for the backend %q: an administrator adds the entry %q to its Secret", b.Name, entry)
		f.elsewhere = true
		return f
	}
	return nil
}

// whose key the call to a backend had.
func whose(k policy.SecretKey) string {
	if k == (policy.SecretKey{}) {
		return "the gateway's key"
	}
	return fmt.Sprintf("the project's key (%q of Secret %q)", k.Key, k.Secret)
}

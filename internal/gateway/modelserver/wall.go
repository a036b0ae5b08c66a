// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// reasonOf a request that is not sent on, and its status. What the policy forbids is said with a status after which no client tries again.
var reasonOf = map[dialect.Reason]struct {
	reason string
	status int
}{
	dialect.Unclear:    {reasonInvalid, http.StatusBadRequest},
	dialect.ServerTool: {reasonServerTool, http.StatusForbidden},
	dialect.State:      {reasonState, http.StatusForbidden},
}

// filter removes from the request what the policy lets nobody ask of a provider; it returns a failure if the request is refused. It digests
// a request for an answer as it came, once for all backends.
func (c *call) filter() (f *failure) {
	c.allows = dialect.Allowed{Tools: c.caller.ProviderTools, State: c.route.ProviderState}
	body := c.request.Bytes()
	if gone := c.work(c.r.Context(), len(body), func() {
		if c.request, f = filtered(c.request, c.endpoint, c.allows); f == nil && c.endpoint.Kind == dialect.Generate {
			digest := sha256.Sum256(body)
			c.digest = hex.EncodeToString(digest[:])
		}
	}); gone != nil {
		return gone
	}
	return f
}

// filtered is a request without what a provider would do elsewhere; a failure where it is refused.
func filtered(r dialect.Request, e dialect.Endpoint, a dialect.Allowed) (dialect.Request, *failure) {
	request, err := r.Filter(e, a)
	if err == nil {
		return request, nil
	}
	refused, is := errors.AsType[*dialect.RefusedError](err)
	if !is {
		return r, fail(http.StatusBadRequest, reasonInvalid, nil, "%v", err)
	}
	of := reasonOf[refused.Reason]
	f := fail(of.status, of.reason, nil, "%v", refused)
	f.detail = refused.Error()
	if f.Code = refused.Code; f.Code != "" { // clients act on the code of a request that is wrong
		f.Status = http.StatusBadRequest
	}
	return r, f
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// notAvailable may pass: a user fixes it, and an agent that tries again need not fail meanwhile.
func notAvailable(err error) *failure {
	f := fail(http.StatusServiceUnavailable, reasonNoModel, nil, "%v", err)
	if refusal, is := errors.AsType[*models.Refusal](err); is {
		f.speaks = refusal.Speaks
	}
	return f
}

// choose who answers.
func (c *call) choose(table *Table) *failure {
	c.record.Role = policy.RolePrimary
	if c.caller.Role != nil {
		c.record.Role = c.caller.Role(c.endpoint.Asked(c.request))
	}
	routes, err := table.config.Routes(c.dialect.Name, c.caller.Models, c.record.Role)
	if err != nil {
		return notAvailable(err)
	}
	c.table, c.routes = table, routes
	c.next()
	return nil
}

// next takes the next backend that may answer.
func (c *call) next() {
	c.route, c.routes = c.routes[0], c.routes[1:]
	b := c.route.Backend
	c.record.Backend, c.record.Model, c.client, c.key = b.Name, c.route.Model.Name, c.table.clients[b.Name], c.table.keys[b.Key]
	c.price = c.table.prices[priced{b.Name, c.route.Model.Name}]
}

// spliceRoom is what the gateway puts into a request in addition to templates and objections, in bytes.
const spliceRoom = 4 << 10

// aim at the backend, and take memory for the request as it gets it.
func (c *call) aim() *failure {
	var err error
	if c.target, err = c.route.Backend.Target(c.endpoint, c.route.Model.Name, c.request.Streamed || c.endpoint.Streams, c.query()); err != nil {
		return fail(http.StatusNotFound, reasonUnknownEndpoint, nil, "%v", err)
	}
	_, deny := c.route.Backend.Members()
	if has := c.request.Has(deny); len(has) > 0 {
		return fail(http.StatusForbidden, reasonServerTool, nil, "%s: the backend %q does not get it (deny of its configuration): leave it out", has[0], c.route.Backend.Name)
	}
	size := int64(c.needs())
	if c.target.Recasts() { // which makes one more of it
		size *= 2
	}
	more := size - c.spliced
	if more <= 0 {
		return nil
	}
	if f := c.asking.take(c.r.Context(), more); f != nil {
		return f
	}
	c.spliced = size
	return nil
}

// needs is the room for the request as the backend gets it, in bytes.
func (c *call) needs() int {
	size := len(c.request.Bytes()) + c.caller.Before.Size() + spliceRoom
	for _, o := range c.objections {
		size += 2 * (len(o.Answer) + len(o.Text))
	}
	return roomSize(size)
}

// compose what the backend gets, in the memory that was taken for it.
func (c *call) compose() *failure {
	strip, _ := c.route.Backend.Members()
	e := dialect.Edit{Without: strip, Model: c.route.Model.Name, Before: c.caller.Before, Objections: c.objections}
	e.Usage = c.request.LacksUsage() && c.route.Backend.CountsStreams()
	c.counted = e.Usage
	e.Limit, e.LimitMember, e.Unread = c.limit, c.route.Backend.LimitMember(c.dialect), c.route.Backend.Unread(c.dialect)
	if c.endpoint.Plain {
		e.Before = dialect.Quoted{}
	}
	c.body = nil // of a request that was sent before
	c.sending.vacate(&c.made)
	c.made = room(c.needs())
	e.Room = c.made
	var err error
	if gone := c.work(c.r.Context(), len(c.request.Bytes()), func() {
		if c.body, err = c.request.Body(e); err == nil {
			c.body = c.target.Recast(c.body, []string{c.dialect.Value(betaHeader, strings.Join(c.r.Header.Values(betaHeader), ","), c.allows)})
		}
	}); gone != nil {
		return gone
	}
	if err != nil {
		what := "templates"
		if len(c.objections) > 0 {
			what = "what is said about an answer"
		}
		return fail(http.StatusBadRequest, reasonInvalid, nil, "%s cannot be put into the request: %v", what, err)
	}
	return nil
}

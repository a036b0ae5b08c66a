// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelproxy takes an agent's model calls on the loopback address of its pod, adds the pod's token, and sends
// them on to the gateway. The observer hears each request for an answer before the proxy sends it on; the proxy refuses a request that it cannot
// read. Answers stream through. While a budget has nothing left for a call, the proxy holds the refusal and asks again.
package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/loopback"
)

const (
	// maxConnections at once: an agent has a few, its helpers some more.
	maxConnections = 64
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
)

// Options of a proxy.
type Options struct {
	// Gateway is its URL, and Name the name in its certificate, if it is not the host of the URL.
	Gateway, Name string
	// Token and CA are files. Both change while the pod lives.
	Token, CA string
	// Task is the name of the agent's current task; empty if there is none.
	Task func() string
	// Pause between two questions for the rest of the budgets during a hold; UsageEvery is the pause between two questions for the usage while
	// the agent makes calls. Zero values mean DefaultPause and DefaultUsageEvery.
	Pause, UsageEvery time.Duration
	// ReadTime bounds how long the proxy reads a request, including the wait for memory. Zero means DefaultReadTime.
	ReadTime time.Duration
	// Observer of the conversation; nil for none.
	Observer Observer
	// Fared is called with the result of each call for an answer before the agent gets it; it may be nil. Many goroutines call it.
	Fared func(failures.Answer)
	Log   *slog.Logger
}

const (
	// DefaultPause is how long the proxy may take to notice a raised budget.
	DefaultPause = 5 * time.Second
	// DefaultUsageEvery is as seldom as checkpoints are: each makes the manager write the Feature's status.
	DefaultUsageEvery = 30 * time.Second
	// DefaultReadTime is long for what comes from the same machine, and short enough that a client that waits tries again.
	DefaultReadTime = time.Minute
)

// Listen for an agent's calls.
func Listen(address string) (net.Listener, error) { return loopback.Listen(address, maxConnections) }

// URL under which a listener's models are found.
func URL(l net.Listener) string { return "http://" + l.Addr().String() }

// New makes a Proxy that has yet to serve.
func New(o Options) (*Proxy, error) {
	target, err := url.Parse(o.Gateway)
	if err != nil {
		return nil, fmt.Errorf("address of the gateway: %w", err)
	}
	if o.Pause == 0 {
		o.Pause = DefaultPause
	}
	if o.UsageEvery == 0 {
		o.UsageEvery = DefaultUsageEvery
	}
	if o.ReadTime == 0 {
		o.ReadTime = DefaultReadTime
	}
	p := &Proxy{options: o, link: gatewayclient.Link{Name: o.Name, Token: o.Token, CA: o.CA}, target: target, buffers: newBuffers()}
	p.transport = p.newTransport()
	p.allowances, p.rejections = newAllowances(p.ask), make(chan Rejection, 1)
	return p, nil
}

// Serve answers until the context ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	o := p.options
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { p.allowances.follow(ctx, o.Pause, o.UsageEvery) })
	server := &http.Server{
		Handler: loopback.Guard(l.Addr().String(), p.handler()), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	defer p.transport.CloseIdleConnections()
	// What ends the context may have closed the listener first.
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve the agent's models: %w", err)
	}
	return nil
}

// Proxy of one agent. Make it with New.
type Proxy struct {
	options    Options
	link       gatewayclient.Link
	target     *url.URL
	transport  *http.Transport
	allowances *allowances
	rejections chan Rejection
	buffers    *buffers
	// beside is what the last request has said in addition to its conversation.
	beside atomic.Pointer[dialect.Beside]
}

func (p *Proxy) newTransport() *http.Transport {
	return &http.Transport{
		DialTLSContext: p.link.Dial, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: 20 * time.Second,
		DisableCompression: true, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
	}
}

func (p *Proxy) handler() http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p.transport, FlushInterval: -1, ErrorHandler: p.fail, ModifyResponse: p.look,
		ErrorLog: slog.NewLogLogger(p.options.Log.Handler(), slog.LevelDebug),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The pod's token opens more at the gateway than models: nothing else goes there in the agent's name.
		d, e, known, found := dialect.Serve(r.Method, r.URL.Path)
		if !known {
			http.Error(w, "tidewaiter: no dialect has this path; there are: "+strings.Join(dialect.Prefixes(), ", "), http.StatusNotFound)
			return
		}
		if found && e.Kind == dialect.Generate && !e.Side {
			r = p.watched(r)
			if p.options.Observer != nil {
				m := p.buffers.take()
				defer m.give()
				heard, f := p.observe(w, r, d, m)
				if f != nil {
					f.write(w, r, d)
					return
				}
				r = heard
			}
		}
		// What is sent on as it comes is read until its end by who sends it on: the answer may have begun before that.
		_ = http.NewResponseController(w).EnableFullDuplex()
		defer p.allowances.used() // also where the agent hung up, which ends it by a panic
		forward.ServeHTTP(w, r)
	})
}

// rewrite sends a request to the gateway, with the pod's token in place of whatever the agent was given.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.target)
	r.Out.Host = ""
	r.Out.Header.Del("Authorization")
	for name := range r.Out.Header {
		if strings.HasPrefix(name, "Tidewaiter-") { // ours to set
			r.Out.Header.Del(name)
		}
	}
	if task := p.options.Task(); task != "" {
		r.Out.Header.Set(dialect.TaskHeader, task)
	}
	if o := observed(r.In); o != nil {
		r.Out.Header.Set(dialect.TurnHeader, strconv.FormatInt(o.exchange.Turn(), 10))
	}
	if token, err := p.link.ReadToken(); err == nil {
		r.Out.Header.Set("Authorization", "Bearer "+token)
	} else { // the gateway refuses the call and says so
		p.options.Log.ErrorContext(r.In.Context(), "Cannot read the token", "error", err.Error())
	}
}

// fail answers in the dialect's own form that the gateway could not be asked; clients of every dialect try again.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody listens
	}
	p.options.Log.WarnContext(r.Context(), "Cannot reach the gateway", "path", r.URL.Path, "error", err.Error())
	if o := observed(r); o != nil {
		o.failed(failures.Answer{Status: http.StatusServiceUnavailable, Reason: failures.GatewayUnreachable})
	}
	d, _, _, _ := dialect.Serve(r.Method, r.URL.Path) //nolint:dogsled // the handler has looked already
	refuse(http.StatusServiceUnavailable, failures.GatewayUnreachable, "the gateway cannot be reached at the moment; try again").write(w, r, d)
}

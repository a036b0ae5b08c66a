// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package agentproxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"
)

// localIdle bounds a tunnel to a server of the watchdog without a byte. The server itself ends a connection that asks for
// nothing, and a model call may be silent for as long as a policy allows.
const localIdle = 24 * time.Hour

// local are the watchdog's own servers. Clients that do not know NO_PROXY send everything to their proxy, including model calls; the
// gateway would refuse the address of the pod itself.
type local struct {
	// servers has the address of each server by the spellings that reach it: the address itself, and localhost with its port.
	servers map[string]string
	forward *httputil.ReverseProxy
	idle    *http.Transport
	log     *slog.Logger
}

func newLocal(addresses []string, log *slog.Logger) (*local, error) {
	l := &local{servers: map[string]string{}, log: log, idle: &http.Transport{
		MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: 20 * time.Second, DisableCompression: true, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
	}}
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("address of a server of the watchdog: %w", err)
		}
		l.servers[address], l.servers["localhost:"+port] = address, address
	}
	// It removes what belongs to only one connection, and writes the request again, so that both sides agree where it ends.
	l.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Host = l.servers[strings.ToLower(r.In.URL.Host)]
			r.Out.Host = r.Out.URL.Host
		},
		Transport: l.idle, FlushInterval: -1, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.WarnContext(r.Context(), "A server of the watchdog does not answer", "url", visible(r.URL.Redacted()), "error", err.Error())
			}
			http.Error(w, "tidewaiter: the server does not answer at the moment; try again", http.StatusBadGateway)
		},
	}
	return l, nil
}

// server gives the address of the server that a host and port mean; false where they mean none.
func (l *local) server(hostPort string) (address string, is bool) {
	address, is = l.servers[strings.ToLower(hostPort)]
	return address, is
}

// asked says whether a request in absolute form is for one of the servers.
func (l *local) asked(r *http.Request) bool {
	_, is := l.server(r.URL.Host)
	return is && r.URL.Scheme == "http" && r.URL.User == nil && !strings.HasPrefix(r.RequestURI, "/")
}

// connect to a server.
func (l *local) connect(ctx context.Context, address string) (net.Conn, *refusal) {
	dialer := net.Dialer{Timeout: answerTime}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		l.log.WarnContext(ctx, "Cannot reach a server of the watchdog", "address", address, "error", err.Error())
		return nil, unavailable("the server cannot be reached at the moment; try again")
	}
	return conn, nil
}

// urls of the servers, for people.
func (l *local) urls() string {
	var list []string
	for spelling, address := range l.servers {
		if spelling == address {
			list = append(list, "http://"+address)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " and ")
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// connection is the key of a request's connection.
type connection struct{}

// lose the machine of a gateway: nothing that comes on the connection of a request arrives any more, and nobody says so.
func lose(r *http.Request) error {
	conn, err := r.Context().Value(connection{}).(*tls.Conn).NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		nothing := unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &nothing)
	})
	return errors.Join(err, failed)
}

// TestAGatewayWhoseMachineIsLost: an agent that waits for it, or that is just told something by it, learns that within half a minute.
func TestAGatewayWhoseMachineIsLost(t *testing.T) {
	const soon = 40 * time.Second
	for name, streams := range map[string]bool{"before an answer": false, "in the middle of an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			p := newMeteredPod(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == protocol.AllowancePath {
					return
				}
				if streams {
					_, _ = w.Write([]byte("data: word\n\n"))
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Second) // until it has been confirmed
				}
				if err := lose(r); err != nil {
					t.Error(err)
				}
				if streams {
					<-over
				}
			}))
			defer close(over)
			var answer *http.Response
			var err error
			began := time.Now()
			for tries := 1; tries == 1 || !streams && answer.StatusCode == http.StatusOK && tries < 10; tries++ { // until one goes the same way
				began = time.Now()
				answer = p.post("/anthropic/v1/messages", nil)
				_, err = io.ReadAll(answer.Body)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("it took %s", took)
			}
			if streams && err == nil || !streams && answer.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("the agent was answered %d, %v", answer.StatusCode, err)
			}
		})
	}
}

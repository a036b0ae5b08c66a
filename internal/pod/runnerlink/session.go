// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// helloTimeout is how long a new connection may take to say who it is; a runner does so at once.
	helloTimeout = 10 * time.Second
	// relistenPause is the wait after the socket could not be made, so that a full or broken volume does not cause a busy loop.
	relistenPause = time.Second
	// retellPause is the wait for room in a queue that is full, before it is tried again.
	retellPause = 100 * time.Millisecond
	// maxSocketPath is what sockaddr_un holds, without the terminating zero.
	maxSocketPath = 107
)

// session is one connection with a runner that has said hello.
type session struct {
	lines *lines
	ended chan struct{}

	mu      sync.Mutex
	waiting map[int64]chan protocol.RunnerEvent
}

// expect registers interest in the answer to a command. The channel holds one answer, so that reading never blocks.
func (s *session) expect(id int64) <-chan protocol.RunnerEvent {
	answers := make(chan protocol.RunnerEvent, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = answers
	return answers
}

func (s *session) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

// answer hands an answer to who waits for it; nobody may be left to.
func (s *session) answer(e protocol.RunnerEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answers, ok := s.waiting[e.ID]; ok {
		answers <- e
		delete(s.waiting, e.ID)
	}
}

// listen makes the socket under another name first, so that it never shows with more rights than 0600.
func listen(path string) (*net.UnixListener, error) {
	hidden := filepath.Join(filepath.Dir(path), ".new."+filepath.Base(path))
	if len(hidden) > maxSocketPath {
		return nil, fmt.Errorf("listen for runner: socket path %s is too long (%d bytes at most)", path, maxSocketPath-len(".new."))
	}
	if err := removeSocket(hidden); err != nil {
		return nil, fmt.Errorf("listen for runner: %w", err)
	}
	if err := removeSocket(path); err != nil {
		return nil, fmt.Errorf("listen for runner: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for runner: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(hidden, 0o600)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		_ = listener.Close()
		_ = os.Remove(hidden)
		return nil, fmt.Errorf("listen for runner: %w", err)
	}
	return listener, nil
}

// removeSocket removes what a watchdog that crashed has left, and nothing but a socket.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is in the way and is not a socket", path)
	}
	return os.Remove(path)
}

// serve has one runner after the other until Close.
func (r *Runner) serve(listener *net.UnixListener) {
	defer close(r.done)
	for {
		err := r.serveOne(listener)
		if r.isClosed() {
			return
		}
		if !r.lost(err) {
			return
		}
		for listener, err = listen(r.path); err != nil; listener, err = listen(r.path) {
			if !r.lost(err) || !r.pause(relistenPause) {
				return
			}
		}
		if !r.setClosing(func() { _ = listener.Close() }) {
			_ = listener.Close()
			_ = os.Remove(r.path)
			return
		}
	}
}

// lost tells why there is no runner. It waits until there is room for that, because nothing else would tell the watchdog
// that its runner is gone. The next runner reports again an exit or a signal that found no room. False when
// Close was called.
func (r *Runner) lost(why error) bool {
	for r.events.push(Event{Lost: why}) != nil {
		if !r.pause(retellPause) {
			return false
		}
	}
	return true
}

// serveOne accepts one runner, stops listening and stays with it until the connection breaks.
func (r *Runner) serveOne(listener *net.UnixListener) error {
	conn, err := listener.AcceptUnix()
	_ = listener.Close()
	_ = os.Remove(r.path)
	if err != nil {
		return fmt.Errorf("accept runner: %w", err)
	}
	defer conn.Close()
	if !r.setClosing(func() { _ = conn.Close() }) {
		return net.ErrClosed
	}
	s := &session{lines: newLines(conn), ended: make(chan struct{}), waiting: map[int64]chan protocol.RunnerEvent{}}
	defer close(s.ended)
	hello, early, err := r.welcome(s.lines)
	if err != nil {
		return err
	}
	r.join(s, hello)
	defer r.leave()
	if err := r.events.push(Event{Connected: hello}); err != nil {
		return err
	}
	for _, line := range early {
		if err := r.dispatch(s, line); err != nil {
			return err
		}
	}
	for {
		line, err := s.lines.read()
		if err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := r.dispatch(s, line); err != nil {
			return err
		}
	}
}

// errStranger breaks the connection with a process that is not the runner.
var errStranger = errors.New("read hello: it does not know the session: it is a process of the agent, not the runner")

// welcome reads the hello and agrees on the session. What the runner said between the two is returned.
func (r *Runner) welcome(l *lines) (hello *protocol.RunnerHello, early [][]byte, err error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, nil, fmt.Errorf("set deadline of hello: %w", err)
	}
	if hello, err = readHello(l); err != nil {
		return nil, nil, err
	}
	switch known := r.nonce; {
	case known == "":
		if early, err = r.agree(l); err != nil {
			return nil, nil, fmt.Errorf("agree on a session: %w", err)
		}
	case subtle.ConstantTimeCompare([]byte(known), []byte(hello.Nonce)) != 1:
		return nil, nil, errStranger
	}
	hello.Nonce = ""
	return hello, early, l.conn.SetReadDeadline(time.Time{})
}

// maxEarly bounds what a runner says before it takes the session.
const maxEarly = 16

// agree gives the runner a nonce. It counts once the runner has taken it and it is kept; until then no command is sent, so
// that no agent is there that could stand in for the runner.
func (r *Runner) agree(l *lines) (early [][]byte, err error) {
	nonce := rand.Text()
	if err := l.write(protocol.RunnerCommand{Session: &protocol.RunnerSession{Nonce: nonce}}); err != nil {
		return nil, err
	}
	for len(early) < maxEarly {
		line, err := l.read()
		if err != nil {
			return nil, err
		}
		e, err := decodeEvent(line)
		if err != nil {
			return nil, err
		}
		if e.Session == nil {
			early = append(early, line)
			continue
		}
		if err := r.memory.Keep(nonce); err != nil {
			return nil, fmt.Errorf("keep it: %w", err)
		}
		r.nonce = nonce
		return early, nil
	}
	return nil, errTooManyEvents
}

func readHello(l *lines) (*protocol.RunnerHello, error) {
	line, err := l.read()
	if err != nil {
		return nil, fmt.Errorf("read hello: %w", err)
	}
	e, err := decodeEvent(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read hello: %w", err)
	case e.Hello == nil:
		return nil, errors.New("read hello: the connection opens with something else")
	case e.Hello.Version != protocol.Version:
		return nil, fmt.Errorf("read hello: the runner speaks version %d, want %d", e.Hello.Version, protocol.Version)
	}
	return e.Hello, nil
}

// dispatch routes one line of the runner.
func (r *Runner) dispatch(s *session, line []byte) error {
	e, err := decodeEvent(line)
	if err != nil {
		return err
	}
	switch {
	case e.Hello != nil || e.Session != nil:
		return errors.New("the runner opened the connection twice")
	case e.ID != 0:
		s.answer(e)
		return nil
	}
	return r.events.push(Event{Exited: e.Exited, Signal: e.Signal, Thawed: e.Thawed, Understood: e.Understood})
}

// join makes a session the one that commands go to. IDs continue after an earlier watchdog's, so that the ID of an
// agent that still runs is never given again.
func (r *Runner) join(s *session, hello *protocol.RunnerHello) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextID = max(r.nextID, hello.Running+1)
	if hello.LastExit != nil {
		r.nextID = max(r.nextID, hello.LastExit.Start+1)
	}
	r.session = s
}

func (r *Runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = nil
}

func (r *Runner) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// setClosing says how Close ends what serve is about to wait for; false when Close has been called already.
func (r *Runner) setClosing(closing func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.closing = closing
	return true
}

// pause waits; false when Close was called meanwhile.
func (r *Runner) pause(d time.Duration) bool {
	stop := make(chan struct{})
	if !r.setClosing(sync.OnceFunc(func() { close(stop) })) {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func listening(t *testing.T) (*Runner, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	r, err := Listen(path, &memory{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, path
}

// memory keeps a nonce for as long as a test lasts.
type memory struct{ nonce string }

func (m *memory) Nonce() (string, error) { return m.nonce, nil }

func (m *memory) Keep(nonce string) error {
	m.nonce = nonce
	return nil
}

// take receives a session and takes it.
func take(t *testing.T, conn *Conn) string {
	t.Helper()
	c, err := conn.Receive()
	if err != nil || c.Session == nil {
		t.Fatalf("command = %+v, %v, want a session", c, err)
	}
	if err := conn.Send(protocol.RunnerEvent{Session: &struct{}{}}); err != nil {
		t.Fatal(err)
	}
	return c.Session.Nonce
}

// dial connects as soon as the socket is there.
func dial(t *testing.T, path string) *Conn {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		conn, err := Dial(t.Context(), path)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// greet connects a runner and says how things stand.
func greet(t *testing.T, r *Runner, path string, hello protocol.RunnerHello) *Conn {
	t.Helper()
	conn := dial(t, path)
	hello.Version, hello.Nonce = protocol.Version, r.memory.(*memory).nonce
	if err := conn.Send(protocol.RunnerEvent{Hello: &hello}); err != nil {
		t.Fatal(err)
	}
	if hello.Nonce == "" {
		take(t, conn)
	}
	hello.Nonce = ""
	if diff := cmp.Diff(&hello, next(t, r).Connected); diff != "" {
		t.Fatalf("hello (-want +got)\n%s", diff)
	}
	return conn
}

func next(t *testing.T, r *Runner) Event {
	t.Helper()
	select {
	case e := <-r.Events():
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event comes")
		return Event{}
	}
}

// play answers commands as a script says, until the connection ends.
func play(t *testing.T, conn *Conn, answer func(protocol.RunnerCommand) protocol.RunnerEvent) {
	t.Helper()
	go func() {
		for {
			command, err := conn.Receive()
			if err != nil {
				return
			}
			event := answer(command)
			event.ID = command.ID
			if conn.Send(event) != nil {
				return
			}
		}
	}()
}

func TestCommandsAndAnswers(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	var got []protocol.RunnerCommand
	play(t, conn, func(c protocol.RunnerCommand) protocol.RunnerEvent {
		got = append(got, c)
		switch {
		case c.Start != nil:
			return protocol.RunnerEvent{Started: &protocol.RunnerStarted{PID: 17}}
		case c.Freeze != nil:
			return protocol.RunnerEvent{Frozen: &protocol.RunnerFrozen{Processes: 3, Settled: true, Latency: time.Millisecond}}
		case c.Thaw != nil:
			return protocol.RunnerEvent{Thawed: &protocol.RunnerThawed{Newcomers: 2}}
		case c.Kill != nil:
			return protocol.RunnerEvent{Killed: &protocol.RunnerKilled{}}
		case c.Input != nil:
			return protocol.RunnerEvent{Input: &protocol.RunnerInputAck{Delivered: true}}
		case c.Pulse != nil:
			return protocol.RunnerEvent{Pulse: &protocol.RunnerPulse{CPU: time.Second, Processes: 3}}
		}
		return protocol.RunnerEvent{Error: "no"}
	})
	ctx := t.Context()
	start := protocol.RunnerStart{Argv: []string{"sh", "-c", "x\ny"}, Env: []string{"A=<&>"}, Dir: "/workspace"}
	id, started, err := r.Start(ctx, start)
	if id != 1 || started.PID != 17 || err != nil {
		t.Errorf("Start = %d, %+v, %v", id, started, err)
	}
	freeze := protocol.RunnerFreeze{Timeout: time.Second, Limit: time.Minute}
	frozen, err := r.Freeze(ctx, freeze)
	if want := (protocol.RunnerFrozen{Processes: 3, Settled: true, Latency: time.Millisecond}); frozen != want || err != nil {
		t.Errorf("Freeze = %+v, %v, want %+v", frozen, err, want)
	}
	if thawed, err := r.Thaw(ctx); thawed.Newcomers != 2 || err != nil {
		t.Errorf("Thaw = %+v, %v", thawed, err)
	}
	if err := r.Kill(ctx, time.Second); err != nil {
		t.Errorf("Kill = %v", err)
	}
	if delivered, err := r.Input(ctx, "line"); !delivered || err != nil {
		t.Errorf("Input = %v, %v", delivered, err)
	}
	if pulse, err := r.Pulse(ctx); pulse.CPU != time.Second || pulse.Processes != 3 || err != nil {
		t.Errorf("Pulse = %+v, %v", pulse, err)
	}
	var refused *RefusedError
	if err := r.Exit(ctx, 300); !errors.As(err, &refused) || refused.Reason != "no" {
		t.Errorf("Exit = %v, want the runner's no", err)
	}
	want := []protocol.RunnerCommand{
		{ID: 1, Start: &start}, {ID: 2, Freeze: &freeze}, {ID: 3, Thaw: &struct{}{}},
		{ID: 4, Kill: &protocol.RunnerKill{Grace: time.Second}}, {ID: 5, Input: &protocol.RunnerInput{Line: "line"}},
		{ID: 6, Pulse: &struct{}{}}, {ID: 7, Exit: &protocol.RunnerExitNow{Code: 300}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got)\n%s", diff)
	}
}

func TestEventsComeInOrderAndWithoutLoss(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	const n = 500
	for i := range n {
		if err := conn.Send(protocol.RunnerEvent{Exited: &protocol.RunnerExited{Start: int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Send(protocol.RunnerEvent{Thawed: &protocol.RunnerThawed{ByLimit: true}}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Send(protocol.RunnerEvent{Signal: &protocol.RunnerSignal{Name: "SIGTERM"}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if e := next(t, r); e.Exited == nil || e.Exited.Start != int64(i) {
			t.Fatalf("event %d = %+v", i, e)
		}
	}
	if e := next(t, r); e.Thawed == nil || !e.Thawed.ByLimit {
		t.Errorf("event = %+v, want Thawed by limit", e)
	}
	if e := next(t, r); e.Signal == nil || e.Signal.Name != "SIGTERM" {
		t.Errorf("event = %+v, want SIGTERM", e)
	}
}

func TestOnlyOneRunnerIsLetIn(t *testing.T) {
	r, path := listening(t)
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), os.ModeSocket|0o600; got != want {
		t.Errorf("mode = %v, want %v", got, want)
	}
	conn := greet(t, r, path, protocol.RunnerHello{})
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := Dial(t.Context(), path); err == nil {
		t.Error("a second one was let in")
	}
	_ = conn.Close()
	if e := next(t, r); e.Lost == nil {
		t.Errorf("event = %+v, want Lost", e)
	}
	greet(t, r, path, protocol.RunnerHello{Running: 7, Frozen: true})
}

func TestIDsGoOnAfterAnEarlierWatchdog(t *testing.T) {
	for name, test := range map[string]struct {
		hello protocol.RunnerHello
		want  int64
	}{
		"fresh":     {protocol.RunnerHello{}, 1},
		"running":   {protocol.RunnerHello{Running: 7, LastExit: &protocol.RunnerExited{Start: 3}}, 8},
		"last exit": {protocol.RunnerHello{LastExit: &protocol.RunnerExited{Start: 9}}, 10},
	} {
		r, path := listening(t)
		conn := greet(t, r, path, test.hello)
		play(t, conn, func(protocol.RunnerCommand) protocol.RunnerEvent {
			return protocol.RunnerEvent{Started: &protocol.RunnerStarted{}}
		})
		if id, _, err := r.Start(t.Context(), protocol.RunnerStart{}); id != test.want || err != nil {
			t.Errorf("%s: id = %d, %v, want %d", name, id, err, test.want)
		}
	}
}

func TestCallsFailWhenTheLinkDoes(t *testing.T) {
	r, path := listening(t)
	if _, err := r.Thaw(t.Context()); !errors.Is(err, ErrDisconnected) {
		t.Errorf("before the runner comes: %v, want %v", err, ErrDisconnected)
	}
	conn := greet(t, r, path, protocol.RunnerHello{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Thaw(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want %v", err, context.Canceled)
	}
	go func() {
		for command, err := conn.Receive(); ; command, err = conn.Receive() {
			if err != nil || command.Kill != nil || command.Exit != nil {
				_ = conn.Close()
				return
			}
		}
	}()
	if err := r.Kill(t.Context(), 0); !errors.Is(err, ErrLost) {
		t.Errorf("connection broke before the answer: %v, want %v", err, ErrLost)
	}
	if e := next(t, r); e.Lost == nil {
		t.Errorf("event = %+v, want Lost", e)
	}
	conn = greet(t, r, path, protocol.RunnerHello{})
	go func() {
		_, _ = conn.Receive()
		_ = conn.Close()
	}()
	if err := r.Exit(t.Context(), 0); err != nil {
		t.Errorf("Exit = %v, want nil: the runner is gone", err)
	}
}

func TestWrongAnswerIsAnError(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	play(t, conn, func(protocol.RunnerCommand) protocol.RunnerEvent {
		return protocol.RunnerEvent{Input: &protocol.RunnerInputAck{}}
	})
	_, _, startErr := r.Start(t.Context(), protocol.RunnerStart{})
	_, freezeErr := r.Freeze(t.Context(), protocol.RunnerFreeze{})
	_, thawErr := r.Thaw(t.Context())
	for name, err := range map[string]error{
		"start": startErr, "freeze": freezeErr, "thaw": thawErr, "kill": r.Kill(t.Context(), 0), "exit": r.Exit(t.Context(), 0),
	} {
		if !errors.Is(err, errWrongAnswer) {
			t.Errorf("%s: %v, want %v", name, err, errWrongAnswer)
		}
	}
}

// TestBadPeersAreDropped: what opens the connection wrongly, or goes on wrongly, is dropped, and the next one is let in.
func TestBadPeersAreDropped(t *testing.T) {
	hello := `{"hello":{"version":1}}` + "\n" + `{"session":{}}` + "\n"
	for name, test := range map[string]struct {
		text string
		want string // in Lost
	}{
		"ends at once":    {"", "read hello"},
		"garbage":         {"GET / HTTP/1.1\n", "read hello: decode event"},
		"not a hello":     {`{"signal":{"name":"x"}}` + "\n", "opens with something else"},
		"other version":   {`{"hello":{"version":2}}` + "\n", "speaks version 2, want 1"},
		"line too long":   {strings.Repeat("x", protocol.MaxRunnerLine+1) + "\n", "a line is longer"},
		"hello twice":     {hello + hello, "opened the connection twice"},
		"garbage later":   {hello + "{\n", "decode event"},
		"two things":      {hello + `{"exited":{"start":1},"signal":{"name":"x"}}` + "\n", "it tells 2 things"},
		"nothing":         {hello + `{"id":3}` + "\n", "it tells 0 things"},
		"answer, no id":   {hello + `{"frozen":{}}` + "\n", "an answer without an id"},
		"news with an id": {hello + `{"id":3,"exited":{"start":1}}` + "\n", "answers nothing"},
	} {
		r, path := listening(t)
		conn := dial(t, path)
		_, _ = io.WriteString(conn.lines.conn, test.text)
		_ = conn.lines.conn.(*net.UnixConn).CloseWrite()
		e := next(t, r)
		if e.Connected != nil {
			e = next(t, r)
		}
		if e.Lost == nil || !strings.Contains(e.Lost.Error(), test.want) {
			t.Errorf("%s: event = %+v, want Lost with %q", name, e, test.want)
		}
		greet(t, r, path, protocol.RunnerHello{})
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "file"):                   "is in the way and is not a socket",
		filepath.Join(dir, strings.Repeat("x", 200)): "is too long",
		filepath.Join(dir, "nope", "s"):              "no such file or directory",
	} {
		if _, err := Listen(path, &memory{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listen(%q) = %v, want %q", path, err, want)
		}
	}
}

func TestListenTakesOverAStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	r, err := Listen(path, &memory{})
	if err != nil {
		t.Fatal(err)
	}
	greet(t, r, path, protocol.RunnerHello{})
	_ = r.Close()
}

func TestClose(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	_ = r.Close()
	_ = r.Close()
	if _, err := conn.Receive(); err == nil {
		t.Error("the runner's end is still open")
	}
	if _, err := r.Thaw(t.Context()); !errors.Is(err, ErrDisconnected) {
		t.Errorf("Thaw = %v, want %v", err, ErrDisconnected)
	}
	for range r.Events() { // until it is closed
	}
	idle, path := listening(t)
	_ = idle.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestLongestLine(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	play(t, conn, func(c protocol.RunnerCommand) protocol.RunnerEvent {
		return protocol.RunnerEvent{Input: &protocol.RunnerInputAck{Delivered: true}}
	})
	frame := len(`{"id":1,"input":{"line":""}}`) + 1
	if _, err := r.Input(t.Context(), strings.Repeat("x", protocol.MaxRunnerLine-frame)); err != nil {
		t.Errorf("the longest line: %v", err)
	}
	if _, err := r.Input(t.Context(), strings.Repeat("x", protocol.MaxRunnerLine)); !errors.Is(err, errLineTooLong) {
		t.Errorf("a longer line: %v, want %v", err, errLineTooLong)
	}
	if _, err := r.Input(t.Context(), "x"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":1,"start":{"argv":["sh"],"dir":"/"}}`))
	f.Add([]byte(`{"id":2,"freeze":{"timeout":1,"limit":2}}`))
	f.Add([]byte(`{"id":3,"thaw":{}}`))
	f.Add([]byte(`{"id":3,"exit":{"code":1},"input":{"line":"x"}}`))
	f.Add([]byte(`{"hello":{"version":1,"running":4,"lastExit":{"start":3,"code":1}}}`))
	f.Add([]byte(`{"id":5,"error":"no"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if command, err := decodeCommand(line); err == nil {
			again, err := decodeCommand(encode(t, command))
			if diff := cmp.Diff(command, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("command changes on its way: %v\n%s", err, diff)
			}
		}
		if event, err := decodeEvent(line); err == nil {
			again, err := decodeEvent(encode(t, event))
			if diff := cmp.Diff(event, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("event changes on its way: %v\n%s", err, diff)
			}
		}
	})
}

func encode(t *testing.T, message any) []byte {
	t.Helper()
	line, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

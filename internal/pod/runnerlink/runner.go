// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var (
	// ErrDisconnected is returned when no runner is connected: nothing was sent.
	ErrDisconnected = errors.New("no runner is connected")
	// ErrLost is returned when the connection broke before the answer came: it is unknown whether the runner carried out the command, and the
	// next Hello reports its state.
	ErrLost = errors.New("the connection to the runner broke before it answered")
)

// RefusedError is the runner's answer that it could not carry out a command, for example because the program does not exist.
type RefusedError struct {
	// Reason is a sentence for users. BadCommand: it is the fault of the program that a start names.
	Reason     string
	BadCommand bool
}

// Error implements error.
func (e *RefusedError) Error() string { return "runner: " + e.Reason }

// Event is an event of the runner that does not answer a command. Exactly one field is set.
type Event struct {
	// Connected opens every connection. When it says Frozen, the agent stays stopped until Thaw.
	Connected *protocol.RunnerHello
	// Lost is why the connection broke, or could not be accepted; the watchdog's end already listens again.
	Lost error
	// Exited says that the agent's own process ended; processes that it left behind may still run.
	Exited *protocol.RunnerExited
	// Signal says that the container received a signal to end.
	Signal *protocol.RunnerSignal
	// Thawed says that the limit of a freeze has passed.
	Thawed *protocol.RunnerThawed
	// Understood says that the agent acknowledges rules that it broke.
	Understood *protocol.RunnerUnderstood
}

// Runner is the watchdog's end of the link. Its methods are safe for concurrent use; each waits for the runner's
// answer, for the connection to break (ErrLost) or for its context.
type Runner struct {
	path   string
	memory NonceStore
	// nonce of the runner's session, empty before a runner has taken it; serve's own.
	nonce  string
	events *queue
	done   chan struct{} // closed when serve has returned

	mu       sync.Mutex
	closed   bool
	closing  func()   // ends what serve waits for; nil while it waits for nothing
	session  *session // nil while no runner is connected
	nextID   int64
	closeOne sync.Once
}

// NonceStore keeps the nonce of the session with the runner where the agent cannot read it, so that a restarted watchdog recognises its runner.
type NonceStore interface {
	// Nonce that was kept; empty before the first.
	Nonce() (string, error)
	// Keep is durable when it returns.
	Keep(nonce string) error
}

// Listen waits for a runner at a socket path, which must be in a directory that the agent cannot write. It returns once
// the socket is there. The first event is Connected.
//
// Listen trusts the very first runner: no agent has been started. From then on it trusts only that runner.
func Listen(path string, memory NonceStore) (*Runner, error) {
	nonce, err := memory.Nonce()
	if err != nil {
		return nil, fmt.Errorf("recall the session with the runner: %w", err)
	}
	listener, err := listen(path)
	if err != nil {
		return nil, err
	}
	r := &Runner{path: path, memory: memory, nonce: nonce, events: newQueue(), done: make(chan struct{}), nextID: 1}
	r.closing = func() { _ = listener.Close() }
	go r.serve(listener)
	return r, nil
}

// Events delivers the events of the runner, in their sequence and without loss. Close closes it.
func (r *Runner) Events() <-chan Event { return r.events.out }

// Close breaks the connection, which stops the agent's processes until another watchdog thaws them, and removes the socket.
func (r *Runner) Close() error {
	r.closeOne.Do(func() {
		r.mu.Lock()
		r.closed = true
		if r.closing != nil {
			r.closing()
		}
		r.mu.Unlock()
		<-r.done
		r.events.close()
	})
	return nil
}

// Start starts the agent and returns the ID that Exited and Hello will name it by.
func (r *Runner) Start(ctx context.Context, start protocol.RunnerStart) (int64, protocol.RunnerStarted, error) {
	id, answer, err := r.call(ctx, protocol.RunnerCommand{Start: &start})
	if err == nil && answer.Started == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return id, protocol.RunnerStarted{}, fmt.Errorf("start agent: %w", err)
	}
	return id, *answer.Started, nil
}

// Freeze stops every process of the agent's container. If the context ends first, the freeze may still come about: Thaw
// is then due, or the limit ends it.
func (r *Runner) Freeze(ctx context.Context, freeze protocol.RunnerFreeze) (protocol.RunnerFrozen, error) {
	_, answer, err := r.call(ctx, protocol.RunnerCommand{Freeze: &freeze})
	if err == nil && answer.Frozen == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return protocol.RunnerFrozen{}, fmt.Errorf("freeze agent: %w", err)
	}
	return *answer.Frozen, nil
}

// Thaw lets the processes continue, except for the ones that the agent itself had stopped before. It is not an error to thaw what is not frozen.
func (r *Runner) Thaw(ctx context.Context) (protocol.RunnerThawed, error) {
	_, answer, err := r.call(ctx, protocol.RunnerCommand{Thaw: &struct{}{}})
	if err == nil && answer.Thawed == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return protocol.RunnerThawed{}, fmt.Errorf("thaw agent: %w", err)
	}
	return *answer.Thawed, nil
}

// Kill ends every process of the agent's container, frozen or not, and returns when none is left. Exited also reports the agent's own end.
func (r *Runner) Kill(ctx context.Context, grace time.Duration) error {
	_, answer, err := r.call(ctx, protocol.RunnerCommand{Kill: &protocol.RunnerKill{Grace: grace}})
	if err == nil && answer.Killed == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return fmt.Errorf("kill agent: %w", err)
	}
	return nil
}

// Input writes one line to the agent's standard input. False means that the runner dropped it: the agent does not read, or none is running.
func (r *Runner) Input(ctx context.Context, line string) (bool, error) {
	_, answer, err := r.call(ctx, protocol.RunnerCommand{Input: &protocol.RunnerInput{Line: line}})
	if err == nil && answer.Input == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return false, fmt.Errorf("write agent's input: %w", err)
	}
	return answer.Input.Delivered, nil
}

// Pulse returns signs of activity in the agent's container.
func (r *Runner) Pulse(ctx context.Context) (protocol.RunnerPulse, error) {
	_, answer, err := r.call(ctx, protocol.RunnerCommand{Pulse: &struct{}{}})
	if err == nil && answer.Pulse == nil {
		err = errWrongAnswer
	}
	if err != nil {
		return protocol.RunnerPulse{}, fmt.Errorf("take the agent's pulse: %w", err)
	}
	return *answer.Pulse, nil
}

// Exit ends the runner and its container with a code from 0 to 255. It returns when the connection has ended.
func (r *Runner) Exit(ctx context.Context, code int) error {
	_, _, err := r.call(ctx, protocol.RunnerCommand{Exit: &protocol.RunnerExitNow{Code: code}})
	switch {
	case errors.Is(err, ErrLost):
		return nil // the runner is gone: that is the answer
	case err == nil:
		err = errWrongAnswer
	}
	return fmt.Errorf("end runner: %w", err)
}

var errWrongAnswer = errors.New("the runner's answer does not fit the command")

// call sends a command and waits for its answer.
func (r *Runner) call(ctx context.Context, command protocol.RunnerCommand) (int64, protocol.RunnerEvent, error) {
	r.mu.Lock()
	s := r.session
	if s == nil {
		r.mu.Unlock()
		return 0, protocol.RunnerEvent{}, ErrDisconnected
	}
	command.ID = r.nextID
	r.nextID++
	r.mu.Unlock()

	answers := s.expect(command.ID)
	defer s.forget(command.ID)
	if err := s.lines.write(command); err != nil {
		if errors.Is(err, errLineTooLong) {
			return command.ID, protocol.RunnerEvent{}, err // nothing was sent
		}
		_ = s.lines.conn.Close()
		return command.ID, protocol.RunnerEvent{}, fmt.Errorf("%w: %w", ErrLost, err)
	}
	select {
	case answer := <-answers:
		return command.ID, answer, refusal(answer)
	case <-ctx.Done():
		return command.ID, protocol.RunnerEvent{}, ctx.Err()
	case <-s.ended:
	}
	select {
	case answer := <-answers: // it was the last thing that came
		return command.ID, answer, refusal(answer)
	default:
		return command.ID, protocol.RunnerEvent{}, ErrLost
	}
}

// refusal turns the runner's no into an error.
func refusal(answer protocol.RunnerEvent) error {
	if answer.Error != "" {
		return &RefusedError{Reason: answer.Error, BadCommand: answer.BadCommand}
	}
	return nil
}

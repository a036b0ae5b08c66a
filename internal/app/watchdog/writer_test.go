// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// pipe is the standard input of a process, which takes what it is given, or hangs until it is released.
type pipe struct {
	hangs   chan struct{} // nil for one that does not
	process atomic.Int64  // 0 while there is none
	inside  atomic.Int64

	mu    sync.Mutex
	lines []string // that were tried
}

func (p *pipe) input(ctx context.Context, line string) (bool, error) {
	if p.inside.Add(1) > 1 {
		panic("two write at the same time")
	}
	defer p.inside.Add(-1)
	if p.hangs != nil {
		select {
		case <-p.hangs:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	process := p.process.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf("%d<%s", process, line))
	return process != 0, nil
}

func (p *pipe) tried() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, " ")
}

// writing is a writer that writes to a pipe, and the loop that it is of. Stop ends it, and waits.
func writing(t *testing.T, p *pipe) (l *loop, w *writer, stop func()) {
	t.Helper()
	l = atWork(t)
	w = l.acts.teller.writer
	w.input = p.input
	p.process.Store(1)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
		w.drain(ctx)
	}
	t.Cleanup(stop)
	return l, w, stop
}

// answers of a writer, each "line taken".
type answers struct {
	mu   sync.Mutex
	all  []string
	done sync.WaitGroup
}

func (a *answers) message(lines ...string) message {
	a.done.Add(1)
	return message{lines: lines, answered: func(i int, taken bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, fmt.Sprint(lines[i], " ", taken))
		if !taken || i == len(lines)-1 {
			a.done.Done()
		}
	}}
}

// TestLinesOfSeveralKeepTheirOrder: those of each who hands some over, and messages stay together.
func TestLinesOfSeveralKeepTheirOrder(t *testing.T) {
	p := &pipe{}
	_, w, _ := writing(t, p)
	var a answers
	var speakers sync.WaitGroup
	const many, each = 4, 20
	for s := range many {
		speakers.Go(func() {
			for n := range each {
				w.hand(a.message(fmt.Sprintf("%d/%02d/a", s, n), fmt.Sprintf("%d/%02d/b", s, n)))
			}
		})
	}
	speakers.Wait()
	a.done.Wait()
	tried := strings.Fields(p.tried())
	if len(tried) != 2*many*each {
		t.Fatalf("%d lines", len(tried))
	}
	for i := 0; i < len(tried); i += 2 {
		if tried[i+1] != strings.TrimSuffix(tried[i], "a")+"b" {
			t.Errorf("%s is followed by %s", tried[i], tried[i+1])
		}
	}
	for s := range many {
		mine := slices.DeleteFunc(slices.Clone(tried), func(line string) bool { return !strings.HasPrefix(line, fmt.Sprintf("1<%d/", s)) })
		if !slices.IsSorted(mine) || len(mine) != 2*each {
			t.Errorf("lines of %d: %q", s, mine)
		}
	}
}

// TestAMessageEndsWhereALineIsNotTaken: what comes after it in the same message is not written, and another message is.
func TestAMessageEndsWhereALineIsNotTaken(t *testing.T) {
	p := &pipe{}
	_, w, _ := writing(t, p)
	var a answers
	w.hand(a.message("one"))
	a.done.Wait()
	p.process.Store(0)
	w.hand(a.message("two", "three"))
	w.hand(a.message("four"))
	a.done.Wait()
	if got, want := p.tried(), "1<one 0<two 0<four"; got != want {
		t.Errorf("tried %q, want %q", got, want)
	}
	if want := []string{"one true", "two false", "four false"}; !slices.Equal(a.all, want) {
		t.Errorf("answered %q, want %q", a.all, want)
	}
}

// TestAWriterThatHangs blocks nobody: who hands over waits for nothing, each line waits as long as if it was alone, and what is too much is not
// taken. The loop goes on meanwhile.
func TestAWriterThatHangs(t *testing.T) {
	p := &pipe{hangs: make(chan struct{})}
	l, w, _ := writing(t, p)
	w.within = 2 * time.Second
	var a answers
	begun := time.Now()
	l.after(t.Context(), supervise.CalledOff{}) // a line of steering, and a directive
	for n := range 40 {
		w.hand(a.message(fmt.Sprint("line ", n), "and more"))
	}
	if took := time.Since(begun); took >= w.within {
		t.Errorf("handing over took %s", took)
	}
	a.done.Wait()
	if took := time.Since(begun); took < w.within/2 || took > 20*w.within {
		t.Errorf("40 lines took %s, and one may take %s", took, w.within)
	}
	for n, got := range a.all {
		if want := fmt.Sprintf("line %d false", n); got != want {
			t.Errorf("answered %q, want %q", got, want)
		}
	}
	close(p.hangs)
	w.hand(a.message("later"))
	a.done.Wait()
	if got := p.tried(); got != "1<later" {
		t.Errorf("tried %q", got)
	}
}

// TestTooManyMessages: those beyond the bound are not taken, and that is said at once and journaled.
func TestTooManyMessages(t *testing.T) {
	l := atWork(t) // nobody writes
	w := l.acts.teller.writer
	var a answers
	for range maxMessages {
		w.hand(a.message("waits"))
	}
	w.hand(a.message("one more"))
	if want := []string{"one more false"}; !slices.Equal(a.all, want) {
		t.Errorf("answered %q", a.all)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.drain(ended)
	a.done.Wait()
	if len(a.all) != maxMessages+1 || slices.Contains(a.all, "waits true") {
		t.Errorf("%d answers", len(a.all))
	}
}

// TestAWriterIsEndedWhileLinesWait: the one that is under way, and those behind it, are not taken, and none is forgotten.
func TestAWriterIsEndedWhileLinesWait(t *testing.T) {
	p := &pipe{hangs: make(chan struct{})}
	_, w, stop := writing(t, p)
	var a answers
	for n := range 3 {
		w.hand(a.message(fmt.Sprint("line ", n)))
	}
	stop()
	a.done.Wait()
	if want := []string{"line 0 false", "line 1 false", "line 2 false"}; !slices.Equal(a.all, want) || p.tried() != "" {
		t.Errorf("answered %q, tried %q", a.all, p.tried())
	}
}

// TestNothingIsLeftOfALoop that has ended: no goroutine, and no line whose fate nobody hears of.
func TestNothingIsLeftOfALoop(t *testing.T) {
	l := atWork(t)
	before := runtime.NumGoroutine()
	p := &pipe{hangs: make(chan struct{})}
	w := l.acts.teller.writer
	w.input = p.input
	var a answers
	for n := range 3 {
		w.hand(a.message(fmt.Sprint("line ", n)))
	}
	l.state.Doing = supervise.Finish // an act is under way
	gone := errors.New("gone")
	l.crashed <- gone
	if err := l.run(t.Context()); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	a.done.Wait()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines more:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestEachProcessHasItsOwnLines: a process that ends while lines wait leaves none to the next one, whose start waits for the writer.
func TestEachProcessHasItsOwnLines(t *testing.T) {
	p := &pipe{hangs: make(chan struct{})}
	l, w, _ := writing(t, p)
	if err := l.attempt.journal.Note(journal.Record{TaskEnded: &journal.TaskEnded{Name: "form"}}); err != nil {
		t.Fatal(err)
	}
	var a answers
	for n := range 3 {
		w.hand(a.message(fmt.Sprint("line", n)))
	}
	p.process.Store(0)
	started := make(chan error, 1)
	go func() { // the runner is not there: the start is given up once it was tried
		e, err := l.acts.start(t.Context(), l.latest, "form", "Fix it.")
		if _, is := e.(supervise.CalledOff); !is {
			err = errors.Join(err, fmt.Errorf("%T", e))
		}
		p.process.Store(2)
		started <- err
	}()
	select {
	case err := <-started:
		t.Fatalf("the agent is started while lines wait: %v", err)
	case <-time.After(2 * retryLink):
	}
	close(p.hangs)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	w.hand(a.message("next"))
	a.done.Wait()
	if got, want := p.tried(), "0<line0 0<line1 0<line2 2<next"; got != want {
		t.Errorf("tried %q, want %q", got, want)
	}
}

// TestAStartDoesNotWaitForAWriterForEver: its context ends it.
func TestAStartDoesNotWaitForAWriterForEver(t *testing.T) {
	w := atWork(t).acts.teller.writer // nobody writes
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for len(w.messages) < cap(w.messages) {
		w.messages <- message{}
	}
	if err := w.flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/engine"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// events writes files at a steady rate and sees that an engine follows all of it, and what that costs.
func events(t *testing.T, s scale, b *board.Board) {
	p := newPlace(t, s.featureFiles, filesInDir)
	e := p.process()
	type load struct{ rate, seconds int }
	loads, calm := []load{{10_000, 30}, {20_000, 5}}, load{500, 3}
	if !s.full {
		loads, calm = []load{{200, 1}}, load{100, 1}
	}
	for _, load := range loads {
		before := e.look()
		written, took := p.churn(load.rate, load.rate*load.seconds)
		after := e.settled(written)
		name := fmt.Sprintf("rate=%s/seconds=%d", short(load.rate), load.seconds)
		b.Figure("events-rate/"+name, float64(load.rate*load.seconds)/took.Seconds(), "/s", board.AtLeast(0.95*float64(load.rate)))
		b.Figure("events-lost/"+name, float64(written-after.Changed)+float64(after.Lost-before.Lost), "", board.AtMost(0))
		b.Figure("events-cpu/"+name, 100*(after.CPU-before.CPU).Seconds()/took.Seconds(), "%", board.Bound{})
		e.capture()
	}
	var shares []time.Duration // of a second
	for range s.runs {
		before := e.look()
		_, took := p.churn(calm.rate, calm.rate*calm.seconds)
		shares = append(shares, time.Duration(float64(e.look().CPU-before.CPU)/took.Seconds()))
		e.capture()
	}
	b.Figure(fmt.Sprintf("events-cpu/rate=%d", calm.rate), 100*board.Median(shares).Seconds(), "%", board.AtMost(2))
	changes := p.files
	if s.full {
		changes = 500
	}
	delays, naps := e.delays(changes)
	for _, q := range []struct {
		name  string
		at    float64
		limit board.Bound
	}{{"p50", 0.5, board.Bound{}}, {"p99", 0.99, board.AtMost(float64(protocol.EventDelay.Milliseconds()))}} {
		b.Beside(fmt.Sprintf("event-delay-%s/changes=%d", q.name, changes), board.Quantile(delays, q.at), board.Quantile(naps, q.at), q.limit)
	}
	e.judge()
	b.Figure("descriptors/files="+short(p.files), float64(e.descriptors()), "", board.AtMost(protocol.WatchdogDescriptors))
}

// delays changes one file after the other: every second one as soon as the engine knows of the one before, when its reader has just gone to sleep, the others
// when it waits for an event. It gives how long each took to be known, what it takes to ask included, and how long the machine takes for a sleep like the
// reader's.
func (e *process) delays(changes int) (delays, naps []time.Duration) {
	const (
		nap   = 20 * time.Millisecond  // as the reader's
		pause = 200 * time.Microsecond // asking takes the processor from who is asked
	)
	e.capture()
	known := e.look().Changed
	for n := range changes {
		began := time.Now()
		e.p.touch(n)
		now := e.look().Changed
		for ; now == known; now = e.look().Changed {
			time.Sleep(pause)
		}
		delays = append(delays, time.Since(began))
		known = now
		if n%2 == 0 {
			began = time.Now()
			time.Sleep(nap)
			naps = append(naps, time.Since(began))
		}
	}
	return delays, naps
}

// settled waits until the engine has followed so many changed paths, or makes no more progress.
func (e *process) settled(changed int) engine.Sight {
	for last := (engine.Sight{Changed: -1}); ; {
		now := e.look()
		if now.Changed >= changed || now.Changed == last.Changed {
			return now
		}
		last = now
		time.Sleep(engine.Glance)
	}
}

// touch changes the beginning of a file, for as little of the machine's time as possible.
func (p *place) touch(n int) {
	fd, err := unix.Open(p.path(n%p.files), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	p.do(err)
	_, err = unix.Write(fd, strconv.AppendInt(nil, int64(n), 10))
	p.do(errors.Join(err, unix.Close(fd)))
}

// churn writes files one after the other at a rate, so many times in all. It gives the number of different files.
func (p *place) churn(rate, writes int) (different int, took time.Duration) {
	p.round++
	const batch = 10 * time.Millisecond
	perBatch := max(1, int(float64(rate)*batch.Seconds()))
	began := time.Now()
	for n := 0; n < writes; {
		for range min(perBatch, writes-n) {
			p.touch(n)
			n++
		}
		time.Sleep(time.Until(began.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))))
	}
	return min(writes, p.files), time.Since(began)
}

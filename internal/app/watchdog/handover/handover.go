// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handover sends to the gateway's ledger what checkpoints have changed, how the watchdog has steered the agent, and what happened in
// the Feature: each once, in their sequence, in the background. An unreachable gateway only delays it: what the gateway has not taken stays in the journal and the
// chain.
package handover

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/changes"
	"github.com/tidewaiter/tidewaiter/internal/core/history"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

const (
	// firstPause before the gateway is tried again; it doubles up to lastPause.
	firstPause, lastPause = 500 * time.Millisecond, time.Minute
	// makeTime bounds the making of what is handed over.
	makeTime = 2 * time.Minute
	// makeTries is how often that is tried before the gateway gets what is known without the repository.
	makeTries = 3
	// large is a patch whose memory is given back at once, in bytes.
	large = 128 << 10
)

// Options of a Service.
type Options struct {
	Dir     trusted.Dir
	Journal *trusted.Journal
	// Repository of the checkpoints; nil if there is none yet.
	Repository *git.Repository
	// Send sends the gateway something in gzip, at a path; nil turns the service off. ErrRefused is wrapped if it does not help to try again.
	Send  func(ctx context.Context, path string, packed []byte) error
	Log   *slog.Logger
	Probe steps.Probe
}

// ErrRefused of Send: the gateway never takes this.
var ErrRefused = errors.New("the gateway refuses it")

// Service hands over what one attempt knows of.
type Service struct {
	Options
	queue *queue
	maker *changes.Maker
	// zipper is used again, because a new one takes almost a megabyte and most records have a few hundred bytes.
	zipper *gzip.Writer
	// less tells that the gateway has taken something.
	less chan struct{}
}

// New service. What the gateway lacks of earlier processes is handed over first.
func New(o Options) *Service {
	mark, err := readMark(o.Dir)
	if err != nil { // the gateway knows what it has
		o.Log.Warn("Handing over all checkpoints, all steps of steering and the whole history to the gateway again", "error", err.Error())
	}
	s := &Service{Options: o, queue: newQueue(o.Dir, mark), less: make(chan struct{}, 1)}
	o.Journal.Watch(func(now journal.State) trusted.Watcher {
		teller := history.NewTeller(now)
		return func(position int64, after journal.State, r journal.Record) {
			for _, e := range told(teller, position, after, r) {
				s.queue.add(e)
			}
		}
	})
	return s
}

// Taken says that a checkpoint was carried out. It does not block.
func (s *Service) Taken(i journal.Intent) {
	base := ""
	if b := s.Journal.State().Base; b != nil {
		base = b.Commit
	}
	s.queue.add(entryOf(i, base))
}

// Steered says that a step of steering is in the journal. It does not block.
func (s *Service) Steered(x protocol.SteeringStep) { s.queue.add(entry{steering: &x}) }

// Serve hands over until the context ends, or a probe ends the process.
func (s *Service) Serve(ctx context.Context) error {
	if s.Repository == nil || s.Send == nil {
		return nil
	}
	for ctx.Err() == nil {
		e, is, err := s.queue.next()
		switch {
		case err != nil:
			s.Log.WarnContext(ctx, "Cannot read from the journal what the gateway's ledger lacks", "error", err.Error())
			steps.Pause(ctx, lastPause)
		case is:
			if err := s.hand(ctx, e); err != nil && ctx.Err() == nil {
				return err
			}
			s.tell()
		default:
			s.tell()
			select {
			case <-s.queue.ready:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func (s *Service) tell() {
	select {
	case s.less <- struct{}{}:
	default:
	}
}

// Drained returns when the gateway has all that is known, or the context ends. Then it says so in the log: nothing is lost.
func (s *Service) Drained(ctx context.Context) {
	if s.Repository == nil || s.Send == nil {
		return
	}
	for {
		waiting, known := s.queue.waiting()
		if !waiting {
			return
		}
		select {
		case <-s.less:
		case <-ctx.Done():
			s.Log.WarnContext(ctx, "The gateway's ledger lacks diffs, file events, steps of steering or a part of the history; they stay in the trusted volume, and the next attempt hands them over", "records", known)
			return
		}
	}
}

// hand over one entry, and note it.
func (s *Service) hand(ctx context.Context, e entry) error {
	path, packed, err := s.pack(ctx, e)
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.Send(ctx, path, packed)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrRefused) {
			s.Log.ErrorContext(ctx, "The gateway's ledger does not take a record; it stays in the trusted volume", "record", e.String(), "error", err.Error())
			break
		}
		s.Log.WarnContext(ctx, "A record waits for the gateway's ledger", "record", e.String(), "error", err.Error(), "again", pause.String())
		steps.Pause(ctx, pause)
	}
	handed, noted := "handed over", "handover noted"
	if e.history != nil {
		handed, noted = "history handed over", "history noted"
	}
	if err := s.Probe.After(handed); err != nil {
		return err
	}
	if err := s.queue.taken(e); err != nil {
		s.Log.WarnContext(ctx, "Handing over a record again later", "record", e.String(), "error", err.Error())
		steps.Pause(ctx, lastPause)
		return nil
	}
	return s.Probe.After(noted)
}

// pack an entry, and say where the gateway takes it.
func (s *Service) pack(ctx context.Context, e entry) (path string, packed []byte, err error) {
	if e.steering != nil {
		packed, err = s.zip(redacted.Document(*e.steering))
		return protocol.SteeringPath, packed, err
	}
	if e.history != nil {
		packed, err = s.zip(redacted.Document(*e.history))
		return protocol.HistoryPath, packed, err
	}
	packed, err = s.changed(ctx, e)
	return protocol.ChangesPath, packed, err
}

// changed packs what a checkpoint has changed. If the repository does not say it, the journal's record has to do.
func (s *Service) changed(ctx context.Context, e entry) ([]byte, error) {
	c := protocol.Changes{Checkpoint: e.sequence, Previous: e.previous, At: e.at, Task: e.task, Verdict: e.verdict, Action: e.action}
	if e.from != e.to {
		err := errors.New("not tried")
		for try := 0; try < makeTries && err != nil; try++ {
			if try > 0 && !steps.Pause(ctx, firstPause) {
				return nil, ctx.Err()
			}
			err = s.compare(ctx, e, &c)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.Log.WarnContext(ctx, "Cannot make the diff of a checkpoint", "checkpoint", e.sequence, "error", err.Error())
			c.Listed, c.Patch, c.Missing = nil, "", "cannot make the diff: "+plain.CutBytes(err.Error(), 256)
			c = redacted.Document(c) // an error may name files
		}
	}
	packed, err := s.zip(c)
	if len(c.Patch) > large {
		c = protocol.Changes{}
		s.zipper = nil
		debug.FreeOSMemory() // the next checkpoint need not wait for it
	}
	return packed, err
}

// zip packs a document with gzip.
func (s *Service) zip(document any) ([]byte, error) {
	var packed bytes.Buffer
	if s.zipper == nil {
		s.zipper = gzip.NewWriter(&packed)
	}
	w := s.zipper
	w.Reset(&packed)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // it is not a page, and would have three times the bytes
	err := errors.Join(encoder.Encode(document), w.Close())
	return packed.Bytes(), err
}

// compare the trees of a checkpoint and the one before.
func (s *Service) compare(ctx context.Context, e entry, c *protocol.Changes) error {
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	from, err := objects.ParseID(e.from)
	if err != nil {
		return err
	}
	to, err := objects.ParseID(e.to)
	if err != nil {
		return err
	}
	aside := git.NewAside(s.Repository)
	defer func() { _ = aside.Close() }()
	list, total, err := aside.Outline(ctx, from, to, protocol.MaxListed)
	if err != nil {
		return err
	}
	if s.maker == nil {
		s.maker = changes.NewMaker()
	}
	c.Files = int64(total)
	if c.Listed, err = s.maker.Names(ctx, list); err != nil {
		return err
	}
	return aside.Patch(ctx, from, to, changes.MaxFile, func(in *bufio.Reader) (err error) {
		c.Patch, c.Missing, err = s.maker.Patch(ctx, in, Contents(aside))
		return err
	})
}

// Contents of files in the repository, for changes.Maker.
func Contents(aside *git.Aside) changes.Contents {
	return func(ctx context.Context, id string) ([]byte, error) {
		parsed, err := objects.ParseID(id)
		if err != nil {
			return nil, err
		}
		text, err := aside.Content(ctx, parsed, changes.MaxFile)
		switch {
		case errors.Is(err, git.ErrTooLarge):
			return nil, errors.Join(changes.ErrTooLarge, err)
		case errors.Is(err, git.ErrNoObject): // the commit of a submodule: Git shows its ID and nothing else
			return nil, nil
		}
		return text, err
	}
}

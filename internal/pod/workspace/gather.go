// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// readTries is how often a file that moves is read again within one look.
	readTries = 3
	// gathered files are read at once, each of at most maxGathered bytes; larger ones go into the pack one after the other.
	gathered    = 128
	maxGathered = 64 << 10
	// perReader is how many files make another reader worth its start.
	perReader = 8
	// maxFresh and maxFreshBytes bound what was read and is not in the pack yet.
	maxFresh      = 8 << 10
	maxFreshBytes = 4 << 20
)

// errBudget says that more was to be read than the limits allow, before a scan has counted it.
var errBudget = errors.New("more to read than the limits allow")

// reading is one path that is read.
type reading struct {
	path string
	// If captured is true, old is the known state of a captured file: the only question is whether it is still a file, and
	// its content if it has changed or may have. The answer errElse calls for a closer look, errSame for nothing.
	captured bool
	old      node

	content content
	// data is the content of a file that is not in the pack yet.
	data []byte
	// clock of file systems before it was read.
	clock int64
	err   error
}

// gather reads paths, several at once. What comes of it is absorbed later, since an agent may wait frozen meanwhile; some
// is absorbed at once when there is much of it.
func (c *capture) gather(wanted []reading) error {
	for len(wanted) > 0 {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if c.budget > 0 && c.spent > c.budget {
			return errBudget
		}
		n := min(len(wanted), gathered)
		batch := wanted[:n]
		wanted = wanted[n:]
		c.reader.fetchAll(batch)
		for i := range batch {
			if err := c.collect(&batch[i]); err != nil {
				return err
			}
		}
		if len(c.fresh) >= maxFresh || c.freshBytes >= maxFreshBytes {
			if err := c.absorb(); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect keeps one reading until it is absorbed, or notes that its path calls for a closer look.
func (c *capture) collect(r *reading) error {
	if errors.Is(r.err, errLarge) {
		c.reader.stream(r)
	}
	switch {
	case errors.Is(r.err, objects.ErrWrite):
		return fmt.Errorf("capture: %w", r.err)
	case r.captured && errors.Is(r.err, errSame):
	case r.captured && r.err != nil:
		c.closer = append(c.closer, r.path)
	default:
		c.spent += r.content.sig.size
		c.fresh = append(c.fresh, *r)
		c.freshBytes += len(r.data)
		r.data = nil
	}
	return nil
}

// fetchAll reads small files and links with as many readers as there are processors and files to keep them busy.
func (r reader) fetchAll(all []reading) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
			r.fetch(&all[i])
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)/perReader) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// absorb takes what was gathered into the tree and into what is known, and counts in moved how much of it differs from what
// this capture had of it.
func (c *capture) absorb() error {
	for i := range c.fresh {
		changed, err := c.note(&c.fresh[i])
		if err != nil {
			return err
		}
		if changed {
			c.moved++
		}
	}
	clear(c.fresh)
	c.fresh, c.freshBytes = c.fresh[:0], 0
	return nil
}

// note takes one path that was read. Only a failure of the trusted side is an error; what cannot be read stays marked unread
// and is a problem.
func (c *capture) note(r *reading) (changed bool, err error) {
	switch {
	case errors.Is(r.err, errTooLarge):
		c.setMark(r.path, outside)
		c.lose(r.path)
		return true, nil
	case isDenied(r.err):
		before := c.known.lookup(r.path)
		known := before != nil && before.mark&denied != 0
		c.setMark(r.path, denied)
		return !known, nil
	case r.err != nil:
		// A path that vanished does not matter to a capture that looks once more; the last look must not meet one.
		if c.readProblem == "" {
			c.readProblem = describe(r.path, r.err)
		}
		return true, nil
	}
	got := r.content
	if r.data != nil {
		if err := c.pack.AddNamed(got.entry.ID, objects.KindBlob, r.data); err != nil {
			return false, fmt.Errorf("capture: %w", err)
		}
	}
	if got.writer {
		c.writer = r.path
	}
	if got.uncertain {
		c.uncertain = r.path
	}
	n := r.node()
	c.known = c.known.set(c.owner, r.path, &n)
	before, seen := c.read[r.path]
	c.read[r.path] = got
	c.edits = append(c.edits, objects.Edit{Path: r.path, Entry: &got.entry})
	return !seen || before.entry != got.entry || before.sig != got.sig, nil
}

// node is what is known of a file or link that was read.
func (r *reading) node() node {
	c := &r.content
	n := node{sig: c.sig}
	if c.sig.links > 1 && c.sig.isRegular() {
		n.mark |= linked
	}
	if c.writer || c.uncertain {
		n.mark |= hot
	}
	if c.sig.ctime >= r.clock {
		n.mark |= racy
	}
	return n
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain checks the record of a Feature from its base to its head. The journal, whose lines name each other, says what happened.
// Every checkpoint is a commit whose parent is the checkpoint before it, and which names the journal's last line at that time. Nothing of
// it can be edited, cut, moved or left out without breaking a link.
package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// JournalTrailer begins the line of a checkpoint's message that names the journal's last line by its sum.
const JournalTrailer = "Tidewaiter-Journal: "

// Commit has the parts of a commit that a chain needs.
type Commit struct {
	Tree    string
	Parents []string
	Message string
}

// Repository reads commits and trees. Its errors are DamageErrors if an object is missing or does not match its name; any other error means
// that the check has no result.
type Repository interface {
	// Ref returns the commit that a ref names; empty when there is none.
	Ref(name string) (string, error)
	// Commit reads a commit and checks it against its name.
	Commit(id string) (Commit, error)
	// Tree checks everything in a tree against its name.
	Tree(id string) error
	// Changes lists what differs between two trees that were checked.
	Changes(before, after string) ([]judge.Change, error)
}

// DamageError says that an object is missing or not what its name says.
type DamageError struct{ Reason string }

// Error is the reason.
func (e *DamageError) Error() string { return e.Reason }

// Break is the first link that does not hold.
type Break struct {
	// Link names it: a line of the journal, a checkpoint, a delivery or a ref.
	Link string `json:"link"`
	// Reason in words.
	Reason string `json:"reason"`
}

// Result of a verification.
type Result struct {
	// Whole: every link from base to head holds.
	Whole bool `json:"whole"`
	// Broken is the first link that does not; nil when all do.
	Broken *Break `json:"broken,omitempty"`
	// Lines of the journal that hold, and JournalHead, the sum of the last of them.
	Lines       int    `json:"lines"`
	JournalHead string `json:"journalHead,omitempty"`
	// Dropped checkpoints have lost their content to the policy's budget: their commits hold, and the journal says why.
	Dropped int `json:"dropped,omitempty"`
	// Gaps are their trees, which may be missing.
	Gaps []string `json:"-"`
	// Checkpoints and Deliveries that hold.
	Checkpoints int `json:"checkpoints"`
	Deliveries  int `json:"deliveries"`
	// Base, Head of the chain and Delivered head, as commits.
	Base     string `json:"base,omitempty"`
	Head     string `json:"head,omitempty"`
	Delivery string `json:"delivery,omitempty"`
}

// Verify follows the records from base to head and stops at the first link that does not hold. corrupt is the error at which reading the
// journal stopped, or nil. known is a commit that must be in the chain, because a Checkpoint object recorded it; empty for none. The error
// says why the check has no result.
func Verify(records []journal.Record, corrupt *journal.CorruptError, r Repository, known string) (Result, error) {
	v := walk{repository: r, sums: map[string]bool{"": true}, promoted: map[string]bool{}, chain: map[string]bool{},
		trees: map[int64]string{}, dropped: droppedOf(records)}
	err := v.walk(records)
	if err == nil && corrupt != nil {
		err = broken(fmt.Sprintf("journal line %d", corrupt.Line), corrupt.Reason)
	}
	if err == nil {
		err = v.refs()
	}
	if err == nil && known != "" && !v.chain[known] {
		err = broken("commit "+known, "it was recorded as a checkpoint of this Feature, and the chain does not hold it: "+
			"journal and chain were cut or replaced")
	}
	if b, is := errors.AsType[*breakError](err); is {
		v.result.Broken, err = &b.at, nil
	}
	v.result.Whole = err == nil && v.result.Broken == nil
	return v.result, err
}

// breakError carries a break up.
type breakError struct{ at Break }

// Error names link and reason.
func (e *breakError) Error() string { return e.at.Link + ": " + e.at.Reason }

func broken(link, reason string) error { return &breakError{at: Break{Link: link, Reason: reason}} }

// walk is a verification under way.
type walk struct {
	repository Repository
	state      journal.State
	sums       map[string]bool  // of the lines so far
	chain      map[string]bool  // commits of checkpoints so far
	promoted   map[string]bool  // commits of deliveries so far, the base included
	trees      map[int64]string // of the checkpoints so far, by number
	dropped    map[int64]string // trees of checkpoints whose content a later line says was dropped, by number
	last       int64            // number of the checkpoint before
	result     Result
}

func (w *walk) walk(records []journal.Record) error {
	for i, r := range records {
		line := fmt.Sprintf("journal line %d", i+1)
		if i == 0 && r.Snapshot != nil {
			return broken(line, "the segments of the journal before it are missing")
		}
		next, err := w.state.Apply(r)
		if err != nil {
			return broken(line, err.Error())
		}
		switch {
		case r.Base != nil:
			err = w.base(*r.Base)
		case r.Intent != nil:
			err = w.intent(*r.Intent)
		case r.Done != nil && w.state.Pending != nil:
			err = w.delivery(*w.state.Pending)
		case r.Dropped != nil:
			err = w.gaps(line, *r.Dropped)
		case r.Squashed != nil:
			err = w.squashed(line, *r.Squashed)
		case r.KnowledgeCommitted != nil:
			err = w.knowledge(line, *r.KnowledgeCommitted)
		case r.Delivered != nil && !w.promoted[r.Delivered.Commit]:
			err = broken(line, fmt.Sprintf("commit %s was pushed to %s and was never promoted", r.Delivered.Commit, judge.Escape(r.Delivered.Branch)))
		}
		if err != nil {
			return err
		}
		w.state, w.sums[r.Sum] = next, true
		w.result.Lines, w.result.JournalHead = i+1, r.Sum
	}
	if w.state.Pending != nil { // the crash that left it may have come after the refs moved
		return w.delivery(*w.state.Pending)
	}
	return nil
}

func (w *walk) base(b journal.Base) error {
	w.promoted[b.Commit], w.result.Base, w.result.Delivery = true, b.Commit, b.Commit
	c, err := w.commit("base", b.Commit)
	if err != nil {
		return err
	}
	if c.Tree != b.Tree {
		return broken("base", fmt.Sprintf("commit %s has the tree %s, and the journal has %s", b.Commit, c.Tree, b.Tree))
	}
	return w.tree("base", c.Tree)
}

// intent checks the checkpoint that a record speaks of.
func (w *walk) intent(i journal.Intent) error {
	link := fmt.Sprintf("checkpoint %d", i.Sequence)
	if i.Report.Previous != w.last {
		return broken(link, fmt.Sprintf("its record names checkpoint %d as the one before it, and that is %d", i.Report.Previous, w.last))
	}
	if err := w.checkpoint(link, i); err != nil {
		return err
	}
	w.last = i.Sequence
	w.result.Checkpoints++
	return nil
}

// checkpoint checks a commit of the chain. A checkpoint without a change has no commit of its own.
func (w *walk) checkpoint(link string, i journal.Intent) error {
	if i.Commit == i.OldChain {
		return nil
	}
	parent := i.OldChain
	if parent == "" && w.state.Base != nil {
		parent = w.state.Base.Commit
	}
	c, err := w.linked(link, i.Commit, i.Tree, parent)
	if err != nil {
		return err
	}
	w.trees[i.Sequence] = i.Tree
	if tree, gap := w.dropped[i.Sequence]; !gap || tree != i.Tree {
		if err := w.tree(link, i.Tree); err != nil {
			return err
		}
	}
	if named := trailer(c.Message); !w.sums[named] {
		return broken(link, fmt.Sprintf("commit %s names a line of the journal (%s) that is not before it: somebody wrote the journal again", i.Commit, judge.Escape(named)))
	}
	w.chain[i.Commit], w.result.Head = true, i.Commit
	return nil
}

// delivery checks the commit that an intent promotes, where it promotes one and was not withheld: its tree must have been checked and found
// good, or let through by an audit.
func (w *walk) delivery(i journal.Intent) error {
	if i.Delivery == i.OldDelivery {
		return nil
	}
	link := fmt.Sprintf("delivery of checkpoint %d", i.Sequence)
	if _, err := w.follows(link, i.Delivery, i.Promoted(), i.OldDelivery); err != nil {
		return err
	}
	part := i.Promotes != "" && i.Report.Action == protocol.ActionPartlyPromoted && i.Promotes == i.Restore
	switch {
	case !i.Report.Settled:
		return broken(link, "the watchdog promoted it although it could not hold the workspace still")
	case i.Promotes != "" && !part:
		return broken(link, "it holds another tree than the checkpoint, and is not the valid part of it that the workspace went back to")
	case i.TreeVerdict != protocol.Valid && !i.Report.Audit && !part:
		return broken(link, fmt.Sprintf("it was promoted with the verdict %s", i.TreeVerdict))
	}
	w.promoted[i.Delivery], w.result.Delivery = true, i.Delivery
	w.result.Deliveries++
	return nil
}

// squashed checks the commit that replaces a delivery: its one parent is the base, and its tree was promoted already.
func (w *walk) squashed(link string, q journal.Squashed) error {
	if w.state.Base == nil {
		return broken(link, "the delivery was replaced before there is a base")
	}
	if _, err := w.follows(link, q.Commit, w.state.Promoted.Tree, w.state.Base.Commit); err != nil {
		return err
	}
	w.promoted[q.Commit], w.result.Delivery = true, q.Commit
	return nil
}

// droppedOf lists the checkpoints that lost their content, with their trees.
func droppedOf(records []journal.Record) map[int64]string {
	dropped := map[int64]string{}
	for _, r := range records {
		if r.Dropped != nil {
			for _, c := range r.Dropped.Checkpoints {
				dropped[c.Sequence] = c.Tree
			}
		}
	}
	return dropped
}

// gaps checks what a line says of checkpoints that lost their content: that they were there. What was promoted is not among
// them, because deliveries are checked with all of their content.
func (w *walk) gaps(line string, d journal.Dropped) error {
	for _, c := range d.Checkpoints {
		if tree, known := w.trees[c.Sequence]; !known || tree != c.Tree {
			return broken(line, fmt.Sprintf("it drops the content of checkpoint %d with the tree %s, and there is no such checkpoint before it", c.Sequence, c.Tree))
		}
		w.result.Dropped++
		w.result.Gaps = append(w.result.Gaps, c.Tree)
	}
	return nil
}

// follows checks a commit, its parents and its tree, with everything in that.
func (w *walk) follows(link, id, tree string, parents ...string) (Commit, error) {
	c, err := w.linked(link, id, tree, parents...)
	if err != nil {
		return c, err
	}
	return c, w.tree(link, tree)
}

// linked checks a commit, its parents and which tree it names.
func (w *walk) linked(link, id, tree string, parents ...string) (Commit, error) {
	c, err := w.commit(link, id)
	if err != nil {
		return c, err
	}
	switch {
	case !slices.Equal(c.Parents, parents):
		return c, broken(link, fmt.Sprintf("commit %s follows %s, and the journal has it after %s", id, strings.Join(c.Parents, " and "), strings.Join(parents, " and ")))
	case c.Tree != tree:
		return c, broken(link, fmt.Sprintf("commit %s has the tree %s, and the journal has %s", id, c.Tree, tree))
	}
	return c, nil
}

func (w *walk) commit(link, id string) (Commit, error) {
	c, err := w.repository.Commit(id)
	return c, damaged(link, err)
}

func (w *walk) tree(link, id string) error { return damaged(link, w.repository.Tree(id)) }

// damaged makes a break of a damaged object.
func damaged(link string, err error) error {
	if d, is := errors.AsType[*DamageError](err); is {
		return broken(link, d.Reason)
	}
	return err
}

// refs must be where the journal has them. An intent that was not acted on to its end may have moved them or not.
func (w *walk) refs() error {
	s := w.state
	if s.Base == nil { // being fetched: the refs of base and delivery come before its record
		have, err := w.repository.Ref(protocol.RefChain)
		if err == nil && have != "" {
			err = broken("ref "+protocol.RefChain, fmt.Sprintf("it names %s, and the journal has no base: it was cut", have))
		}
		return damaged("ref "+protocol.RefChain, err)
	}
	pending := journal.Intent{Commit: s.Chain.Commit, Delivery: s.Promoted.Commit}
	if s.Pending != nil {
		pending = *s.Pending
	}
	if q := s.Squashed; q != nil && s.Pending == nil {
		pending.Delivery = q.Old
	}
	for _, r := range []struct{ name, want, or string }{
		{protocol.RefBase, s.Base.Commit, s.Base.Commit},
		{protocol.RefChain, s.Chain.Commit, pending.Commit},
		{protocol.RefDelivery, s.Promoted.Commit, pending.Delivery},
	} {
		have, err := w.repository.Ref(r.name)
		if err != nil {
			return damaged("ref "+r.name, err)
		}
		if have != r.want && have != r.or {
			return broken("ref "+r.name, fmt.Sprintf("it names %s, and the journal ends with %s: one of them was cut or replaced", orNothing(have), orNothing(r.want)))
		}
	}
	return nil
}

func orNothing(id string) string {
	if id == "" {
		return "nothing"
	}
	return id
}

// trailer is the sum that a checkpoint's message names; the last such line counts, because it is the one we write.
func trailer(message string) string {
	named := "nothing"
	for line := range strings.SplitSeq(message, "\n") {
		if sum, found := strings.CutPrefix(line, JournalTrailer); found {
			named = sum
		}
	}
	return named
}

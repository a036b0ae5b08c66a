// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spool keeps reports on disk until intake acknowledges them. A report counts once Append has returned: it survives a crash, keeps
// its number, and stays in batches until its acknowledgment.
package spool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

// ErrCorrupt is wrapped when a file of the spool cannot be understood. The spool stops, because it could use numbers twice.
var ErrCorrupt = errors.New("report spool is corrupt")

const (
	markFile = "acknowledged.json"
	suffix   = ".report.json"
	asideDir = "refused"
)

// maxAside is how many reports that intake will never take are kept, the newest of them. Each has at most protocol.MaxReportBytes, so they take 64 MiB
// at most.
const maxAside = 64

// maxFailures is how many failures of checkpoints wait for intake: enough to see that they fail, and of what. Without intake one more comes each minute.
const maxFailures = 64

// Bounds of the texts of a report, in bytes. Intake keeps less of each.
const (
	maxText = 8 << 10
	// margin of a text is searched for secrets, too, so that one is found of which the end is cut off.
	margin = 4 << 10
	// maxTexts bounds all texts of a report, as JSON has them. Its other content has room in protocol.MaxReportBytes, too.
	maxTexts = protocol.MaxReportBytes / 2
)

// mark is what must not be forgotten when the reports themselves are gone: how far numbers were used.
type mark struct {
	Epoch    int64 `json:"epoch"`
	Sequence int64 `json:"sequence"`
	// Checkpoint is the newest one that was reported.
	Checkpoint int64 `json:"checkpoint"`
	// Final is the newest attempt whose last word was reported.
	Final int64 `json:"final,omitempty"`
}

// reported notes a report of what is reported once.
func (m *mark) reported(r protocol.Report) {
	if r.Checkpoint != nil {
		m.Checkpoint = max(m.Checkpoint, r.Checkpoint.Sequence)
	}
	if r.Final != nil {
		m.Final = max(m.Final, r.Epoch)
	}
}

// Spool is a queue of reports in a directory of its own. Its methods are safe for concurrent use.
type Spool struct {
	dir   string
	epoch int64
	ready chan struct{}
	less  chan struct{}

	mu      sync.Mutex
	mark    mark
	last    int64 // sequence last used in this epoch
	aside   int   // reports that were set aside
	counted int   // of them, the ones that NewlyRefused has counted
	pending []protocol.Report
}

// Open reads the spool of an attempt. Open keeps records that an older attempt could not report any more (checkpoints, results of
// requests). It drops reports that the new attempt replaces (status, final, failures).
func Open(dir string, epoch int64) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	s := &Spool{dir: dir, epoch: epoch, ready: make(chan struct{}, 1), less: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return nil, err
	}
	refused, err := os.ReadDir(filepath.Join(dir, asideDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	s.aside, s.counted = len(refused), len(refused)
	if err := s.retire(); err != nil {
		return nil, err
	}
	if s.mark.Epoch == epoch {
		s.last = s.mark.Sequence
	}
	for _, r := range s.pending {
		if r.Epoch == epoch {
			s.last = max(s.last, r.Sequence)
		}
		s.mark.reported(r)
	}
	s.wake()
	return s, nil
}

// load reads the mark and every report that it does not cover, and removes what a crash left half done.
func (s *Spool) load() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	if data, err := os.ReadFile(filepath.Join(s.dir, markFile)); err == nil {
		if err := json.Unmarshal(data, &s.mark); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, markFile, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read spool: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if !strings.HasSuffix(e.Name(), suffix) {
			if strings.HasSuffix(e.Name(), durable.TempSuffix) {
				_ = os.Remove(path)
			}
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read spool: %w", err)
		}
		var r protocol.Report
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, e.Name(), err)
		}
		if s.mark.covers(r) {
			_ = os.Remove(path)
			continue
		}
		s.pending = append(s.pending, r)
	}
	slices.SortFunc(s.pending, order)
	return nil
}

// retire drops what older attempts wanted to say about themselves.
func (s *Spool) retire() error {
	var kept []protocol.Report
	for _, r := range s.pending {
		if r.Epoch < s.epoch && (r.Status != nil || r.Final != nil || r.Failed != nil || r.Knowledge != nil) {
			if err := os.Remove(s.path(r)); err != nil {
				return fmt.Errorf("drop report of attempt %d: %w", r.Epoch, err)
			}
			continue
		}
		kept = append(kept, r)
	}
	s.pending = kept
	return nil
}

// Append numbers a report and makes it durable. It does not report a checkpoint or the final report again. A status replaces one that
// directly precedes it, and the number of waiting failures is bounded, so that an absent intake does not fill the disk. Append removes
// secrets and bounds texts, because everything that users see of an attempt comes this way, and an agent may have chosen some of it.
func (s *Spool) Append(r protocol.Report) (protocol.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Checkpoint != nil && r.Checkpoint.Sequence <= s.mark.Checkpoint, r.Final != nil && s.epoch <= s.mark.Final, r.Failed != nil && s.failures() >= maxFailures:
		return r, nil
	}
	r = redacted.Bounded(redacted.Document(redacted.Bounded(r, maxText+margin, math.MaxInt)), maxText, maxTexts)
	r.Epoch, r.Sequence = s.epoch, s.last+1
	data, err := json.Marshal(r)
	if err != nil {
		return r, fmt.Errorf("encode report: %w", err)
	}
	if err := durable.Replace(s.path(r), data); err != nil {
		return r, fmt.Errorf("spool report: %w", err)
	}
	s.last = r.Sequence
	s.mark.reported(r)
	if n := len(s.pending); n > 0 && r.Status != nil && s.pending[n-1].Status != nil {
		_ = os.Remove(s.path(s.pending[n-1])) // when this fails it is sent once more, and then replaced
		s.pending = s.pending[:n-1]
	}
	s.pending = append(s.pending, r)
	s.wake()
	return r, nil
}

// failures of checkpoints that wait.
func (s *Spool) failures() (n int) {
	for _, r := range s.pending {
		if r.Failed != nil {
			n++
		}
	}
	return n
}

// Batch returns the oldest reports, at most the given number and within the given bytes of JSON, but at least one if there is any.
func (s *Spool) Batch(bytes, reports int) []protocol.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for i, r := range s.pending {
		data, err := json.Marshal(r)
		size += len(data) + 1
		if i > 0 && (i == reports || err == nil && size > bytes) {
			return slices.Clone(s.pending[:i])
		}
	}
	return slices.Clone(s.pending)
}

// Ack forgets every report up to the one named.
func (s *Spool) Ack(a protocol.ReportAck) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	next := s.mark
	for ; n < len(s.pending) && covered(s.pending[n], a.Epoch, a.Sequence); n++ {
		next.Epoch, next.Sequence = s.pending[n].Epoch, s.pending[n].Sequence
	}
	if n == 0 {
		return nil
	}
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode acknowledgement: %w", err)
	}
	if err := durable.Replace(filepath.Join(s.dir, markFile), data); err != nil {
		return fmt.Errorf("note acknowledgement: %w", err)
	}
	s.mark = next
	for _, r := range s.pending[:n] {
		_ = os.Remove(s.path(r)) // the mark covers what stays behind
	}
	s.pending = slices.Clone(s.pending[n:])
	s.emptied()
	return nil
}

// SetAside moves a report out of the way that intake will never take, into a directory of its own.
func (s *Spool) SetAside(a protocol.ReportAck, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.pending, func(r protocol.Report) bool { return r.Epoch == a.Epoch && r.Sequence == a.Sequence })
	if i < 0 {
		return fmt.Errorf("intake refuses report %d of attempt %d, which is not in the spool: %s", a.Sequence, a.Epoch, reason)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, asideDir), 0o700); err != nil {
		return fmt.Errorf("set report aside: %w", err)
	}
	path := s.path(s.pending[i])
	if err := os.Rename(path, filepath.Join(s.dir, asideDir, filepath.Base(path))); err != nil {
		return fmt.Errorf("set report aside: %w", err)
	}
	s.pending = slices.Delete(s.pending, i, i+1)
	s.aside++
	s.emptied()
	return s.bound()
}

// bound removes the oldest reports that were set aside, so that a server which refuses everything does not fill the volume.
func (s *Spool) bound() error {
	dir := filepath.Join(s.dir, asideDir)
	kept, err := os.ReadDir(dir) // sorted: by attempt, and then by number
	if err != nil {
		return fmt.Errorf("set report aside: %w", err)
	}
	for _, e := range kept[:max(0, len(kept)-maxAside)] {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("set report aside: %w", err)
		}
	}
	return nil
}

// Refused counts the reports that were set aside and are kept.
func (s *Spool) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.aside, maxAside)
}

// NewlyRefused counts the reports that the spool has set aside since the last call, or since Open.
func (s *Spool) NewlyRefused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.aside - s.counted
	s.counted = s.aside
	return since
}

// Drained returns when no report waits any more.
func (s *Spool) Drained(ctx context.Context) error {
	for s.Pending() > 0 {
		select {
		case <-s.less:
		case <-ctx.Done():
			return fmt.Errorf("reports wait for intake: %w", ctx.Err())
		}
	}
	return nil
}

// emptied tells the one that waits in Drained to look again.
func (s *Spool) emptied() {
	select {
	case s.less <- struct{}{}:
	default:
	}
}

// Pending counts the reports that nobody has acknowledged.
func (s *Spool) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Ready delivers after an Append, and once after Open.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

func (s *Spool) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Spool) path(r protocol.Report) string {
	return filepath.Join(s.dir, fmt.Sprintf("%019d-%019d%s", r.Epoch, r.Sequence, suffix))
}

func (m mark) covers(r protocol.Report) bool { return covered(r, m.Epoch, m.Sequence) }

func covered(r protocol.Report, epoch, sequence int64) bool {
	return r.Epoch < epoch || r.Epoch == epoch && r.Sequence <= sequence
}

func order(a, b protocol.Report) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
}

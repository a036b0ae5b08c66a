// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/eventlog"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// diffOptions of `watchdog diff`.
type diffOptions struct {
	dir               trusted.Dir
	cumulative, patch bool
}

func (o *diffOptions) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("watchdog diff", flag.ContinueOnError)
	trustedVar(flags, &o.dir)
	flags.BoolVar(&o.cumulative, "cumulative", false, "compare with the base instead of the checkpoint before")
	flags.BoolVar(&o.patch, "patch", false, "print what git apply takes, with binary files and unescaped; not for a terminal")
	return flags
}

// Diff is the command `diff`: what a checkpoint changed, in Git's unified format.
func Diff(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o diffOptions
	flags := o.flags()
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return errors.Join(ErrUsage, err)
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("%w: unexpected argument %q", ErrUsage, flags.Arg(1))
	}
	to, err := sequenceOf(flags.Arg(0))
	if err != nil {
		return err
	}
	return writeDiff(ctx, o.dir, protocol.Inquiry{To: to, Base: o.cumulative, Patch: o.patch}, stdout, stderr)
}

// writeDiff writes what a checkpoint changed to out, and what is compared with what to notes first.
func writeDiff(ctx context.Context, d trusted.Dir, q protocol.Inquiry, out, notes io.Writer) error {
	i, before, err := findCheckpoint(d, q)
	if err != nil {
		return err
	}
	repo, err := git.Open(ctx, d.Repository(), git.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = repo.Close() }()
	from, err := objects.ParseID(before.commit)
	if err != nil {
		return err
	}
	to, err := objects.ParseID(i.Commit)
	if err != nil {
		return err
	}
	for _, id := range []objects.ID{from, to} {
		if gone, err := isDropped(ctx, repo, id); err != nil || gone {
			if err != nil {
				return err
			}
			return fmt.Errorf("commit %s: %w", id, errDropped)
		}
	}
	if _, err := fmt.Fprintf(notes, "checkpoint %d: %s, %s; compared with %s\n", i.Sequence, i.Report.Verdict, i.Report.Action, before.what); err != nil {
		return err
	}
	if q.Patch {
		return repo.Patch(ctx, from, to, true, out)
	}
	shown := plain.NewWriter(out)
	return errors.Join(repo.Patch(ctx, from, to, false, shown), shown.Flush())
}

// errDropped: retention has let the content of a checkpoint go.
var errDropped = errors.New("it has no content any more: work that was never promoted took more than the policy's retention.maxUnpromotedSize")

// isDropped tells whether the tree of a commit is not there.
func isDropped(ctx context.Context, repo *git.Repository, commit objects.ID) (bool, error) {
	tree, err := repo.TreeOf(ctx, commit)
	if err != nil {
		return false, err
	}
	_, _, err = repo.Objects().Stat(ctx, tree)
	if errors.Is(err, git.ErrNoObject) {
		return true, nil
	}
	return false, err
}

// against is what a checkpoint is compared with.
type against struct{ commit, what string }

// maxListed bounds the list of checkpoints in a message, in bytes.
const maxListed = 512

// errNoCheckpoint: the record has no checkpoint of that number.
var errNoCheckpoint = errors.New("no such checkpoint")

// findCheckpoint finds the requested checkpoint in the journal, and what to compare it with.
func findCheckpoint(d trusted.Dir, q protocol.Inquiry) (journal.Intent, against, error) {
	data, err := trusted.ReadJournal(d)
	if err != nil {
		return journal.Intent{}, against{}, err
	}
	records, _, err := journal.Decode(data)
	if err != nil {
		return journal.Intent{}, against{}, fmt.Errorf("%w: %w", trusted.ErrCorrupt, err)
	}
	var base, first, before against
	var found *journal.Intent
	var have []string
	for _, r := range records {
		switch {
		case r.Base != nil:
			base = against{commit: r.Base.Commit, what: "the base " + r.Base.Commit}
		case r.Intent != nil:
			have = append(have, strconv.FormatInt(r.Intent.Sequence, 10))
			if r.Intent.Sequence == q.From {
				first = against{commit: r.Intent.Commit, what: fmt.Sprintf("checkpoint %d", q.From)}
			}
			if q.To != 0 && r.Intent.Sequence != q.To {
				continue
			}
			found, before = r.Intent, base
			if r.Intent.OldChain != "" && !q.Base {
				before = against{commit: r.Intent.OldChain, what: fmt.Sprintf("checkpoint %d", r.Intent.Report.Previous)}
			}
		}
	}
	missing := q.To
	if found != nil && q.From != 0 && first.commit == "" {
		found, missing = nil, q.From
	}
	switch {
	case len(have) == 0:
		return journal.Intent{}, before, fmt.Errorf("%w: none was taken yet", errNoCheckpoint)
	case found == nil:
		return journal.Intent{}, before, fmt.Errorf("%w: there is no checkpoint %d; there are %s", errNoCheckpoint, missing, plain.CutBytes(strings.Join(have, ", "), maxListed))
	case q.From != 0:
		before = first
	}
	return *found, before, nil
}

// sequenceOf reads "7" or "add-login-7"; 0 for nothing.
func sequenceOf(name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: %q is not a checkpoint: give its number, or its name such as add-login-7", ErrUsage, name)
	}
	return n, nil
}

// logOptions of `watchdog log`.
type logOptions struct {
	dir   trusted.Dir
	files bool
}

func (o *logOptions) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("watchdog log", flag.ContinueOnError)
	trustedVar(flags, &o.dir)
	flags.BoolVar(&o.files, "files", false, "show the file events of every checkpoint instead of the journal")
	return flags
}

// Log is the command `log`: the record outside of the chain.
func Log(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var o logOptions
	flags := o.flags()
	flags.SetOutput(stderr)
	if err := parseAlone(flags, args); err != nil {
		return err
	}
	return writeLog(o.dir, o.files, stdout)
}

// writeLog writes the journal, or the file events of every checkpoint.
func writeLog(d trusted.Dir, files bool, out io.Writer) error {
	data, err := trusted.ReadJournal(d) // says whether this is a trusted volume at all
	if err != nil {
		return err
	}
	shown := plain.NewWriter(out)
	if files {
		err = eventlog.Copy(shown, d.FileChanges())
	} else {
		_, err = shown.Write(data)
	}
	return errors.Join(err, shown.Flush())
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/host/eventlog"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// runDiff is `watchdog diff`: what a checkpoint changed, in Git's unified format.
func runDiff(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("watchdog diff", flag.ContinueOnError)
	flags.SetOutput(stderr)
	trusted := flags.String("trusted", contract.TrustedDir, "where the trusted volume is mounted")
	cumulative := flags.Bool("cumulative", false, "compare with the base instead of the checkpoint before")
	patch := flags.Bool("patch", false, "print what `git apply` takes, with binary files and unescaped; not for a terminal")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(1))
	}
	paths := Paths{Trusted: *trusted}
	i, before, err := findCheckpoint(paths, flags.Arg(0), *cumulative)
	if err != nil {
		return err
	}
	repo, err := git.Open(ctx, paths.repository(), git.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = repo.Close() }()
	_, _ = fmt.Fprintf(stderr, "checkpoint %d: %s, %s; compared with %s\n", i.Sequence, i.Report.Verdict, i.Report.Action, before.what)
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
			return errors.Join(err, fmt.Errorf("commit %s has no content any more: what was never promoted took more than the policy's retention.unpromotedBytes", id))
		}
	}
	if *patch {
		return repo.Patch(ctx, from, to, true, stdout)
	}
	shown := newPlainWriter(stdout)
	return errors.Join(repo.Patch(ctx, from, to, false, shown), shown.Flush())
}

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

// findCheckpoint finds a checkpoint in the journal by its number or name, the newest for an empty one.
func findCheckpoint(p Paths, name string, cumulative bool) (journal.Intent, against, error) {
	data, err := readJournal(p)
	if err != nil {
		return journal.Intent{}, against{}, err
	}
	records, _, err := journal.Decode(data)
	if err != nil {
		return journal.Intent{}, against{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	wanted, err := sequenceOf(name)
	if err != nil {
		return journal.Intent{}, against{}, err
	}
	var base, before against
	var found *journal.Intent
	var have []string
	for _, r := range records {
		switch {
		case r.Base != nil:
			base = against{commit: r.Base.Commit, what: "the base " + r.Base.Commit}
		case r.Intent != nil:
			have = append(have, strconv.FormatInt(r.Intent.Sequence, 10))
			if wanted != 0 && r.Intent.Sequence != wanted {
				continue
			}
			found, before = r.Intent, base
			if r.Intent.OldChain != "" && !cumulative {
				before = against{commit: r.Intent.OldChain, what: fmt.Sprintf("checkpoint %d", r.Intent.Report.Previous)}
			}
		}
	}
	switch {
	case len(have) == 0:
		return journal.Intent{}, before, errors.New("no checkpoint was taken yet")
	case found == nil:
		return journal.Intent{}, before, fmt.Errorf("there is no checkpoint %d; there are %s", wanted, clip(strings.Join(have, ", "), maxReason))
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
		return 0, fmt.Errorf("%w: %q is no checkpoint: give its number, or its name such as add-login-7", errUsage, name)
	}
	return n, nil
}

// runLog is `watchdog log`: what is recorded beside the chain.
func runLog(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("watchdog log", flag.ContinueOnError)
	flags.SetOutput(stderr)
	trusted := flags.String("trusted", contract.TrustedDir, "where the trusted volume is mounted")
	files := flags.Bool("files", false, "show the file events of every checkpoint instead of the journal")
	if err := parseAlone(flags, args); err != nil {
		return err
	}
	paths := Paths{Trusted: *trusted}
	data, err := readJournal(paths) // says whether this is a trusted volume at all
	if err != nil {
		return err
	}
	shown := newPlainWriter(stdout)
	if *files {
		err = eventlog.Copy(shown, paths.changes())
	} else {
		_, err = shown.Write(data)
	}
	return errors.Join(err, shown.Flush())
}

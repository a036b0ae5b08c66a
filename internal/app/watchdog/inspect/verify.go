// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect reads a trusted volume for users: whether the record is whole, what a checkpoint changed, and what is in the journal. It
// only reads, and works without lock, agent and intake.
package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/chain"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// A running watchdog writes while it is looked at: what seems broken is looked at again as long as the journal grows.
const (
	verifyTries = 10
	verifyPause = 200 * time.Millisecond
)

var (
	// ErrUsage: the command line, or the inquiry, is not understood.
	ErrUsage = errors.New("usage")
	// ErrBroken: the record of the Feature is not whole; the output says what is broken.
	ErrBroken = errors.New("the record is not whole")
)

// Flags are the flags of `verify`, `diff` and `log`.
func Flags() []*flag.FlagSet {
	return []*flag.FlagSet{new(verifyOptions).flags(), new(diffOptions).flags(), new(logOptions).flags()}
}

// trustedVar binds the directory of the trusted volume.
func trustedVar(flags *flag.FlagSet, dir *trusted.Dir) {
	flags.StringVar((*string)(dir), "trusted", protocol.TrustedDir, "mount path of the trusted volume")
}

// verifyOptions of `watchdog verify`.
type verifyOptions struct {
	dir     trusted.Dir
	commit  string
	history bool
	json    bool
}

// verification is what `watchdog verify` found, as it prints it with --output json.
type verification struct {
	chain.Result
	// Objects that were read and are what their names say.
	Objects int `json:"objects"`
}

func (o *verifyOptions) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("watchdog verify", flag.ContinueOnError)
	trustedVar(flags, &o.dir)
	flags.StringVar(&o.commit, "commit", "", "commit that a Checkpoint object names: the chain must hold it")
	flags.BoolVar(&o.history, "history", false, "check every object of the base's history too (git fsck; slow on a large repository)")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return flags
}

// Verify is the command `verify`: whether the record of a Feature is whole from base to head.
func Verify(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o verifyOptions
	flags := o.flags()
	flags.SetOutput(stderr)
	if err := parseAlone(flags, args); err != nil {
		return err
	}
	v, err := verifyVolume(ctx, o)
	if err != nil {
		return err
	}
	if err := v.write(stdout, o.json); err != nil {
		return err
	}
	if !v.Whole {
		return ErrBroken
	}
	return nil
}

// write it as text, or as JSON.
func (v verification) write(out io.Writer, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(out, v.String())
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// parseAlone parses flags that no argument may follow.
func parseAlone(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return errors.Join(ErrUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", ErrUsage, flags.Arg(0))
	}
	return nil
}

func verifyVolume(ctx context.Context, o verifyOptions) (verification, error) {
	repo, err := git.Open(ctx, o.dir.Repository(), git.Options{})
	if err != nil {
		return verification{}, err
	}
	defer func() { _ = repo.Close() }()
	s := sound{ctx: ctx, repository: repo, verifier: repo.NewVerifier()}
	for tries := 1; ; tries++ {
		data, err := trusted.ReadJournal(o.dir)
		if err != nil {
			return verification{}, err
		}
		result, err := verifyJournal(data, s, o.commit)
		if err != nil || result.Whole || tries == verifyTries {
			return s.finish(result, err, o.history)
		}
		steps.Pause(ctx, verifyPause)
		if now, err := trusted.ReadJournal(o.dir); err != nil || bytes.Equal(data, now) {
			return s.finish(result, err, o.history)
		}
	}
}

func verifyJournal(data []byte, s sound, known string) (chain.Result, error) {
	records, _, err := journal.Decode(data)
	var corrupt *journal.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return chain.Result{}, err
	}
	return chain.Verify(records, corrupt, s, known)
}

// String is the text for users.
func (v verification) String() string {
	text := fmt.Sprintf("whole: %d journal lines, %d checkpoints, %d deliveries and %d objects, every link holds\n",
		v.Lines, v.Checkpoints, v.Deliveries, v.Objects)
	if v.Broken != nil {
		text = fmt.Sprintf("BROKEN at %s: %s\n%d journal lines, %d checkpoints and %d deliveries before it hold\n",
			v.Broken.Link, v.Broken.Reason, v.Lines, v.Checkpoints, v.Deliveries)
	}
	if v.Dropped > 0 {
		text += fmt.Sprintf("%d checkpoints have lost their content to retention.maxUnpromotedSize of the policy, as the journal says\n", v.Dropped)
	}
	for _, line := range []struct{ name, value string }{
		{"base", v.Base}, {"head", v.Head}, {"delivery", v.Delivery}, {"journal", v.JournalHead},
	} {
		if line.value != "" {
			text += fmt.Sprintf("%-9s %s\n", line.name, line.value)
		}
	}
	return text
}

// sound is the trusted repository as a verification sees it.
type sound struct {
	ctx        context.Context //nolint:containedctx // lives as long as one verification
	repository *git.Repository
	verifier   *git.Verifier
}

var _ chain.Repository = sound{}

// finish checks the rest of the repository, if the caller wants that and nothing is broken so far.
func (s sound) finish(r chain.Result, err error, history bool) (verification, error) {
	if err == nil && r.Whole && history {
		err = s.repository.Check(s.ctx, r.Gaps...)
		if errors.Is(err, git.ErrCorrupt) {
			r.Whole, r.Broken, err = false, &chain.Break{Link: "repository", Reason: err.Error()}, nil
		}
	}
	return verification{Result: r, Objects: s.verifier.Sound()}, err
}

// Ref implements chain.Repository.
func (s sound) Ref(name string) (string, error) {
	id, err := s.repository.Ref(s.ctx, name)
	if err != nil || id.IsZero() {
		return "", damage(err)
	}
	return id.String(), nil
}

// Commit implements chain.Repository.
func (s sound) Commit(id string) (chain.Commit, error) {
	parsed, err := objects.ParseID(id)
	if err != nil {
		return chain.Commit{}, &chain.DamageError{Reason: err.Error()}
	}
	c, err := s.verifier.Commit(s.ctx, parsed)
	parents := make([]string, 0, len(c.Parents))
	for _, p := range c.Parents {
		parents = append(parents, p.String())
	}
	return chain.Commit{Tree: c.Tree.String(), Parents: parents, Message: c.Message}, damage(err)
}

// Tree implements chain.Repository.
func (s sound) Tree(id string) error {
	parsed, err := objects.ParseID(id)
	if err != nil {
		return &chain.DamageError{Reason: err.Error()}
	}
	return damage(s.verifier.Tree(s.ctx, parsed))
}

// Changes implements chain.Repository.
func (s sound) Changes(before, after string) ([]judge.Change, error) {
	from, err := objects.ParseID(before)
	if err != nil {
		return nil, &chain.DamageError{Reason: err.Error()}
	}
	to, err := objects.ParseID(after)
	if err != nil {
		return nil, &chain.DamageError{Reason: err.Error()}
	}
	changes, err := s.repository.Diff(s.ctx, from, to)
	return changes, damage(err)
}

// damage tells objects that are not as they should be from what keeps us from looking.
func damage(err error) error {
	if errors.Is(err, git.ErrCorrupt) || errors.Is(err, git.ErrNoObject) {
		return &chain.DamageError{Reason: err.Error()}
	}
	return err
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Push makes a branch of the remote name the commit as a fast-forward, never by force. It does nothing if the branch already names the
// commit, so that callers may repeat it. ErrConflict says that the branch has commits that this one lacks, ErrRejected that the remote
// refused by a rule of its own; see Definite. If the remote does not report the result of the push, Push reads the branch: the commit there
// is the delivery.
func (r *Repository) Push(ctx context.Context, remote Remote, commit objects.ID, branch string) error {
	if err := checkName("branch", branch); err != nil {
		return err
	}
	settings, err := remote.settings()
	if err != nil {
		return err
	}
	// If the base is no longer a branch of the server, git sends all of its history, unless it asks what is there.
	failure := r.push(ctx, remote, append(slices.Clip(settings), setting{"push.negotiate", "true"}), commit, branch)
	if errors.Is(failure, errNotThere) {
		failure = r.push(ctx, remote, settings, commit, branch)
	}
	if failure == nil || Definite(failure) {
		return failure
	}
	if there, err := r.Branch(ctx, remote, branch); err == nil && there == commit {
		return nil
	}
	return failure
}

// errNotThere: the server has not what it said it has, such as a commit of which it has collected the files.
var errNotThere = errors.New("the server lacks objects that it said it has")

// lacking is what git says of such a server.
func lacking(words string) bool {
	return mentions(words, "missing necessary objects", "unresolved delta")
}

// push once.
func (r *Repository) push(ctx context.Context, remote Remote, settings []setting, commit objects.ID, branch string) error {
	out, err := r.runner.ask(ctx, remote, call{
		args: []string{
			"push", "--porcelain", "--progress", "--no-verify", "--no-signed", "--recurse-submodules=no", "--", remote.URL,
			commit.String() + ":refs/heads/" + branch,
		},
		settings: settings,
	})
	if err == nil {
		return nil
	}
	failed, ok := errors.AsType[*commandError](err)
	if ok {
		// The server's answer to the negotiation is not about the push.
		if _, words, found := strings.Cut(failed.stderr, "push negotiation failed"); found {
			_, failed.stderr, _ = strings.Cut(words, "\n")
		}
	}
	failure := refusal(string(out), err, branch, remote)
	if failure == nil {
		failure = classify(err, remote)
	}
	if ok && lacking(string(out)+failed.stderr) {
		return fmt.Errorf("%w: %w", failure, errNotThere)
	}
	return failure
}

// refusal reads the line "!<tab>from:to<tab>[summary] (reason)" that a push prints for a ref that was not moved. The server's
// words are among git's complaints.
func refusal(out string, err error, branch string, remote Remote) error {
	for line := range strings.Lines(out) {
		flag, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		_, summary, found := strings.Cut(rest, "\t")
		if flag != "!" || !found {
			continue
		}
		words := ""
		if failed, ok := errors.AsType[*commandError](err); ok {
			words = failed.stderr
		}
		return refused(summary, words, branch, remote)
	}
	return nil
}

func refused(summary, words, branch string, remote Remote) error {
	e := &remoteError{detail: strings.Join(append([]string{scrub(summary, remote)}, said(scrub(words, remote))...), "; ")}
	switch {
	case strings.HasPrefix(summary, "[rejected]"):
		e.kind, e.advice = ErrConflict, fmt.Sprintf("branch %s on the server has commits that the delivery does not have; delete or rename it there, or choose another spec.delivery.branch", branch)
	case mentions(words, "; cannot create 'refs/heads/"):
		e.kind, e.advice = ErrConflict, fmt.Sprintf("branch %s cannot exist together with another branch of the server; delete that one, or choose another spec.delivery.branch", branch)
	case mentions(summary, "failed to update ref", "cannot lock ref", "failed to lock", "unpacker error", "remote failed to report status"):
		e.kind, e.advice = ErrNotTaken, fmt.Sprintf("the server could not move branch %s; see its reason", branch)
	default:
		e.kind, e.advice = ErrRejected, fmt.Sprintf("a rule of the server refuses the push of branch %s; see its reason", branch)
	}
	return e
}

// said is the server's message to the user who pushes, in one line; empty if there is none.
func said(complaints string) []string {
	var lines []string
	for line := range strings.Lines(complaints) {
		if words, found := strings.CutPrefix(strings.TrimSpace(line), "remote: "); found {
			lines = append(lines, words)
		}
	}
	if text := oneLine(strings.Join(lines, "\n")); text != "" {
		return []string{text}
	}
	return nil
}

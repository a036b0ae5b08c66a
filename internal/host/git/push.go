// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// Push makes a branch of the remote name the commit, by adding to it: never by force. Where the branch is there already
// nothing happens, so that it may be repeated. ErrConflict says that the branch has commits that this one lacks,
// ErrRejected that the remote refused by a rule of its own.
func (r *Repository) Push(ctx context.Context, remote Remote, commit objects.ID, branch string) error {
	if err := checkName("branch", branch); err != nil {
		return err
	}
	settings, err := remote.settings()
	if err != nil {
		return err
	}
	out, err := r.runner.run(ctx, call{
		args: []string{
			"push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--", remote.URL,
			commit.String() + ":refs/heads/" + branch,
		},
		settings: settings,
	})
	if err == nil {
		return nil
	}
	if refused := refusal(string(out), branch, remote); refused != nil {
		return refused
	}
	return classify(err, remote)
}

// refusal reads the line "!<tab>from:to<tab>[summary] (reason)" that a push prints for a ref that was not moved.
func refusal(out, branch string, remote Remote) error {
	for line := range strings.Lines(out) {
		flag, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		_, summary, found := strings.Cut(rest, "\t")
		if flag != "!" || !found {
			continue
		}
		summary = scrub(summary, remote)
		if strings.HasPrefix(summary, "[rejected]") {
			return &remoteError{
				kind:   ErrConflict,
				advice: fmt.Sprintf("branch %s on the server has commits of someone else; delete or merge it there, or choose another spec.delivery.branch", branch),
				detail: summary,
			}
		}
		if strings.Contains(summary, "failed to update ref") || strings.Contains(summary, "cannot lock ref") || strings.Contains(summary, "failed to lock") {
			return &remoteError{kind: ErrConflict, advice: fmt.Sprintf("branch %s is being changed by someone else; try again", branch), detail: summary}
		}
		return &remoteError{kind: ErrRejected, advice: fmt.Sprintf("a rule of the server keeps branch %s from being pushed; see its reason", branch), detail: summary}
	}
	return nil
}

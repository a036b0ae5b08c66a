// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// fetchTries is how often a branch is looked up again when it moved between look-up and fetch.
const fetchTries = 3

// Fetch brings the whole history of one revision into the trusted repository and returns its commit. A revision is a branch, a tag, HEAD, a
// full ref name or a full commit id; a branch wins over a tag of its name. If the server's repository is shallow, the history ends at the
// same place. It sets no ref. It may be repeated.
func (r *Repository) Fetch(ctx context.Context, remote Remote, revision string) (objects.ID, error) {
	if err := checkName("revision", revision); err != nil {
		return objects.ID{}, fmt.Errorf("%w: %w", ErrRevisionNotFound, err)
	}
	settings, err := remote.settings()
	if err != nil {
		return objects.ID{}, err
	}
	for range fetchTries {
		ref, commit, err := r.runner.resolve(ctx, remote, settings, revision)
		if err != nil {
			return objects.ID{}, err
		}
		if err := r.runner.fetchRef(ctx, remote, settings, ref); err != nil {
			return objects.ID{}, err
		}
		kind, _, err := r.objects.Stat(ctx, commit)
		switch {
		case errors.Is(err, ErrNoObject):
			continue
		case err != nil:
			return objects.ID{}, err
		case kind != objects.KindCommit:
			return objects.ID{}, &remoteError{kind: ErrRevisionNotFound, advice: fmt.Sprintf("%s is a %s; name a branch, tag or commit", revision, kind)}
		}
		return commit, nil
	}
	return objects.ID{}, &remoteError{kind: ErrUnreachable, advice: revision + " keeps being rewritten on the server; try again"}
}

// resolve gives the name to fetch and the commit it stands for.
func (r runner) resolve(ctx context.Context, remote Remote, settings []setting, revision string) (string, objects.ID, error) {
	if id, err := objects.ParseID(revision); err == nil {
		return revision, id, nil
	}
	candidates := []string{"refs/heads/" + revision, "refs/tags/" + revision}
	if revision == "HEAD" || strings.HasPrefix(revision, "refs/") {
		candidates = []string{revision}
	}
	advertised, err := r.list(ctx, remote, settings, candidates)
	if err != nil {
		return "", objects.ID{}, err
	}
	for _, ref := range candidates {
		if id, found := advertised[ref+"^{}"]; found {
			return ref, id, nil
		}
		if id, found := advertised[ref]; found {
			return ref, id, nil
		}
	}
	if digest, err := hex.DecodeString(revision); err == nil && len(digest) == sha256.Size {
		return "", objects.ID{}, &remoteError{kind: ErrObjectFormat, advice: "commit " + revision + " has a SHA-256 object name; " + sha1Only}
	}
	return "", objects.ID{}, &remoteError{
		kind: ErrRevisionNotFound, advice: fmt.Sprintf("%s has no branch or tag %q; check spec.repository.revision", remote.URL, revision),
	}
}

// Branch returns the commit of a branch of the remote; the zero ID if there is no such branch.
func (r *Repository) Branch(ctx context.Context, remote Remote, branch string) (objects.ID, error) {
	if err := checkName("branch", branch); err != nil {
		return objects.ID{}, err
	}
	settings, err := remote.settings()
	if err != nil {
		return objects.ID{}, err
	}
	ref := "refs/heads/" + branch
	there, err := r.runner.list(ctx, remote, settings, []string{ref})
	return there[ref], err
}

// list asks the remote for refs.
func (r runner) list(ctx context.Context, remote Remote, settings []setting, refs []string) (map[string]objects.ID, error) {
	args := append([]string{"ls-remote", "--quiet", "--", remote.URL}, refs...)
	for _, ref := range refs {
		// A tag is asked for together with what it points at.
		args = append(args, ref+"^{}")
	}
	out, err := r.ask(ctx, remote, call{args: args, settings: settings})
	if err != nil {
		return nil, classify(err, remote)
	}
	advertised := make(map[string]objects.ID)
	for line := range strings.Lines(string(out)) {
		id, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if len(id) == hex.EncodedLen(sha256.Size) {
			return nil, &remoteError{kind: ErrObjectFormat, advice: remote.URL + " has SHA-256 object names; " + sha1Only}
		}
		parsed, err := objects.ParseID(id)
		if err != nil {
			return nil, &remoteError{kind: ErrUnreachable, advice: "the server's list of refs is not one", detail: scrub(err.Error(), remote)}
		}
		advertised[ref] = parsed
	}
	return advertised, nil
}

func (r runner) fetchRef(ctx context.Context, remote Remote, settings []setting, ref string) error {
	_, err := r.ask(ctx, remote, call{
		args: []string{
			"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
			"--refmap=", "--update-shallow", "--", remote.URL, ref,
		},
		settings: settings,
	})
	if err != nil {
		return classify(err, remote)
	}
	return r.syncBoundary()
}

// Boundary is the path of the file that names the commits whose parents the server lacks; empty if it lacks none.
func (r *Repository) Boundary() string {
	if _, err := os.Stat(r.runner.boundary()); err != nil {
		return ""
	}
	return r.runner.boundary()
}

func (r runner) boundary() string { return filepath.Join(r.dir, "shallow") }

// syncBoundary makes durable where the history ends: git does so for objects and refs alone.
func (r runner) syncBoundary() error {
	f, err := os.Open(r.boundary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close(), durable.SyncDir(r.dir))
	}
	if err != nil {
		return fmt.Errorf("where the history ends: %w", objects.WrapFull(err))
	}
	return nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package git runs git on the trusted repository, and only there: to fetch, to push, to move refs and to read objects.
// It uses a closed configuration and environment, so that neither the machine nor fetched content decides what runs. Work of an agent
// reaches git only as objects, never as a work tree.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Options of a repository.
type Options struct {
	// Git is the program to run. Default "git", looked up in PATH.
	Git string
}

// Repository is the trusted bare repository. Its methods are safe for concurrent use.
type Repository struct {
	dir     string
	runner  runner
	store   *objects.Store
	objects *Objects
}

// Init opens the repository at dir and makes it first if there is none. It may be called again after a crash.
func Init(ctx context.Context, dir string, options Options) (*Repository, error) {
	r, err := prepare(dir, options)
	if err != nil || r.asMade() {
		return r, err
	}
	// Git leaves what exists as it is, so that an interrupted init is simply completed.
	_, err = r.runner.run(ctx, call{args: []string{
		"init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main",
	}})
	if err != nil {
		return nil, fmt.Errorf("make trusted repository %s: %w", dir, err)
	}
	return r, r.check(ctx)
}

// Open opens the repository at dir. It fails with ErrCorrupt if Init has made none there.
func Open(ctx context.Context, dir string, options Options) (*Repository, error) {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no repository at %s: the volume was replaced or never prepared", ErrCorrupt, dir)
	}
	r, err := prepare(dir, options)
	if err != nil {
		return nil, err
	}
	return r, r.check(ctx)
}

func prepare(dir string, options Options) (*Repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("trusted repository: %w", err)
	}
	runner, err := newRunner(options.Git, dir)
	if err != nil {
		return nil, err
	}
	store := objects.NewStore(filepath.Join(dir, "objects"))
	return &Repository{
		dir:     dir,
		runner:  runner,
		store:   store,
		objects: &Objects{runner: runner, recent: store.Recent()},
	}, nil
}

// check refuses a repository that this package cannot work on.
func (r *Repository) check(ctx context.Context) error {
	if r.asMade() {
		return nil
	}
	out, err := r.runner.run(ctx, call{args: []string{"rev-parse", "--show-object-format", "--is-bare-repository"}})
	if err != nil {
		return fmt.Errorf("open trusted repository %s: %w", r.dir, err)
	}
	format, bare, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if format != "sha1" {
		return fmt.Errorf("%w: %s has object names of the format %s, and was made with sha1", ErrCorrupt, r.dir, format)
	}
	if bare != "true" {
		return fmt.Errorf("%w: %s is not a bare repository", ErrCorrupt, r.dir)
	}
	return nil
}

// asMade tells whether a repository is as init leaves it, apart from objects and refs. Then git has nothing to add to it, and nothing to say of
// it that is not known: with this configuration, and no other, names are SHA-1 and there is no work tree. About whatever looks different, git is asked.
func (r *Repository) asMade() bool {
	for name, want := range map[string]string{headFile: bareHead, configFile: bareConfig} {
		have, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || string(have) != want {
			return false
		}
	}
	for _, name := range bareFolders() {
		if st, err := os.Stat(filepath.Join(r.dir, name)); err != nil || !st.IsDir() {
			return false
		}
	}
	return true
}

// What git's init makes of a bare repository with SHA-1 names and the branch main, if it has no template.
const (
	headFile   = "HEAD"
	bareHead   = "ref: refs/heads/main\n"
	configFile = "config"
	bareConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
)

// bareFolders of such a repository.
func bareFolders() []string {
	return []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"}
}

// layBare makes such a repository without git, for a place that lives only as long as this process.
func layBare(dir string) error {
	for _, name := range bareFolders() {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{headFile: bareHead, configFile: bareConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the processes that read objects.
func (r *Repository) Close() error {
	return r.objects.Close()
}

// Dir is the path of the repository.
func (r *Repository) Dir() string { return r.dir }

// Store writes objects into the repository, in process.
func (r *Repository) Store() *objects.Store { return r.store }

// Objects reads objects of the repository.
func (r *Repository) Objects() *Objects { return r.objects }

// MoreObjects reads objects of the repository too, through a process of its own, for readers that must not take turns. The
// caller closes it.
func (r *Repository) MoreObjects() *Objects { return &Objects{runner: r.runner} }

// WriteCommit stores a commit durably.
func (r *Repository) WriteCommit(c objects.Commit) (objects.ID, error) {
	content, err := c.Encode()
	if err != nil {
		return objects.ID{}, err
	}
	return r.store.Write(objects.KindCommit, content)
}

// maxCommit bounds a commit object in bytes.
const maxCommit = 1 << 20

// ReadCommit reads a commit.
func (r *Repository) ReadCommit(ctx context.Context, id objects.ID) (objects.Commit, error) {
	kind, content, err := r.objects.Read(ctx, id, maxCommit)
	if err != nil {
		return objects.Commit{}, err
	}
	if kind != objects.KindCommit {
		return objects.Commit{}, fmt.Errorf("object %s is a %s, not a commit", id, kind)
	}
	return objects.ParseCommit(content)
}

// TreeOf returns the tree of a commit, or the ID itself if it names a tree.
func (r *Repository) TreeOf(ctx context.Context, id objects.ID) (objects.ID, error) {
	kind, _, err := r.objects.Stat(ctx, id)
	if err != nil {
		return objects.ID{}, err
	}
	switch kind {
	case objects.KindTree:
		return id, nil
	case objects.KindCommit:
		c, err := r.ReadCommit(ctx, id)
		return c.Tree, err
	default:
		return objects.ID{}, fmt.Errorf("object %s is a %s, neither commit nor tree", id, kind)
	}
}

// Check verifies every object of the repository, history of the base included; ErrCorrupt names what is damaged. Objects that old versions
// of Git wrote and new ones would not are not damage. Trees in gaps may be missing.
func (r *Repository) Check(ctx context.Context, gaps ...string) error {
	var out bytes.Buffer
	_, err := r.runner.run(ctx, call{args: []string{"fsck", "--full", "--no-dangling", "--no-progress"}, stdout: &out})
	if _, exited := exitCode(err); !exited {
		return err
	}
	if len(gaps) > 0 && onlyGaps(out.String(), gaps) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// onlyGaps tells whether everything that fsck complains of is that trees in gaps are missing. It prints "missing tree <id>"
// for each, and "broken link from  commit <id>" before "              to    tree <id>" for each commit that names it.
func onlyGaps(out string, gaps []string) bool {
	known := make(map[string]bool, len(gaps))
	for _, id := range gaps {
		known[id] = true
	}
	from := ""
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		switch {
		case len(words) == 5 && strings.HasPrefix(line, "broken link from") && words[3] == "commit" && from == "":
			from = words[4]
		case len(words) == 3 && words[0] == "to" && words[1] == "tree" && from != "" && known[words[2]]:
			from = ""
		case len(words) == 3 && words[0] == "missing" && words[1] == "tree" && known[words[2]]:
		default:
			return false
		}
	}
	return from == "" && out != ""
}

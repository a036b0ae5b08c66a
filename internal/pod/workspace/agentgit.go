// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// PlaceAgentGit gives the agent a repository of its own at the workspace's root, in which its git status, diff and log work. It is a copy
// of the history of one commit that shares nothing with the trusted repository, and Tidewaiter never reads it again. It removes what was
// there before. The workspace must hold the commit's tree for status to be clean.
func (e *Engine) PlaceAgentGit(ctx context.Context, g AgentGit) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	if e.base == nil {
		return errNoBase
	}
	if err := placeAgentGit(ctx, e.options, agentIndex{e.root, e.known, e.tree}, g); err != nil {
		return fmt.Errorf("the agent's repository: %w", objects.WrapFull(err))
	}
	return nil
}

func placeAgentGit(ctx context.Context, o Options, index agentIndex, g AgentGit) error {
	staging := filepath.Join(o.Scratch, "agent-pack")
	if err := errors.Join(os.RemoveAll(staging), os.MkdirAll(staging, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	tree, err := o.Repository.Tree(ctx, g.Commit)
	if err != nil {
		return err
	}
	packs, err := o.Repository.Packs().History(ctx, g.Commit, g.Base, staging)
	if err != nil {
		return err
	}
	if err := remove(index.root, gitDir); err != nil {
		return err
	}
	w := &agentWriter{root: index.root}
	w.dir("objects/pack", "objects/info", "refs/heads", "refs/tags", "info", "hooks")
	for _, pack := range packs {
		for _, suffix := range []string{".pack", ".idx"} {
			w.copy("objects/pack/"+filepath.Base(pack)+suffix, pack+suffix)
		}
	}
	if boundary := o.Repository.Boundary(); boundary != "" {
		w.copy("shallow", boundary)
	}
	w.text("config", agentConfig(g))
	w.text("description", "The agent's own copy; nothing in it is ever read back.\n")
	w.text("refs/heads/"+g.Branch, g.Commit.String()+"\n")
	w.text("index", string(index.of(tree)))
	// HEAD comes last: without it git sees no repository.
	w.text("HEAD", "ref: refs/heads/"+g.Branch+"\n")
	return w.err
}

// agentConfig is the whole configuration of the agent's repository.
func agentConfig(g AgentGit) string {
	return "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
		"[user]\n\tname = " + quoteConfig(g.AuthorName) + "\n\temail = " + quoteConfig(g.AuthorEmail) + "\n"
}

// quoteConfig writes a value of git's configuration.
func quoteConfig(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// agentWriter writes below the root's .git; after the first error it does nothing.
type agentWriter struct {
	root dir
	err  error
}

func (w *agentWriter) dir(paths ...string) {
	for _, path := range paths {
		if w.err != nil {
			return
		}
		var d dir
		if d, _, w.err = makeParents(w.root, gitDir+"/"+path+"/x"); w.err == nil {
			d.close()
		}
	}
}

func (w *agentWriter) text(path, content string) {
	w.file(path, strings.NewReader(content), 0o644)
}

func (w *agentWriter) copy(path, from string) {
	if w.err != nil {
		return
	}
	f, err := os.Open(from)
	if err != nil {
		w.err = err
		return
	}
	defer f.Close()
	w.file(path, f, 0o444)
}

func (w *agentWriter) file(path string, content io.Reader, mode uint32) {
	if w.err != nil {
		return
	}
	d, name, err := makeParents(w.root, gitDir+"/"+path)
	if err != nil {
		w.err = err
		return
	}
	defer d.close()
	fd, err := d.open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode)
	if err != nil {
		w.err = err
		return
	}
	f := file(fd, path)
	_, err = io.Copy(f, content)
	w.err = errors.Join(err, f.Close())
}

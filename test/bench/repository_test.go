// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/engine"
)

// filesInDir is how many files a directory of a workspace has, dirsInDir how many such directories the one above.
const (
	filesInDir = 50
	dirsInDir  = 50
)

// place is a workspace of files of 1 to 4 KB, and its trusted repository.
type place struct {
	t       testing.TB
	dir     string
	files   int
	perDir  int
	round   int
	repo    *git.Repository
	engine  *workspace.Engine
	base    objects.ID
	scratch string
}

// newPlace makes a workspace with its base captured and its engine watching.
func newPlace(t testing.TB, files, perDir int) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{t: t, dir: dir, files: files, perDir: perDir, scratch: filepath.Join(dir, "scratch")}
	for i := range files {
		if i%perDir == 0 {
			p.do(os.MkdirAll(filepath.Dir(p.path(i)), 0o755))
		}
		p.write(i)
	}
	p.do(os.MkdirAll(p.scratch, 0o755))
	p.repo, err = git.Init(t.Context(), filepath.Join(dir, "repo.git"), git.Options{})
	p.do(err)
	t.Cleanup(func() { _ = p.repo.Close() })
	p.importBase()
	return p
}

func (p *place) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) root() string { return filepath.Join(p.dir, "workspace") }

func (p *place) relative(i int) string {
	d := i / p.perDir
	return fmt.Sprintf("d%d/e%d/file%d.txt", d/dirsInDir, d, i)
}

func (p *place) path(i int) string { return filepath.Join(p.root(), p.relative(i)) }

// write gives a file new content of its own.
func (p *place) write(i int) {
	text := fmt.Sprintf("%d %d\n%0*d\n", i, p.round, 1000+i%3000, i*p.round)
	p.do(os.WriteFile(p.path(i), []byte(text), 0o644))
}

// importBase captures the workspace over an empty tree and commits what was captured.
func (p *place) importBase() {
	_, err := p.repo.Store().Write(objects.KindTree, nil)
	p.do(err)
	p.base = p.commit(objects.EmptyTree)
	p.git("read-tree", p.base.String())
}

// commit what the workspace holds, captured over a base, and forget what was in memory of it.
func (p *place) commit(over objects.ID) objects.ID {
	e := p.open(over)
	s, err := e.Capture(p.t.Context(), workspace.Still{})
	p.do(err)
	p.do(e.Close())
	person := objects.Person{Name: "a", Email: "a@example.com", When: s.At}
	id, err := p.repo.WriteCommit(objects.Commit{Tree: s.Tree, Author: person, Committer: person, Message: "Base\n"})
	p.do(err)
	p.repo.Store().Recent().Clear()
	return id
}

// open makes an engine that starts from a base.
func (p *place) open(base objects.ID) *workspace.Engine {
	e, err := engine.Open(p.t.Context(), p.dir, p.repo, base)
	p.do(err)
	return e
}

// watch opens the engine as the watchdog does, and has it know the workspace.
func (p *place) watch() {
	p.engine = p.open(p.base)
	p.t.Cleanup(func() { _ = p.engine.Close() })
	p.do(p.engine.Watch(p.t.Context()))
	_, err := p.engine.Capture(p.t.Context(), workspace.Still{})
	p.do(err)
}

// spread visits n files all over the tree, others in each round.
func (p *place) spread(n int, visit func(i int)) {
	for k := range n {
		visit((k*(p.files/n) + p.round) % p.files)
	}
}

// git runs stock git on the repository with a private index, as people would take checkpoints by it.
func (p *place) git(args ...string) string {
	cmd := exec.Command("git", append([]string{"--work-tree=" + p.root()}, args...)...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+p.repo.Dir(),
		"GIT_INDEX_FILE="+filepath.Join(p.dir, "index"))
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

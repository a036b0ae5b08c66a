// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// attacks plant content that makes stock git, run in the workspace, execute a program of the agent.
func attacks(b *bench, program string) map[string]func() {
	config := func(text string) func() {
		return func() { appendTo(b, ".git/config", text) }
	}
	return map[string]func(){
		"fsmonitor": config("[core]\n\tfsmonitor = " + program + "\n"),
		"hooks": func() {
			for _, hook := range []string{"pre-commit", "post-index-change", "post-checkout", "reference-transaction"} {
				put(b.t, b.root, ".git/hooks/"+hook, "+x #!/bin/sh\nexec "+program+"\n")
			}
		},
		"hooks path": func() {
			put(b.t, b.root, "h/post-index-change", "+x #!/bin/sh\nexec "+program+"\n")
			config("[core]\n\thooksPath = h\n")()
		},
		"clean filter": func() {
			put(b.t, b.root, ".gitattributes", "* filter=evil\n")
			config("[filter \"evil\"]\n\tclean = " + program + "\n\tsmudge = " + program + "\n")()
		},
		"process filter": func() {
			put(b.t, b.root, ".gitattributes", "* filter=evil\n")
			config("[filter \"evil\"]\n\tprocess = " + program + "\n")()
		},
		"info attributes": func() {
			put(b.t, b.root, ".git/info/attributes", "* filter=evil\n")
			config("[filter \"evil\"]\n\tclean = " + program + "\n")()
		},
		"textconv": func() {
			put(b.t, b.root, ".gitattributes", "* diff=evil\n")
			config("[diff \"evil\"]\n\ttextconv = " + program + "\n")()
		},
		"external diff": config("[diff]\n\texternal = " + program + "\n"),
		"diff driver": func() {
			put(b.t, b.root, ".gitattributes", "* diff=evil\n")
			config("[diff \"evil\"]\n\tcommand = " + program + "\n")()
		},
		"gpg program": config("[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = " + program + "\n"),
		"include": func() {
			put(b.t, b.root, "inc", "[core]\n\tfsmonitor = "+program+"\n")
			config("[include]\n\tpath = ../inc\n")()
		},
		"gitfile": func() {
			if err := os.Rename(filepath.Join(b.root, ".git"), filepath.Join(b.root, "real")); err != nil {
				b.t.Fatal(err)
			}
			put(b.t, b.root, ".git", "gitdir: real\n")
			appendTo(b, "real/config", "[core]\n\tfsmonitor = "+program+"\n")
		},
		"nested repository": func() {
			nested := filepath.Join(b.root, "nested")
			runGit(b.t, nil, nil, "init", "-q", nested)
			put(b.t, nested, "file", "x\n")
			runGit(b.t, nil, nil, "-C", nested, "add", "-A")
			runGit(b.t, nil, nil, "-C", nested, "commit", "-q", "-m", "x")
			runGit(b.t, nil, nil, "-C", b.root, "add", "nested")
			appendTo(b, "nested/.git/config", "[core]\n\tfsmonitor = "+program+"\n")
		},
		"alias and pager": config("[alias]\n\tstatus = !" + program + "\n[core]\n\tpager = " + program + "\n"),
	}
}

func appendTo(b *bench, path, text string) {
	b.t.Helper()
	f, err := os.OpenFile(filepath.Join(b.root, path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		b.t.Fatal(err)
	}
}

// TestNothingOfTheWorkspaceIsExecuted runs every operation of the engine over each attack, and then stock git, to see
// that the attack is one.
func TestNothingOfTheWorkspaceIsExecuted(t *testing.T) {
	// Aliases cannot stand in for git's own commands, and a pager needs a terminal.
	harmless := map[string]bool{"alias and pager": true}
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			fired := filepath.Join(t.TempDir(), "fired")
			program := filepath.Join(t.TempDir(), "program")
			put(t, filepath.Dir(program), "program", "+x #!/bin/sh\necho fired >> "+fired+"\ncat\n")
			place := workspace.AgentGit{Commit: b.base, Branch: "main", AuthorName: "a", AuthorEmail: "a@example.com"}
			if err := b.engine.PlaceAgentGit(t.Context(), place); err != nil {
				t.Fatal(err)
			}
			attacks(b, program)[name]()
			put(t, b.root, "README.md", "changed\n")
			everything(t, b)
			if _, err := os.Stat(fired); err == nil {
				t.Fatal("the engine executed the agent's program")
			}
			put(t, b.root, "README.md", "changed again\n")
			for _, args := range [][]string{{"status"}, {"diff"}, {"add", "-A"}, {"commit", "-m", "x"}, {"checkout", "-f"}} {
				stock := exec.Command("git", append([]string{"-C", b.root}, args...)...)
				stock.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
				_ = stock.Run()
			}
			if _, err := os.Stat(fired); (err == nil) == harmless[name] {
				t.Errorf("stock git executed it: %v: the attack proves nothing", err == nil)
			}
			if err := b.engine.PlaceAgentGit(t.Context(), place); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func names(t *testing.T) []string {
	var all []string
	for name := range attacks(&bench{t: t}, "x") {
		all = append(all, name)
	}
	return all
}

// everything runs each operation that touches the workspace or git. The base stays in place: what the attack planted is
// there during all of it.
func everything(t *testing.T, b *bench) {
	t.Helper()
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: stops()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.repo.WriteCommit(objects.Commit{Tree: s.Tree, Parents: []objects.ID{b.base}, Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.repo.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/tidewaiter/chain", New: c}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.repo.Diff(t.Context(), b.base, c); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Restore(t.Context(), c, "README.md"); err != nil {
		t.Fatal(err)
	}
}

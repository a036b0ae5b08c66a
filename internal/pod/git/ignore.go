// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Ignore answers which paths a set of .gitignore files ignores, by asking git itself. Its work tree is a private mirror with only those
// files, and directories for the names in questions. Not for concurrent use.
type Ignore struct {
	runner runner
	dir    string
	tree   string
	// aside is where directories of the mirror wait while git checks their names as files'. It is outside the mirror, where no candidate has a name.
	aside string
	// made are directories of the mirror that stand for candidates.
	made []string

	cmd  *exec.Cmd
	in   *bufio.Writer
	pipe io.Closer
	out  *bufio.Reader
	errs *tail
	stop context.CancelFunc
}

// IgnoreFile is the name of the files with rules.
const IgnoreFile = ".gitignore"

// NewIgnore begins an empty mirror in dir, which it removes first.
func (r *Repository) NewIgnore(dir string) (*Ignore, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear mirror of ignore files: %w", err)
	}
	tree, aside := filepath.Join(dir, "tree"), filepath.Join(dir, "aside")
	for _, d := range []string{tree, aside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("mirror of ignore files: %w", objects.WrapFull(err))
		}
	}
	// A repository of its own, so that no index, exclude file or configuration of another has a say.
	own := runner{git: r.runner.git, dir: filepath.Join(dir, "git")}
	if err := layBare(own.dir); err != nil {
		return nil, fmt.Errorf("mirror of ignore files: %w", objects.WrapFull(err))
	}
	return &Ignore{runner: own, dir: dir, tree: tree, aside: aside}, nil
}

// Add puts the content of the .gitignore file of a directory ("" for the root) into the mirror.
func (i *Ignore) Add(dir string, content []byte) error {
	dir = filepath.Join(i.tree, dir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, IgnoreFile), content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("mirror of ignore files: %w", objects.WrapFull(err))
	}
	return nil
}

// Candidate is a path to check.
type Candidate struct {
	Path string
	// Dir says that it is a directory: rules that end in '/' match only directories.
	Dir bool
}

// Match says for each candidate whether it is ignored. A path without an answer from git is not ignored: the watchdog then captures and checks it.
func (i *Ignore) Match(ctx context.Context, candidates []Candidate) ([]bool, error) {
	undo, err := i.mimic(candidates)
	defer undo()
	if err != nil {
		return nil, fmt.Errorf("mirror of ignore files: %w", err)
	}
	ignored, err := i.ask(ctx, candidates)
	if err == nil || ctx.Err() != nil {
		return ignored, err
	}
	return i.askOneByOne(ctx, candidates)
}

// maxMade bounds the directories made for candidates: their number is the agent's to choose, the volume is not its own.
const maxMade = 4096

// mimic makes the mirror's names directories where the candidates are, and none where they are files, because git looks
// there to learn which is which. A name that cannot be made (its parent is a file of the mirror, or it is too long) is
// one that git finds missing, and treats as a file's. Undo gives directories that had to step aside their name back.
func (i *Ignore) mimic(candidates []Candidate) (undo func(), err error) {
	moved := make(map[string]string)
	undo = func() {
		for path, away := range moved {
			_ = os.Rename(away, path)
		}
		if len(i.made) > maxMade {
			i.clear()
		}
	}
	for n, c := range candidates {
		// No component of a path that was read from a directory is "..", and the mirror holds no links.
		path := i.tree + "/" + c.Path
		if c.Dir {
			made, err := makeMissing(path)
			i.made = append(i.made, made...)
			if errors.Is(objects.WrapFull(err), ErrFull) {
				return undo, objects.WrapFull(err)
			}
		} else if st, err := os.Lstat(path); err == nil && st.IsDir() {
			away := filepath.Join(i.aside, strconv.Itoa(n))
			if err := os.Rename(path, away); err != nil {
				return undo, err
			}
			moved[path] = away
		}
	}
	return undo, nil
}

// clear removes the directories that were made for candidates, the latest first.
func (i *Ignore) clear() {
	for _, path := range slices.Backward(i.made) {
		// One that is not empty holds ignore files: it stays.
		_ = os.Remove(path)
	}
	i.made = nil
}

// makeMissing makes a directory and those above it, and gives the ones that it made, the uppermost first.
func makeMissing(path string) (made []string, err error) {
	err = os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if made, err = makeMissing(filepath.Dir(path)); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if err == nil {
		made = append(made, path)
	}
	return made, err
}

// askOneByOne finds the candidate that ends the process; the others are answered.
func (i *Ignore) askOneByOne(ctx context.Context, candidates []Candidate) ([]bool, error) {
	ignored := make([]bool, len(candidates))
	failed := 0
	for n := range candidates {
		answer, err := i.ask(ctx, candidates[n:n+1])
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("ask for ignored paths: %w", context.Cause(ctx))
		case err == nil:
			ignored[n] = answer[0]
		default:
			// Git ends on a name that it refuses. If it refuses every name, it is not the names.
			if failed++; failed == len(candidates) && failed > 1 || isMissing(i.tree) {
				return nil, fmt.Errorf("ask for ignored paths: %w", err)
			}
		}
	}
	return ignored, nil
}

func isMissing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// ask sends all questions and reads all answers, which come in the same order.
func (i *Ignore) ask(ctx context.Context, candidates []Candidate) ([]bool, error) {
	if i.cmd == nil {
		if err := i.start(); err != nil {
			return nil, err
		}
	}
	release := context.AfterFunc(ctx, i.stop)
	defer release()
	sent := make(chan error, 1)
	go func() { sent <- i.send(candidates) }()
	ignored := make([]bool, len(candidates))
	var err error
	for n := range candidates {
		if ignored[n], err = i.answer(); err != nil {
			break
		}
	}
	if err != nil {
		why := i.errs.String()
		i.end()
		if failed := <-sent; failed != nil {
			why = strings.TrimSpace(why + " " + failed.Error())
		}
		return nil, fmt.Errorf("ask for ignored paths: %s: %w", why, err)
	}
	return ignored, <-sent
}

func (i *Ignore) send(candidates []Candidate) error {
	for _, c := range candidates {
		// "./" keeps a name that begins with ':' or '-' from being taken for something else.
		if _, err := i.in.WriteString("./" + c.Path + "\x00"); err != nil {
			return err
		}
	}
	return i.in.Flush()
}

// answer reads source, line, pattern and path, each ended by NUL. Without a match the first three are empty; a pattern
// with '!' is a match that takes an ignored path back.
func (i *Ignore) answer() (bool, error) {
	var fields [4]string
	for n := range fields {
		field, err := i.out.ReadString(0)
		if err != nil {
			return false, err
		}
		fields[n] = strings.TrimSuffix(field, "\x00")
	}
	return fields[2] != "" && !strings.HasPrefix(fields[2], "!"), nil
}

func (i *Ignore) start() error {
	ctx, stop := context.WithCancel(context.Background())
	cmd := i.runner.command(ctx, call{
		args: []string{"check-ignore", "--stdin", "-z", "--verbose", "--non-matching", "--no-index"},
		env:  []string{"GIT_WORK_TREE=" + i.tree},
		dir:  i.tree,
	})
	i.errs = &tail{}
	cmd.Stderr = i.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return err
	}
	if err := cmd.Start(); err != nil {
		stop()
		return err
	}
	i.cmd, i.stop, i.pipe = cmd, stop, in
	i.in, i.out = bufio.NewWriter(in), bufio.NewReader(out)
	return nil
}

func (i *Ignore) end() {
	if i.cmd == nil {
		return
	}
	i.stop()
	_ = i.pipe.Close()
	// It was killed: how it ended says nothing.
	_ = i.cmd.Wait()
	i.cmd = nil
}

// Close ends the process and removes the mirror.
func (i *Ignore) Close() error {
	i.end()
	return os.RemoveAll(i.dir)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build compiles the cluster's programs from Go modules into the user's cache, once for each state of their
// sources and versions.
package build

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/progress"
)

// keepUnused is how long a build is kept that no checkout uses.
const keepUnused = 14 * 24 * time.Hour

// Product is a set of programs that are built together.
type Product struct {
	// Name of the product, also the beginning of its folder's name.
	Name string
	// Title is what a user reads during its build, and Hint what the build costs.
	Title, Hint string
	// Module is the folder of its Go module, below the driver's sources.
	Module string
	// ModFile is the name of the module file in that folder; go.mod where it is empty.
	ModFile string
	// Sources are the folders below the module that it is compiled from, besides the module files.
	Sources []string
	// Commands are the `go build` calls that make it.
	Commands []Command
	// Links are further names of its programs: link → program.
	Links map[string]string
}

// Command is one `go build`.
type Command struct {
	// Into is the folder of the results, below the product's.
	Into string
	// Packages to build.
	Packages []string
	// Cgo compiles C code as well.
	Cgo bool
	// Tags are build tags.
	Tags string
	// LDFlags are flags of the linker in addition to the flags that strip symbols.
	LDFlags string
}

// Builder builds products.
type Builder struct {
	// Sources is the folder of the driver's sources.
	Sources string
	// Layout is where the results go.
	Layout place.Layout
}

// Folder is the folder of the product's programs. Its name contains a hash of everything that they depend on.
func (b Builder) Folder(p Product) (string, error) {
	sum, err := b.hash(p)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Layout.Builds(), p.Name+"-"+sum), nil
}

// IsBuilt reports whether the product is built.
func (b Builder) IsBuilt(p Product) (bool, error) {
	folder, err := b.Folder(p)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Ensure builds the product as a step of the report unless it is built, and returns its folder.
func (b Builder) Ensure(ctx context.Context, p Product, report *progress.Reporter) (string, error) {
	folder, err := b.Folder(p)
	if err != nil {
		return "", err
	}
	built, err := b.IsBuilt(p)
	if err != nil {
		return "", err
	}
	if built {
		return folder, report.Step(p.Title+": built before", nil, func() error { return touch(folder) })
	}
	counter := &lineCounter{}
	err = report.Step(strings.TrimSpace("Building "+p.Title+" "+p.Hint), counter.String, func() error {
		release, err := place.Hold(b.Layout.Lock(p.Name), func() {
			report.Note("waiting for another process that builds it")
		})
		if err != nil {
			return err
		}
		defer release()
		if built, err := b.IsBuilt(p); err != nil || built {
			return err
		}
		if err := b.build(ctx, p, folder, counter); err != nil {
			return err
		}
		return b.prune(p)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	return folder, nil
}

// build makes the product in a folder beside the final one, which then appears complete or not at all.
func (b Builder) build(ctx context.Context, p Product, folder string, counter *lineCounter) error {
	partial, err := os.MkdirTemp(b.Layout.Builds(), p.Name+"-partial-")
	if err != nil {
		return fmt.Errorf("build folder: %w", err)
	}
	defer os.RemoveAll(partial) //nolint:errcheck // gone already when the build succeeded
	for _, command := range p.Commands {
		if err := b.compile(ctx, p, command, partial, counter); err != nil {
			return err
		}
	}
	for link, program := range p.Links {
		if err := os.Symlink(program, filepath.Join(partial, link)); err != nil {
			return fmt.Errorf("link: %w", err)
		}
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return fmt.Errorf("build folder: %w", err)
	}
	return os.Rename(partial, folder)
}

func (b Builder) compile(ctx context.Context, p Product, c Command, into string, counter *lineCounter) error {
	output := filepath.Join(into, c.Into) + string(filepath.Separator)
	if err := os.MkdirAll(output, 0o755); err != nil {
		return fmt.Errorf("build folder: %w", err)
	}
	command := exec.CommandContext(ctx, "go", arguments(p, c, output)...)
	command.Dir = filepath.Join(b.Sources, p.Module)
	command.Env = append(os.Environ(), environment(c)...)
	var log bytes.Buffer
	command.Stderr = io.MultiWriter(counter, &log)
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, lastLines(log.String(), 20))
	}
	return nil
}

func arguments(p Product, c Command, output string) []string {
	all := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + c.LDFlags), "-o", output}
	if p.ModFile != "" {
		all = append(all, "-modfile", p.ModFile)
	}
	if c.Tags != "" {
		all = append(all, "-tags", c.Tags)
	}
	return append(all, c.Packages...)
}

// environment keeps a workspace or settings of the caller's project out of these modules.
func environment(c Command) []string {
	cgo := "CGO_ENABLED=0"
	if c.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	return []string{cgo, "GOWORK=off", "GOFLAGS="}
}

// hash is of the sources, the module files (and so every dependency), the commands, and the version of Go.
func (b Builder) hash(p Product) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %q %q\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, fmt.Sprint(p.Commands), fmt.Sprint(p.Links))
	module := filepath.Join(b.Sources, p.Module)
	modFile := cmp.Or(p.ModFile, "go.mod")
	for _, name := range []string{modFile, strings.TrimSuffix(modFile, ".mod") + ".sum"} {
		if err := hashFile(h, filepath.Join(module, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	for _, folder := range p.Sources {
		if err := HashFolder(h, filepath.Join(module, folder)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// HashFolder adds the files of a folder to a hash, tests left out.
func HashFolder(h io.Writer, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		return hashFile(h, path)
	})
}

func hashFile(h io.Writer, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	_, err = fmt.Fprintf(h, "%s %d\n%s\n", filepath.Base(path), len(content), content)
	return err
}

// touch marks a build as used.
func touch(folder string) error {
	now := time.Now()
	if err := os.Chtimes(folder, now, now); err != nil {
		return fmt.Errorf("build folder: %w", err)
	}
	return nil
}

// prune removes builds of the product, and what is left of broken off ones, that nobody has used for long.
func (b Builder) prune(p Product) error {
	folders, err := filepath.Glob(filepath.Join(b.Layout.Builds(), p.Name+"-*"))
	if err != nil {
		return fmt.Errorf("old builds: %w", err)
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < keepUnused {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("old build: %w", err)
		}
	}
	return nil
}

// lineCounter counts what `go build -v` prints: a line for each module that it downloads and each package that it
// compiles. The tool writes whole lines.
type lineCounter struct{ downloads, packages atomic.Int64 }

func (c *lineCounter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if bytes.HasPrefix(line, []byte("go: downloading ")) {
			c.downloads.Add(1)
		} else {
			c.packages.Add(1)
		}
	}
	return len(p), nil
}

func (c *lineCounter) String() string {
	return fmt.Sprintf("%d modules downloaded, %d packages compiled", c.downloads.Load(), c.packages.Load())
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH, as a container's shell would.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// MergeEnv returns base with each variable of over in place of the one of the same name. A name that came twice comes once:
// which of two a program sees would be its library's choice.
func MergeEnv(base, over []string) ([]string, error) {
	for _, variable := range over {
		if i := strings.IndexByte(variable, '='); i < 1 || strings.IndexByte(variable, 0) >= 0 {
			return nil, fmt.Errorf("environment variable %.64q is not NAME=value", variable)
		}
	}
	last := map[string]int{}
	all := slices.Concat(base, over)
	for i, variable := range all {
		last[name(variable)] = i
	}
	merged := make([]string, 0, len(all))
	for i, variable := range all {
		if last[name(variable)] == i {
			merged = append(merged, variable)
		}
	}
	return merged, nil
}

func name(variable string) string {
	before, _, _ := strings.Cut(variable, "=")
	return before
}

// resolve finds the file to execute, and says what is wrong in words that lead to the mistake.
func (c Command) resolve() (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", errors.New("the command is empty")
	}
	for i, arg := range c.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return "", fmt.Errorf("argument %d of the command holds a zero byte", i)
		}
	}
	if err := c.checkDir(); err != nil {
		return "", err
	}
	file := c.Argv[0]
	if strings.Contains(file, "/") {
		return file, executable(c.inDir(file))
	}
	path := c.path()
	var denied error
	for _, dir := range filepath.SplitList(path) {
		candidate := c.inDir(filepath.Join(dir, file))
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		if denied == nil && !errors.Is(err, os.ErrNotExist) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("command %q: %w in PATH (%s)", file, errNotFound, path)
}

var errNotFound = errors.New("not found")

// CommandError says that a command cannot be executed because of what it is: another one is needed. Other errors of Start are the machine's or the container's.
type CommandError struct{ err error }

// Error says what is wrong with the command.
func (e *CommandError) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *CommandError) Unwrap() error { return e.err }

func (c Command) checkDir() error {
	info, err := os.Stat(c.Dir)
	switch {
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("working directory %q is not an absolute path", c.Dir)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("working directory %q does not exist", c.Dir)
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %q is not a directory", c.Dir)
	}
	return nil
}

// inDir is a path as the command sees it from its directory.
func (c Command) inDir(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}

func (c Command) path() string {
	for _, variable := range c.Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

// executable checks what exec would, for a clearer answer.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("command %q: %w", path, os.ErrNotExist)
	case err != nil:
		return fmt.Errorf("command: %w", err)
	case info.IsDir():
		return fmt.Errorf("command %q is a directory", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("command %q is not a regular file", path)
	case info.Mode()&0o111 == 0 || unix.Access(path, unix.X_OK) != nil:
		return fmt.Errorf("command %q: %w: it is not executable for uid %d", path, os.ErrPermission, os.Getuid())
	}
	return nil
}

// explain says what an error of exec means for a file that is there and executable.
func explain(path string, err error) error {
	said := explained(path, err)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOEXEC) || errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EACCES) {
		return &CommandError{said}
	}
	return said
}

func explained(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("execute %q: its interpreter (the #! line, or the dynamic loader of a binary) is not in this image: %w", path, err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("execute %q: neither a binary for linux/%s nor a script with a #! line: %w", path, runtime.GOARCH, err)
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("execute %q: arguments and environment are too large (128 KiB each at most): %w", path, err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("execute %q: the limit of processes is reached: %w", path, err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("execute %q: not permitted; is it on a volume without exec?: %w", path, err)
	}
	return fmt.Errorf("execute %q: %w", path, err)
}

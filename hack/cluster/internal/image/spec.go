// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds container images without a container engine. An image has a layer of Debian packages, a layer of files, and a
// configuration, as an OCI archive that containerd imports.
package image

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Spec describes an image.
type Spec struct {
	// Name with tag.
	Name string
	// Files are added on top of the layers below.
	Files []File
	// Entrypoint and Command of a container.
	Entrypoint, Command []string
	// User is the numeric user and group ("65532" or "65532:65532") that a container runs as.
	User string
	// Env are variables, as NAME=VALUE.
	Env []string
	// Folder that a container starts in.
	Folder string
	// Architecture of the programs, as Go names it; empty means the architecture of this machine.
	Architecture string
}

// architecture of the image, as Go names it.
func (s Spec) architecture() string { return cmp.Or(s.Architecture, runtime.GOARCH) }

// File is one file of the machine that becomes part of an image, or a folder with all that is in it.
type File struct {
	Source string // on the machine
	Target string // in the image, absolute
	Mode   int64
}

// ParseFile reads SOURCE:TARGET[:MODE]; the mode is octal, applies to each file if the source is a folder, and defaults to 0755.
func ParseFile(text string) (File, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || !path.IsAbs(parts[1]) {
		return File{}, fmt.Errorf("--file %q: it must be SOURCE:TARGET or SOURCE:TARGET:MODE with an absolute target", text)
	}
	file := File{Source: parts[0], Target: path.Clean(parts[1]), Mode: 0o755}
	if len(parts) == 3 {
		mode, err := strconv.ParseInt(parts[2], 8, 64)
		if err != nil || mode < 0 || mode > 0o7777 {
			return File{}, fmt.Errorf("--file %q: the mode must be octal, as in 0644", text)
		}
		file.Mode = mode
	}
	return file, nil
}

// Validate reports everything that is wrong with the specification.
func (s Spec) Validate() error {
	var errs []error
	if repository, tag, ok := strings.Cut(s.Name[strings.LastIndexByte(s.Name, '/')+1:], ":"); !ok || repository == "" || tag == "" || tag == "latest" {
		errs = append(errs, fmt.Errorf("--name %q: it must have a tag other than latest, which Kubernetes would try to pull", s.Name))
	}
	if _, _, err := s.ids(); err != nil {
		errs = append(errs, err)
	}
	for _, variable := range s.Env {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf("--env %q: it must be NAME=VALUE", variable))
		}
	}
	return errors.Join(errs...)
}

// ids are the numeric user and group.
func (s Spec) ids() (user, group int, err error) {
	first, second, both := strings.Cut(s.User, ":")
	if !both {
		second = first
	}
	user, userErr := strconv.Atoi(first)
	group, groupErr := strconv.Atoi(second)
	if userErr != nil || groupErr != nil || user < 0 || group < 0 {
		return 0, 0, fmt.Errorf("--user %q: it must be a number or NUMBER:NUMBER, so that Kubernetes can see that it is not root", s.User)
	}
	return user, group, nil
}

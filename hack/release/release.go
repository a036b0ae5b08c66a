// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names in a release directory.
const (
	imagesDir      = "images"
	sbomDir        = "sbom"
	manifestFile   = "install.yaml"
	provenanceFile = "provenance.json"
	sumsFile       = "SHA256SUMS"
	pushedDir      = "pushed"
)

// product is the name of the image, as the committed manifest has it.
const product = "tidewaiter"

// versions are those of semantic versioning, without a "v".
var versions = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// images of the committed manifest.
var images = regexp.MustCompile(`\b` + product + `:\d+\.\d+\.\d+\b`)

// release is what a release directory is made of.
type release struct {
	version, commit string
	changed         bool
	manifest, chart string
	work, out       string
}

// assemble makes the directory. Nothing in it depends on when or where it is made.
func (r release) assemble() error {
	switch {
	case !versions.MatchString(r.version):
		return fmt.Errorf("VERSION %q must be like 0.1.0 or 0.1.0-rc.1, without a v", r.version)
	case r.commit == "" || r.manifest == "" || r.chart == "" || r.work == "" || r.out == "":
		return errors.New("assemble: --commit, --manifest, --chart, --work and --out are needed")
	}
	if _, err := os.Stat(r.out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("OUT %s exists already, or cannot be looked at (%v): name a directory that is not there yet", r.out, err)
	}
	built, err := builds(r.work)
	if err != nil {
		return err
	}
	// A release that fails leaves nothing behind.
	out := r.out
	r.out += ".partial"
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("remove what an earlier attempt left: %w", err)
	}
	err = r.fill(built)
	if err == nil {
		err = writeSums(r.out)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(r.out))
	}
	return os.Rename(r.out, out)
}

// fill the directory.
func (r release) fill(built []build) error {
	for _, dir := range []string{imagesDir, sbomDir} {
		if err := os.MkdirAll(filepath.Join(r.out, dir), 0o755); err != nil {
			return fmt.Errorf("make the release directory: %w", err)
		}
	}
	digest, err := writeLayout(filepath.Join(r.out, imagesDir, product), r.version, built)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	manifest, err := os.ReadFile(r.manifest)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if manifest, err = named(manifest, product+":"+r.version+"@"+digest); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, manifestFile), manifest, 0o644); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if err := r.writeChart(digest); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	for _, b := range built {
		if err := r.writeSBOMs(b); err != nil {
			return fmt.Errorf("SBOM: %w", err)
		}
	}
	if err := r.writeProvenance(digest, built); err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	return nil
}

// named is a manifest with another image.
func named(manifest []byte, image string) ([]byte, error) {
	if !images.Match(manifest) {
		return nil, fmt.Errorf("the manifest names no image like %s:0.1.0", product)
	}
	return images.ReplaceAllLiteral(manifest, []byte(image)), nil
}

// build is what was built for one architecture.
type build struct {
	architecture string
	// programs are paths of the programs, sorted.
	programs []string
	// image is the path of the image's archive, packages that of the list of its Debian packages.
	image, packages string
}

// builds lists what is in a work directory, by architecture.
func builds(work string) ([]build, error) {
	entries, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	var all []build
	for _, e := range entries {
		b := build{architecture: e.Name(), image: filepath.Join(work, e.Name(), "image.tar"), packages: filepath.Join(work, e.Name(), "image.tar.packages.json")}
		files, err := os.ReadDir(filepath.Join(work, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read what was built: %w", err)
		}
		for _, file := range files {
			if !strings.HasPrefix(file.Name(), "image.tar") {
				b.programs = append(b.programs, filepath.Join(work, e.Name(), file.Name()))
			}
		}
		if len(b.programs) == 0 {
			return nil, fmt.Errorf("no program was built for %s", b.architecture)
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing was built in %s", work)
	}
	return all, nil
}

// writeSums writes the checksums of all files of a release, for sha256sum --check.
func writeSums(dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		sum, err := sumOf(name)
		if err != nil {
			return fmt.Errorf("checksums: %w", err)
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return fmt.Errorf("checksums: %w", err)
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, relative)
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), out.Bytes(), 0o644)
}

// sumOf is the SHA-256 of a file, in hexadecimal digits.
func sumOf(name string) (string, error) {
	content, err := os.ReadFile(name)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}

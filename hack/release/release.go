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
	programsDir    = "bin"
	provenanceFile = "provenance.json"
	sumsFile       = "SHA256SUMS"
	listFile       = "images.txt"
	pushedDir      = "pushed"
)

// product is the name of the product's image, as the committed manifest has it. The image of a runtime's agents is product-RUNTIME.
const product = "tidewaiter"

// client is the program that users run on their own machine.
const client = "tidewaiter"

// versions are those of semantic versioning, without a "v".
var versions = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// released are images in the committed manifest.
var released = regexp.MustCompile(`\b` + product + `:\d+\.\d+\.\d+\b`)

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
	case r.commit == "" || r.work == "" || r.out == "":
		return errors.New("assemble: --commit, --work and --out are needed")
	}
	if _, err := os.Stat(r.out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("OUT %s exists already, or cannot be looked at (%v): name a directory that is not there yet", r.out, err)
	}
	images, err := imagesIn(r.work)
	if err != nil {
		return err
	}
	// A release that fails leaves nothing behind.
	out := r.out
	r.out += ".partial"
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("remove what an earlier attempt left: %w", err)
	}
	err = r.fill(images)
	if err == nil {
		err = writeSums(r.out)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(r.out))
	}
	return os.Rename(r.out, out)
}

// fill the directory.
func (r release) fill(images []image) error {
	for _, dir := range []string{imagesDir, sbomDir} {
		if err := os.MkdirAll(filepath.Join(r.out, dir), 0o755); err != nil {
			return fmt.Errorf("make the release directory: %w", err)
		}
	}
	var list bytes.Buffer
	for n := range images {
		i := &images[n]
		var err error
		if i.digest, err = writeLayout(filepath.Join(r.out, imagesDir, i.name), r.version, i.builds); err != nil {
			return fmt.Errorf("image %s: %w", i.name, err)
		}
		fmt.Fprintln(&list, r.reference(*i))
		for _, b := range i.builds {
			if err := r.writeSBOMs(i.name, b); err != nil {
				return fmt.Errorf("SBOM of %s: %w", i.name, err)
			}
		}
		if i.name == product {
			if err := r.writeManifest(r.reference(*i)); err != nil {
				return fmt.Errorf("manifest: %w", err)
			}
			if err := r.writeChart(i.digest); err != nil {
				return fmt.Errorf("chart: %w", err)
			}
			for _, b := range i.builds {
				if err := r.writeClient(b); err != nil {
					return fmt.Errorf("program: %w", err)
				}
			}
		}
	}
	if err := os.WriteFile(filepath.Join(r.out, listFile), list.Bytes(), 0o644); err != nil {
		return fmt.Errorf("list of images: %w", err)
	}
	if err := r.writeProvenance(images); err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	return nil
}

// reference is an image's name with version and digest.
func (r release) reference(i image) string { return i.name + ":" + r.version + "@" + i.digest }

// writeManifest writes the manifest that installs the product's image.
func (r release) writeManifest(reference string) error {
	manifest, err := os.ReadFile(r.manifest)
	if err != nil {
		return err
	}
	if manifest, err = named(manifest, reference); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, manifestFile), manifest, 0o644)
}

// writeClient copies the program that users run.
func (r release) writeClient(b build) error {
	for _, program := range b.programs {
		if filepath.Base(program) != client {
			continue
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(r.out, programsDir), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.out, programsDir, client+"-linux-"+b.architecture), content, 0o755)
	}
	return fmt.Errorf("%s was not built for %s", client, b.architecture)
}

// named is a manifest with another image.
func named(manifest []byte, reference string) ([]byte, error) {
	if !released.Match(manifest) {
		return nil, fmt.Errorf("the manifest names no image like %s:0.1.0", product)
	}
	return released.ReplaceAllLiteral(manifest, []byte(reference)), nil
}

// image is one image of a release.
type image struct {
	name   string
	builds []build
	// digest of the image for all architectures; known when its layout is written.
	digest string
}

// build is what was built of an image for one architecture.
type build struct {
	architecture string
	// programs are paths of the programs of this project, sorted.
	programs []string
	// archive is the path of the image's archive, debian and npm are those of the lists of its packages. Only an agent's image has the latter.
	archive, debian, npm string
}

// imagesIn lists what is in a work directory: IMAGE/ARCHITECTURE with programs and image.tar.
func imagesIn(work string) (images []image, err error) {
	names, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	for _, name := range names {
		i := image{name: name.Name()}
		if i.builds, err = buildsIn(filepath.Join(work, i.name)); err != nil {
			return nil, err
		}
		images = append(images, i)
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("nothing was built in %s", work)
	}
	return images, nil
}

func buildsIn(dir string) (builds []build, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	for _, e := range entries {
		below := filepath.Join(dir, e.Name())
		b := build{architecture: e.Name(), archive: filepath.Join(below, "image.tar"), debian: filepath.Join(below, "image.tar.packages.json"), npm: filepath.Join(below, "image.tar.npm.json")}
		files, err := os.ReadDir(below)
		if err != nil {
			return nil, fmt.Errorf("read what was built: %w", err)
		}
		for _, file := range files {
			if !strings.HasPrefix(file.Name(), "image.tar") {
				b.programs = append(b.programs, filepath.Join(below, file.Name()))
			}
		}
		builds = append(builds, b)
	}
	if len(builds) == 0 {
		return nil, fmt.Errorf("%s: built for no architecture", dir)
	}
	return builds, nil
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

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// debianPackage is a row of the list that comes with an image's archive.
type debianPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	SHA256       string `json:"sha256"`
}

// npmPackage is a row of the list that comes with the archive of an agent's image.
type npmPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// SHA512 of the package's file, in hexadecimal digits; empty for a package that another one has in it.
	SHA512 string `json:"sha512"`
}

// url is the package's purl.
func (p npmPackage) url() string {
	return "pkg:npm/" + strings.Replace(p.Name, "@", "%40", 1) + "@" + strings.ReplaceAll(p.Version, "+", "%2B")
}

// writeSBOMs writes what an image and each program in it are made of, as CycloneDX documents. They have no time and no serial number, so that the
// same release has the same bytes.
func (r release) writeSBOMs(name string, b build) error {
	parts := []cyclonedx.Component{}
	for _, program := range b.programs {
		modules, err := modulesOf(program)
		if err != nil {
			return err
		}
		sum, err := sumOf(program)
		if err != nil {
			return err
		}
		component := r.component(cyclonedx.ComponentTypeApplication, filepath.Base(program))
		component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
		if err := r.writeSBOM(filepath.Base(program)+"-linux-"+b.architecture, component, modules); err != nil {
			return err
		}
		component.Components = &modules
		parts = append(parts, component)
	}
	debian, err := b.debianPackages()
	if err != nil {
		return err
	}
	for _, p := range debian {
		url := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", p.Name, strings.ReplaceAll(p.Version, "+", "%2B"), p.Architecture)
		parts = append(parts, library(p.Name, p.Version, url, cyclonedx.HashAlgoSHA256, p.SHA256))
	}
	npm, err := b.npmPackages()
	if err != nil {
		return err
	}
	bundled, err := b.bundled(npm)
	if err != nil {
		return err
	}
	for _, p := range append(npm, bundled...) {
		parts = append(parts, library(p.Name, p.Version, p.url(), cyclonedx.HashAlgoSHA512, p.SHA512))
	}
	return r.writeSBOM("image-"+name+"-linux-"+b.architecture, r.component(cyclonedx.ComponentTypeContainer, name), parts)
}

// library is a package that comes from elsewhere. sum may be empty.
func library(name, version, url string, algorithm cyclonedx.HashAlgorithm, sum string) cyclonedx.Component {
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url}
	if sum != "" {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: algorithm, Value: sum}}
	}
	return c
}

// component of this project.
func (r release) component(kind cyclonedx.ComponentType, name string) cyclonedx.Component {
	return cyclonedx.Component{BOMRef: product + "/" + name, Type: kind, Name: name, Version: r.version}
}

func (r release) writeSBOM(name string, of cyclonedx.Component, parts []cyclonedx.Component) error {
	document := cyclonedx.NewBOM()
	document.Metadata = &cyclonedx.Metadata{Component: &of}
	document.Components = &parts
	file, err := os.Create(filepath.Join(r.out, sbomDir, name+".cdx.json"))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // closed below where it matters
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(document); err != nil {
		return err
	}
	return file.Close()
}

// modulesOf are the Go modules that a program is linked of, and the standard library, as the program itself says.
func modulesOf(program string) ([]cyclonedx.Component, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	module := func(path, version, sum string) cyclonedx.Component {
		c := library(path, version, "pkg:golang/"+path+"@"+version, "", "")
		if sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
		}
		return c
	}
	modules := []cyclonedx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		modules = append(modules, module(dep.Path, dep.Version, dep.Sum))
	}
	return modules, nil
}

// debianPackages of the image.
func (b build) debianPackages() (packages []debianPackage, err error) {
	return packages, readList(b.debian, &packages)
}

// npmPackages of the image: those that were downloaded. The product's has none.
func (b build) npmPackages() (packages []npmPackage, err error) {
	if err := readList(b.npm, &packages); !errors.Is(err, fs.ErrNotExist) {
		return packages, err
	}
	return nil, nil
}

func readList(name string, packages any) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, packages); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// packageFile is the file in the image by which an npm package says what it is.
var packageFile = regexp.MustCompile(`(^|/)node_modules/(@[^/]+/)?[^/]+/package\.json$`)

// bundled are the npm packages in the image that came inside of others, sorted.
func (b build) bundled(known []npmPackage) (packages []npmPackage, err error) {
	if len(known) == 0 {
		return nil, nil // no program of npm is in it
	}
	built, err := b.image()
	if err != nil {
		return nil, err
	}
	layers, err := built.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		found, err := packagesIn(l)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if !slices.ContainsFunc(known, func(k npmPackage) bool { return k.Name == p.Name && k.Version == p.Version }) {
				packages = append(packages, p)
			}
		}
	}
	slices.SortFunc(packages, func(a, b npmPackage) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(packages), nil
}

// packagesIn are the npm packages that are unpacked in a layer.
func packagesIn(layer v1.Layer) (packages []npmPackage, err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer content.Close() //nolint:errcheck // only read
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("layer: %w", err)
		}
		if header.Typeflag != tar.TypeReg || !packageFile.MatchString(header.Name) {
			continue
		}
		var p npmPackage
		if err := json.NewDecoder(in).Decode(&p); err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
		p.SHA512 = ""
		if p.Name != "" && p.Version != "" {
			packages = append(packages, p)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// debianPackage is a row of the list that comes with an image's archive.
type debianPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	SHA256       string `json:"sha256"`
}

// writeSBOMs writes what each program and the image of an architecture are made of, as CycloneDX documents. They have no time and no serial number, so
// that the same release has the same bytes.
func (r release) writeSBOMs(b build) error {
	image := []cyclonedx.Component{}
	for _, program := range b.programs {
		modules, err := modulesOf(program)
		if err != nil {
			return err
		}
		name := filepath.Base(program)
		sum, err := sumOf(program)
		if err != nil {
			return err
		}
		component := r.component(cyclonedx.ComponentTypeApplication, name)
		component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
		if err := r.writeSBOM(name+"-linux-"+b.architecture, component, modules); err != nil {
			return err
		}
		component.Components = &modules
		image = append(image, component)
	}
	packages, err := b.debianPackages()
	if err != nil {
		return err
	}
	for _, p := range packages {
		reference := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", p.Name, strings.ReplaceAll(p.Version, "+", "%2B"), p.Architecture)
		image = append(image, cyclonedx.Component{
			BOMRef: reference, Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: reference,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: p.SHA256}},
		})
	}
	return r.writeSBOM("image-linux-"+b.architecture, r.component(cyclonedx.ComponentTypeContainer, product), image)
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
		reference := "pkg:golang/" + path + "@" + version
		c := cyclonedx.Component{BOMRef: reference, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: reference}
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
	content, err := os.ReadFile(b.packages)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &packages); err != nil {
		return nil, fmt.Errorf("%s: %w", b.packages, err)
	}
	return packages, nil
}

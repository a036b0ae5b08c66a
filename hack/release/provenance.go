// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Types of an in-toto statement with SLSA provenance: https://slsa.dev/spec/v1.0/provenance.
const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	buildType      = "https://tidewaiter.dev/release/v1"
	builder        = "https://tidewaiter.dev/hack/release"
)

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		ResolvedDependencies []resource     `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// writePredicate writes what the provenance of a release says about its images: the part that cosign attaches to each of them.
func writePredicate(out io.Writer, dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, provenanceFile))
	if err != nil {
		return fmt.Errorf("%s is not a release directory: %w", dir, err)
	}
	var s struct {
		Predicate json.RawMessage `json:"predicate"`
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return fmt.Errorf("%s: %w", provenanceFile, err)
	}
	_, err = out.Write(s.Predicate)
	return err
}

// writeProvenance says what the release was made of: the commit, the Go that built it, and the packages of Debian and npm. It is signed when it is
// pushed, where that is wanted.
func (r release) writeProvenance(images []image) error {
	s := statement{Type: statementType, PredicateType: provenanceType}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]any{"version": r.version, "changedFromCommit": r.changed}
	definition.ResolvedDependencies = []resource{{Name: "source", Digest: map[string]string{"gitCommit": r.commit}}}
	s.Predicate.RunDetails.Builder.ID = builder
	known := map[string]bool{}
	for _, i := range images {
		s.Subject = append(s.Subject, resource{Name: i.name, Digest: digestOf(i.digest)})
		if i.name == product {
			for _, name := range []string{manifestFile, chartFile(r.version)} {
				sum, err := sumOf(filepath.Join(r.out, name))
				if err != nil {
					return err
				}
				s.Subject = append(s.Subject, resource{Name: name, Digest: map[string]string{"sha256": sum}})
			}
		}
		for _, b := range i.builds {
			for _, program := range b.programs {
				info, err := buildinfo.ReadFile(program)
				if err != nil {
					return fmt.Errorf("%s: %w", program, err)
				}
				definition.ExternalParameters["go"] = strings.TrimPrefix(info.GoVersion, "go")
				sum, err := sumOf(program)
				if err != nil {
					return err
				}
				s.Subject = append(s.Subject, resource{Name: filepath.Base(program) + "-linux-" + b.architecture, Digest: map[string]string{"sha256": sum}})
			}
			dependencies, err := b.dependencies()
			if err != nil {
				return err
			}
			for _, d := range dependencies { // agents share packages
				if !known[d.Name] {
					known[d.Name] = true
					definition.ResolvedDependencies = append(definition.ResolvedDependencies, d)
				}
			}
		}
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, provenanceFile), append(content, '\n'), 0o644)
}

// dependencies are the packages that an image was made of.
func (b build) dependencies() (all []resource, err error) {
	debian, err := b.debianPackages()
	if err != nil {
		return nil, err
	}
	for _, p := range debian {
		all = append(all, resource{
			Name: fmt.Sprintf("%s_%s_%s.deb", p.Name, p.Version, p.Architecture), Digest: map[string]string{"sha256": p.SHA256},
		})
	}
	npm, err := b.npmPackages()
	for _, p := range npm {
		all = append(all, resource{Name: p.Name + "@" + p.Version, URI: p.url(), Digest: map[string]string{"sha512": p.SHA512}})
	}
	return all, err
}

func digestOf(image string) map[string]string {
	algorithm, value, _ := strings.Cut(image, ":")
	return map[string]string{algorithm: value}
}

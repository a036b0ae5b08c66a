// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// chartFile is the name of the packed chart of a version.
func chartFile(version string) string { return product + "-" + version + ".tgz" }

// writeChart packs the chart. It has the version of the release and the digest of its image.
func (r release) writeChart(digest string) error {
	chart := map[string][]byte{}
	err := filepath.WalkDir(r.chart, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(r.chart, path)
		if err == nil {
			chart[filepath.ToSlash(relative)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, l := range []line{
		{"Chart.yaml", `version: .*`, "version: " + r.version},
		{"Chart.yaml", `appVersion: .*`, `appVersion: "` + r.version + `"`},
		{"values.yaml", `  digest: ""`, "  digest: " + digest},
	} {
		if err := l.replace(chart); err != nil {
			return err
		}
	}
	return writePacked(filepath.Join(r.out, chartFile(r.version)), chart)
}

// pushedChart writes the chart of a release with the repository that the image was pushed to.
func pushedChart(released, to, repository string) error {
	chart, err := readPacked(released)
	if err != nil {
		return err
	}
	if err := (line{"values.yaml", "  repository: " + product, "  repository: " + repository}).replace(chart); err != nil {
		return err
	}
	return writePacked(to, chart)
}

// line is a line of a file, and what stands there instead.
type line struct{ file, was, now string }

// replace the line, which is there once.
func (l line) replace(files map[string][]byte) error {
	pattern, err := regexp.Compile(`(?m)^` + l.was + `$`)
	if err != nil {
		return err
	}
	if n := len(pattern.FindAllIndex(files[l.file], -1)); n != 1 {
		return fmt.Errorf("%s has %d lines %q, and one is wanted", l.file, n, l.was)
	}
	files[l.file] = pattern.ReplaceAllLiteral(files[l.file], []byte(l.now))
	return nil
}

// writePacked packs a chart as Helm does, in a folder of its name. The same files give the same bytes.
func writePacked(name string, chart map[string][]byte) error {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, path := range slices.Sorted(maps.Keys(chart)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: product + "/" + path, Mode: 0o644, Size: int64(len(chart[path])), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(chart[path]); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o644)
}

// readPacked reads the files of a packed chart, by path below its folder.
func readPacked(name string) (map[string][]byte, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	chart := map[string][]byte{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return chart, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if chart[strings.TrimPrefix(header.Name, product+"/")], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}

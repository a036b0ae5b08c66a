// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Media types and annotations of the OCI image specification, and containerd's annotation for the full name.
const (
	typeIndex     = "application/vnd.oci.image.index.v1+json"
	typeManifest  = "application/vnd.oci.image.manifest.v1+json"
	typeConfig    = "application/vnd.oci.image.config.v1+json"
	typeLayer     = "application/vnd.oci.image.layer.v1.tar"
	annotationTag = "org.opencontainers.image.ref.name"
	annotationRef = "io.containerd.image.name"
)

// descriptor points to a blob of the archive.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blob is a part of the archive that is named by its hash.
type blob struct {
	digest string
	size   int64
	open   func() (io.ReadCloser, error)
}

func (b blob) describe(mediaType string) descriptor {
	return descriptor{MediaType: mediaType, Digest: b.digest, Size: b.size}
}

// Write writes the image as an OCI archive. base, if not empty, is the path of its first layer.
func Write(out io.Writer, spec Spec, base string) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	var layers []blob
	if base != "" {
		layer, err := fileBlob(base)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	files, err := fileLayer(spec, base == "")
	if err != nil {
		return err
	}
	layers = append(layers, bytesBlob(files))
	config, manifest, err := describe(spec, layers)
	if err != nil {
		return err
	}
	return writeArchive(out, spec.Name, manifest, append(layers, config))
}

// describe makes the image's configuration and manifest.
func describe(spec Spec, layers []blob) (config, manifest blob, err error) {
	var digests []string
	var descriptors []descriptor
	for _, layer := range layers {
		// Layers are not compressed, so that their hash is the same before and after unpacking.
		digests = append(digests, layer.digest)
		descriptors = append(descriptors, layer.describe(typeLayer))
	}
	config, err = jsonBlob(map[string]any{
		"architecture": spec.architecture(),
		"os":           "linux",
		"config": map[string]any{
			"User": spec.User, "Env": environment(spec), "Entrypoint": spec.Entrypoint, "Cmd": spec.Command, "WorkingDir": spec.Folder,
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	if err != nil {
		return blob{}, blob{}, err
	}
	manifest, err = jsonBlob(map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": config.describe(typeConfig), "layers": descriptors,
	})
	return config, manifest, err
}

func environment(spec Spec) []string {
	for _, variable := range spec.Env {
		if strings.HasPrefix(variable, "PATH=") {
			return spec.Env
		}
	}
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, spec.Env...)
}

func writeArchive(out io.Writer, name string, manifest blob, others []blob) error {
	root := manifest.describe(typeManifest)
	root.Annotations = map[string]string{annotationRef: name, annotationTag: name[strings.LastIndexByte(name, ':')+1:]}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{root}})
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	archive := tar.NewWriter(out)
	if err := writeEntry(archive, "oci-layout", bytesBlob([]byte(`{"imageLayoutVersion":"1.0.0"}`))); err != nil {
		return err
	}
	if err := writeEntry(archive, "index.json", bytesBlob(index)); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, b := range append(others, manifest) {
		if written[b.digest] {
			continue
		}
		written[b.digest] = true
		if err := writeEntry(archive, "blobs/"+strings.Replace(b.digest, ":", "/", 1), b); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

func writeEntry(archive *tar.Writer, name string, b blob) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: b.size, ModTime: time.Unix(0, 0)}); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	content, err := b.open()
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer content.Close() //nolint:errcheck // only read
	if _, err := io.Copy(archive, content); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// fileLayer is the layer of the image's own files and users. Without packages below, it also has the folders that
// programs take for granted.
func fileLayer(spec Spec, bare bool) ([]byte, error) {
	var out bytes.Buffer
	layer := tar.NewWriter(&out)
	seen := map[string]bool{}
	user, group, err := spec.ids()
	if err != nil {
		return nil, err
	}
	if bare {
		if err := folders(layer, seen, "/etc", 0o755); err != nil {
			return nil, err
		}
		if err := folders(layer, seen, "/tmp", 0o1777); err != nil {
			return nil, err
		}
	}
	users := accounts(user, group)
	for _, name := range slices.Sorted(maps.Keys(users)) { // in order: the same image is to have the same hash
		if err := entry(layer, name, 0o644, []byte(users[name])); err != nil {
			return nil, err
		}
	}
	files, err := expand(spec.Files)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file.Source)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		if bare {
			if err := folders(layer, seen, path.Dir(file.Target), 0o755); err != nil {
				return nil, err
			}
		}
		if err := entry(layer, file.Target, file.Mode, content); err != nil {
			return nil, err
		}
	}
	if err := layer.Close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return out.Bytes(), nil
}

// expand gives the files in the place of their folders, in order: the same image is to have the same hash.
func expand(given []File) (files []File, err error) {
	for _, file := range given {
		err := filepath.WalkDir(file.Source, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			below, err := filepath.Rel(file.Source, name)
			if below != "." && !entry.Type().IsRegular() {
				return fmt.Errorf("%s is not a regular file", name)
			}
			files = append(files, File{Source: name, Target: path.Join(file.Target, filepath.ToSlash(below)), Mode: file.Mode})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
	}
	return files, nil
}

// accounts are the users and groups that programs can look up: root, nobody, and the image's own.
func accounts(user, group int) map[string]string {
	passwd := "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	groups := "root:x:0:\nnogroup:x:65534:\n"
	if user != 0 && user != 65534 {
		passwd += fmt.Sprintf("user:x:%d:%d:user:/tmp:/bin/sh\n", user, group)
	}
	if group != 0 && group != 65534 {
		groups += fmt.Sprintf("user:x:%d:\n", group)
	}
	return map[string]string{"/etc/passwd": passwd, "/etc/group": groups, "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
}

// folders adds a folder and those above it.
func folders(layer *tar.Writer, seen map[string]bool, folder string, mode int64) error {
	if folder == "/" || seen[folder] {
		return nil
	}
	if err := folders(layer, seen, path.Dir(folder), 0o755); err != nil {
		return err
	}
	seen[folder] = true
	header := &tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(folder, "/") + "/", Mode: mode, ModTime: time.Unix(0, 0)}
	if err := layer.WriteHeader(header); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	return nil
}

func entry(layer *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := layer.WriteHeader(header); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	if _, err := layer.Write(content); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	return nil
}

func jsonBlob(value any) (blob, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return blob{}, fmt.Errorf("image description: %w", err)
	}
	return bytesBlob(content), nil
}

func bytesBlob(content []byte) blob {
	sum := sha256.Sum256(content)
	return blob{
		digest: "sha256:" + hex.EncodeToString(sum[:]),
		size:   int64(len(content)),
		open:   func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

func fileBlob(name string) (blob, error) {
	file, err := os.Open(name)
	if err != nil {
		return blob{}, fmt.Errorf("layer: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return blob{}, fmt.Errorf("layer: %w", err)
	}
	return blob{
		digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)),
		size:   size,
		open:   func() (io.ReadCloser, error) { return os.Open(name) },
	}, nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of an index: the version, and containerd's for the full name.
const (
	annotationVersion = "org.opencontainers.image.ref.name"
	annotationName    = "io.containerd.image.name"
)

// writeLayout writes an OCI layout with one image for all architectures, and returns its digest.
func writeLayout(dir, version string, built []build) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range built {
		compressed, err := b.compressed()
		if err != nil {
			return "", fmt.Errorf("%s: %w", b.architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: compressed, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: b.architecture},
		}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationVersion: version})); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// compressed is the image that was built for one architecture, with its layers compressed. They are read, when the image is written, from a
// directory of what was built.
func (b build) compressed() (v1.Image, error) {
	built, err := b.image()
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.Architecture != b.architecture {
		return nil, fmt.Errorf("%s is for %s", b.archive, config.Architecture)
	}
	layers, err := built.Layers()
	if err != nil {
		return nil, err
	}
	out, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{Architecture: config.Architecture, OS: config.OS, Config: config.Config, RootFS: v1.RootFS{Type: "layers"}})
	for _, l := range layers {
		if err != nil {
			return nil, err
		}
		var compressed v1.Layer
		if compressed, err = tarball.LayerFromOpener(l.Uncompressed, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(6), tarball.WithCompressedCaching); err == nil {
			out, err = mutate.AppendLayers(out, compressed)
		}
	}
	return out, err
}

// image is what was built for one architecture. It is read from a directory beside the archive, which is unpacked there the first time.
func (b build) image() (v1.Image, error) {
	unpacked := b.archive + ".unpacked"
	if err := os.Mkdir(unpacked, 0o700); err == nil {
		if err := unpack(b.archive, unpacked); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, and one is wanted", b.archive, len(list.Manifests))
	}
	return index.Image(list.Manifests[0].Digest)
}

// unpack an OCI archive.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a directory
	for in := tar.NewReader(file); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
			return err
		}
		out, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		if err := errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

// indexOf is an image of a release, for all architectures, and the version of the release.
func indexOf(dir, image string) (index v1.ImageIndex, digest v1.Hash, version string, err error) {
	path, err := layout.FromPath(filepath.Join(dir, imagesDir, image))
	if err != nil {
		return nil, v1.Hash{}, "", fmt.Errorf("%s is not a release directory with the image %s: %w", dir, image, err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		return nil, v1.Hash{}, "", err
	}
	list, err := all.IndexManifest()
	if err != nil {
		return nil, v1.Hash{}, "", err
	}
	if len(list.Manifests) != 1 {
		return nil, v1.Hash{}, "", fmt.Errorf("%s has %d images, and one is wanted", dir, len(list.Manifests))
	}
	d := list.Manifests[0]
	index, err = all.ImageIndex(d.Digest)
	return index, d.Digest, d.Annotations[annotationVersion], err
}

// archive writes an image of a release as one file, which `ctr images import` and what is built on it take. It has the names by which manifests ask
// for it.
func archive(dir, image, to string) error {
	_, digest, version, err := indexOf(dir, image)
	if err != nil {
		return err
	}
	layoutDir := filepath.Join(dir, imagesDir, image)
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	write := func(name string, size int64, content io.Reader) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	}
	err = filepath.WalkDir(layoutDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(layoutDir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && relative == "index.json" {
			content, err = withNames(content, "docker.io/library/"+image+":"+version, "docker.io/library/"+image+"@"+digest.String())
		}
		if err != nil {
			return err
		}
		return write(relative, int64(len(content)), bytes.NewReader(content))
	})
	return errors.Join(err, w.Close(), out.Close())
}

// withNames gives the one image of an index each of the names.
func withNames(index []byte, names ...string) ([]byte, error) {
	var list v1.IndexManifest
	if err := json.Unmarshal(index, &list); err != nil {
		return nil, err
	}
	image := list.Manifests[0]
	list.Manifests = nil
	for _, n := range names {
		d := image
		d.Annotations = map[string]string{annotationName: n}
		list.Manifests = append(list.Manifests, d)
	}
	return json.Marshal(list)
}

// push brings the images of a release to a registry, under its version: the product's to the repository that is given, that of a runtime's agents to
// REPOSITORY-RUNTIME. It writes their list, and the manifest and the chart that ask for the product's there.
func push(ctx context.Context, dir, repository string) error {
	images, err := os.ReadDir(filepath.Join(dir, imagesDir))
	if err != nil {
		return fmt.Errorf("%s is not a release directory: %w", dir, err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("manifest: %w", err)
	}
	var list bytes.Buffer
	packed := "" // the chart of the release
	for _, i := range images {
		index, digest, version, err := indexOf(dir, i.Name())
		if err != nil {
			return err
		}
		to, err := name.NewTag(repository+strings.TrimPrefix(i.Name(), product)+":"+version, name.StrictValidation)
		if err != nil {
			return fmt.Errorf("REPOSITORY %q: give a registry and a path without a tag, such as registry.example.com/team/tidewaiter: %w", repository, err)
		}
		if err := remote.WriteIndex(to, index, remote.WithContext(ctx), credentials()); err != nil {
			return fmt.Errorf("push to %s: %w", to, err)
		}
		pushed := to.String() + "@" + digest.String()
		fmt.Fprintln(&list, pushed)
		fmt.Println("Pushed", pushed)
		if i.Name() != product {
			continue
		}
		local := product + ":" + version + "@" + digest.String()
		if !strings.Contains(string(manifest), local) {
			return fmt.Errorf("%s does not name %s: it is not the manifest of this release", manifestFile, local)
		}
		manifest = []byte(strings.ReplaceAll(string(manifest), local, pushed))
		packed = filepath.Join(dir, chartFile(version))
	}
	to := filepath.Join(dir, pushedDir)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, listFile), list.Bytes(), 0o644); err != nil {
		return fmt.Errorf("list of images: %w", err)
	}
	if manifest == nil {
		return nil
	}
	installed := filepath.Join(to, manifestFile)
	if err := os.WriteFile(installed, manifest, 0o644); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	chart := filepath.Join(to, filepath.Base(packed))
	if err := pushedChart(packed, chart, repository); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	_, err = fmt.Printf("Install it: kubectl apply --server-side -f %s\n        or: helm install tidewaiter %s\n", installed, chart)
	return err
}

// credentials for the registry: REGISTRY_USERNAME and REGISTRY_PASSWORD, or those of `docker login`.
func credentials() remote.Option {
	if user := os.Getenv("REGISTRY_USERNAME"); user != "" {
		return remote.WithAuth(&authn.Basic{Username: user, Password: os.Getenv("REGISTRY_PASSWORD")})
	}
	return remote.WithAuthFromKeychain(authn.DefaultKeychain)
}

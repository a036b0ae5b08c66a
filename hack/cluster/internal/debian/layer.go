// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// layerFormat names what writeLayer makes of the same packages: change it when that changes.
const layerFormat = "v1"

// mergedFolders are those that Debian's packages still ship files in, though each is a link into /usr.
func mergedFolders() []string { return []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} }

// writeLayer writes the content of packages as one layer: unpacked, not installed, with by hand what their installation
// scripts would do that programs in a container depend on.
func writeLayer(ctx context.Context, to string, archives []string) error {
	file, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	defer file.Close() //nolint:errcheck // closed below where it matters
	l := newLayer(file)
	if err := l.skeleton(); err != nil {
		return err
	}
	for _, archive := range archives {
		if err := l.addPackage(ctx, archive); err != nil {
			return fmt.Errorf("package %s: %w", path.Base(archive), err)
		}
	}
	if err := l.finish(); err != nil {
		return err
	}
	return file.Close()
}

// layer collects the files of one image layer.
type layer struct {
	out  *tar.Writer
	seen map[string]bool
	// authorities are the certificates of ca-certificates, by file name.
	authorities map[string][]byte
}

func newLayer(out io.Writer) *layer {
	return &layer{out: tar.NewWriter(out), seen: map[string]bool{}, authorities: map[string][]byte{}}
}

// skeleton is what a root file system has before any package.
func (l *layer) skeleton() error {
	for _, name := range []string{"dev", "etc", "home", "proc", "root", "run", "sys", "usr", "var"} {
		if err := l.folder(name, 0o755); err != nil {
			return err
		}
	}
	for _, name := range mergedFolders() {
		if err := l.folder("usr/"+name, 0o755); err != nil {
			return err
		}
		if err := l.link(name, "usr/"+name); err != nil {
			return err
		}
	}
	if err := l.folder("tmp", 0o1777); err != nil {
		return err
	}
	return l.folder("var/tmp", 0o1777)
}

func (l *layer) addPackage(ctx context.Context, archive string) error {
	command := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", archive)
	content, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("dpkg-deb: %w", err)
	}
	var message bytes.Buffer
	command.Stderr = &message
	if err := command.Start(); err != nil {
		return fmt.Errorf("dpkg-deb: %w", err)
	}
	addErr := l.addTar(content)
	_, _ = io.Copy(io.Discard, content) // it may pad, and would be killed for writing to nobody
	if err := command.Wait(); err != nil {
		return errors.Join(addErr, fmt.Errorf("dpkg-deb: %w: %s", err, message.String()))
	}
	return addErr
}

func (l *layer) addTar(content io.Reader) error {
	in := tar.NewReader(content)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if err := l.addFile(header, in); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func (l *layer) addFile(header *tar.Header, content io.Reader) error {
	name := merged(header.Name)
	if name == "" || l.seen[name] || isUnwanted(name) {
		return nil
	}
	h := &tar.Header{Typeflag: header.Typeflag, Name: name, Mode: header.Mode, Uid: header.Uid, Gid: header.Gid, Size: header.Size, Linkname: header.Linkname}
	switch header.Typeflag {
	case tar.TypeDir:
		h.Name += "/"
	case tar.TypeLink:
		// A hard link names its target from the root, a symbolic one from where it is.
		h.Linkname = merged(header.Linkname)
	}
	if strings.HasPrefix(name, "usr/share/ca-certificates/") && header.Typeflag == tar.TypeReg {
		kept := new(bytes.Buffer)
		content = io.TeeReader(content, kept)
		defer func() { l.authorities[name] = kept.Bytes() }()
	}
	return l.write(h, content)
}

// finish adds what installation scripts would have made.
func (l *layer) finish() error {
	if len(l.authorities) > 0 {
		var bundle []byte
		for _, name := range slices.Sorted(maps.Keys(l.authorities)) {
			bundle = append(bytes.TrimRight(append(bundle, l.authorities[name]...), "\n"), '\n')
		}
		if err := l.folder("etc/ssl/certs", 0o755); err != nil {
			return err
		}
		if err := l.file("etc/ssl/certs/ca-certificates.crt", bundle); err != nil {
			return err
		}
	}
	for _, alternative := range [][]string{{"usr/bin/sh", "dash", "bash"}, {"usr/bin/awk", "gawk", "mawk"}} {
		if l.seen[alternative[0]] {
			continue
		}
		for _, program := range alternative[1:] {
			if l.seen["usr/bin/"+program] {
				if err := l.link(alternative[0], program); err != nil {
					return err
				}
				break
			}
		}
	}
	if err := l.out.Close(); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	return nil
}

func (l *layer) folder(name string, mode int64) error {
	return l.write(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (l *layer) link(name, target string) error {
	return l.write(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (l *layer) file(name string, content []byte) error {
	return l.write(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}, bytes.NewReader(content))
}

func (l *layer) write(h *tar.Header, content io.Reader) error {
	l.seen[strings.TrimSuffix(h.Name, "/")] = true
	h.ModTime = time.Unix(0, 0)
	if err := l.out.WriteHeader(h); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	if _, err := io.Copy(l.out, content); err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	return nil
}

// merged is the name of a packaged file where /bin, /lib and the like are links into /usr; empty for the root.
func merged(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(mergedFolders(), first) {
		return "usr/" + name
	}
	return name
}

// isUnwanted reports whether a file is for people at a terminal, or for the package manager.
func isUnwanted(name string) bool {
	for _, prefix := range []string{
		"usr/share/doc/", "usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/",
		"usr/share/i18n/", "usr/share/perl5/Debian/", "usr/share/doc-base/", "var/lib/dpkg/",
	} {
		if strings.HasPrefix(name+"/", prefix) {
			return true
		}
	}
	return false
}

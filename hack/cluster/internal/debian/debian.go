// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian gets packages for the cluster from Debian's package archive, with the machine's configuration of apt.
package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
)

// Tool is something that the machine must have.
type Tool struct {
	// Package is the Debian package that it comes in.
	Package string
	// Command is its program, or File a file of it.
	Command, File string
}

// BuildTools are what building the programs needs besides Go.
func BuildTools() []Tool {
	return []Tool{
		{Package: "gcc", Command: "gcc"},
		{Package: "libc6-dev", File: "/usr/include/stdlib.h"},
		{Package: "libseccomp-dev", File: "/usr/include/seccomp.h"},
		{Package: "pkg-config", Command: "pkg-config"},
	}
}

// NodeTools are the programs that the running node calls.
func NodeTools() []Tool {
	return []Tool{
		{Package: "iproute2", Command: "ip"},
		{Package: "iptables", Command: "iptables-restore"},
		{Package: "nftables", Command: "nft"},
		{Package: "mount", Command: "mount"},
		{Package: "e2fsprogs", Command: "mkfs.ext4"},
		{Package: "libseccomp2", File: "/usr/lib/*/libseccomp.so.2"},
	}
}

// Missing returns the packages of the tools that the machine does not have.
func Missing(tools []Tool) []string {
	var packages []string
	for _, tool := range tools {
		if !tool.present() {
			packages = append(packages, tool.Package)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

func (t Tool) present() bool {
	if t.Command != "" {
		if _, err := exec.LookPath(t.Command); err == nil {
			return true
		}
		// A user's search path may lack the administrator's folders.
		_, err := os.Stat(filepath.Join("/usr/sbin", t.Command))
		return err == nil
	}
	found, err := filepath.Glob(t.File)
	return err == nil && len(found) > 0
}

// Install installs packages.
func Install(ctx context.Context, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine lacks the programs of Debian's packages %s and has no apt-get: install them its own way", strings.Join(packages, ", "))
	}
	if err := Update(ctx); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

// Update fetches the lists of packages.
func Update(ctx context.Context) error { return apt(ctx, "update") }

// Download puts the packages and all that they depend on into a folder, as if nothing were installed. An architecture that is not empty is another one
// than this machine's; its lists are fetched into the folder, too.
func Download(ctx context.Context, folder, architecture string, packages []string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(folder, "partial"), 0o755); err != nil {
		return nil, fmt.Errorf("folder of packages: %w", err)
	}
	nothing := filepath.Join(folder, "status")
	if err := os.WriteFile(nothing, nil, 0o644); err != nil {
		return nil, fmt.Errorf("empty status: %w", err)
	}
	options := []string{
		"-o", "Dir::State::status=" + nothing,
		"-o", "Dir::Cache::archives=" + folder,
		"-o", "Debug::NoLocking=1", // nothing of the machine's is changed
		"-o", "APT::Sandbox::User=root",
	}
	update := []string{"update"}
	if architecture != "" {
		lists := filepath.Join(folder, "lists")
		if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
			return nil, fmt.Errorf("folder of lists: %w", err)
		}
		options = append(options, "-o", "APT::Architecture="+architecture, "-o", "APT::Architectures::="+architecture, "-o", "Dir::State::lists="+lists,
			"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=")
		update = append(slices.Clone(options), update...)
	}
	arguments := slices.Concat(options, []string{"install", "--yes", "--no-install-recommends", "--download-only"}, packages)
	if architecture != "" || apt(ctx, arguments...) != nil {
		// The lists may be missing or older than the archive.
		if err := errors.Join(apt(ctx, update...), apt(ctx, arguments...)); err != nil {
			return nil, err
		}
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	slices.Sort(archives)
	return archives, nil
}

func apt(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-qq"}, arguments...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Set is the content of a layer.
type Set struct {
	// Packages bring all that they depend on.
	Packages []string
	// Without are packages that are left out although others depend on them.
	Without []string
	// Architecture as Debian names it, which is as Go does for amd64 and arm64; empty means the architecture of this machine.
	Architecture string
}

// Package is a package in a layer.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Architecture is "all" if the package has no programs.
	Architecture string `json:"architecture"`
	// SHA256 of the package's file, in hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// foreign is the architecture of the set where it is another one than this machine's.
func (s Set) foreign() string {
	if s.Architecture == runtime.GOARCH {
		return ""
	}
	return s.Architecture
}

// path is where the set's layer is kept, whatever the order its packages are named in.
func (s Set) path(layout place.Layout) string {
	name := layerFormat + "-" + joined(s.Packages)
	if len(s.Without) > 0 {
		name += "-without-" + joined(s.Without)
	}
	if s.foreign() != "" {
		name += "-" + s.Architecture
	}
	return filepath.Join(layout.Layers(), name+".tar")
}

func joined(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "+")
}

func (s Set) validate() error {
	for _, name := range slices.Concat(s.Packages, s.Without) {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
			return fmt.Errorf("--packages, --without: %q is not the name of a Debian package", name)
		}
	}
	if !slices.Contains([]string{"", "amd64", "arm64"}, s.Architecture) {
		return fmt.Errorf("--arch %q: only amd64 and arm64 are known", s.Architecture)
	}
	return nil
}

// Layer makes an image layer of packages, unless there is one, and returns its path. ListOf(path) lists its packages.
func Layer(ctx context.Context, layout place.Layout, set Set) (string, error) {
	if err := set.validate(); err != nil {
		return "", err
	}
	path := set.path(layout)
	_, err := os.Stat(path)
	_, listErr := os.Stat(ListOf(path))
	if err == nil && listErr == nil {
		return path, nil
	}
	work, err := os.MkdirTemp(layout.Layers(), "download-")
	if err != nil {
		return "", fmt.Errorf("folder of packages: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // best effort; it is in a cache
	archives, err := Download(ctx, work, set.foreign(), set.Packages)
	if err != nil {
		return "", err
	}
	archives = slices.DeleteFunc(archives, func(archive string) bool {
		name, _, _ := strings.Cut(filepath.Base(archive), "_")
		return slices.Contains(set.Without, name)
	})
	partial := filepath.Join(work, "layer.tar")
	if err := writeLayer(ctx, partial, archives); err != nil {
		return "", err
	}
	if err := writeList(ListOf(path), archives); err != nil {
		return "", err
	}
	return path, os.Rename(partial, path)
}

// ListOf is the path of the list of a layer's packages, as JSON.
func ListOf(layer string) string { return strings.TrimSuffix(layer, ".tar") + ".packages.json" }

// writeList writes which packages a layer is made of, by the names of their files and what is in them.
func writeList(to string, archives []string) error {
	packages := make([]Package, 0, len(archives))
	for _, archive := range archives {
		content, err := os.ReadFile(archive)
		if err != nil {
			return fmt.Errorf("list of packages: %w", err)
		}
		parts := strings.Split(strings.TrimSuffix(filepath.Base(archive), ".deb"), "_")
		if len(parts) != 3 {
			return fmt.Errorf("list of packages: %s is not NAME_VERSION_ARCHITECTURE.deb", filepath.Base(archive))
		}
		sum := sha256.Sum256(content)
		version := strings.ReplaceAll(parts[1], "%3a", ":") // the epoch's colon, as apt writes it in a name
		packages = append(packages, Package{Name: parts[0], Version: version, Architecture: parts[2], SHA256: hex.EncodeToString(sum[:])})
	}
	text, err := json.MarshalIndent(packages, "", "  ")
	if err != nil {
		return fmt.Errorf("list of packages: %w", err)
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

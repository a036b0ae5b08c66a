// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// place is a copy of the repository, and what else may differ from one machine to another.
type place struct {
	dir string
	env []string
	// before are commands of the shell that come first.
	before string
}

// places are two, with other paths, times and modes of files, caches and settings.
func places(t *testing.T) [2]place {
	t.Helper()
	first, second := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "another", "path")
	for _, dir := range []string{first, second} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		sh(t, place{dir: "../.."}, `git ls-files --cached --others --exclude-standard -z | tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory="$0"`, dir)
	}
	sh(t, place{dir: second}, `find . -type f -exec touch --date=2001-02-03 {} +`)
	return [2]place{
		{dir: first, before: "umask 022", env: []string{"TIDEWAITER_CACHE=" + t.TempDir()}},
		{dir: second, before: "umask 077", env: []string{"TIDEWAITER_CACHE=" + t.TempDir(), "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8"}},
	}
}

// sh runs a script of the shell.
func sh(t *testing.T, p place, script string, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-euo", "pipefail", "-c", p.before + "\n" + script}, arguments...)...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// wantSame fails if two files differ.
func wantSame(t *testing.T, first, second string) {
	t.Helper()
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Errorf("%s has %d bytes, and its second build has %d or others", filepath.Base(first), len(a), len(b))
	}
}

// TestOtherArchitectureTwice: a program for the architecture that this machine does not have is the same bytes wherever it is built, and so is the image
// around it. It is the smallest program of ours, without Debian's packages: TestRelease builds the whole image for this machine's architecture twice.
func TestOtherArchitectureTwice(t *testing.T) {
	architecture := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	both := places(t)
	empty := t.TempDir() // the second build takes nothing from the first one
	for i, p := range both {
		compile := p
		if i == 1 {
			compile.env = append(compile.env, "GOCACHE="+empty)
		}
		sh(t, compile, `GOOS=linux GOARCH="$0" hack/build.sh "$PWD/runner" ./cmd/runner`, architecture)
		sh(t, p, `hack/cluster/run.sh image --arch "$0" --name tidewaiter:1.2.3 --output image.tar --file "$PWD/runner:/usr/local/bin/runner"`, architecture)
	}
	wantSame(t, filepath.Join(both[0].dir, "runner"), filepath.Join(both[1].dir, "runner"))
	wantSame(t, filepath.Join(both[0].dir, "image.tar"), filepath.Join(both[1].dir, "image.tar"))
}

// registryOfNPM stands for npm: `npm pack` gives a package that was published once.
const registryOfNPM = `#!/bin/sh
cp "$NPM_TEST/$(echo "$3" | tr / -).tgz" .
`

// TestAgentsTwice: the image of an agent is the same bytes wherever it is built, for both architectures. Its package has few files, and it is without Debian's
// packages.
func TestAgentsTwice(t *testing.T) {
	npm := t.TempDir()
	sh(t, place{dir: npm}, `
		mkdir -p package/bin package/lib/b package/lib/a
		echo program >package/bin/agent
		for file in b/two a/one z; do echo "$file" >package/lib/$file; done
		chmod 600 package/lib/z
		tar --create --gzip --file @some-agent@1.0.0.tgz package`)
	both := places(t)
	for _, p := range both {
		p.env = append(p.env, "NPM_TEST="+npm, "PATH="+filepath.Join(p.dir, "stubs")+":"+os.Getenv("PATH"))
		write(t, filepath.Join(p.dir, "stubs", "npm"), []byte(registryOfNPM))
		sh(t, p, `
			mkdir -p images/agent
			sum=$(sha512sum "$NPM_TEST/@some-agent@1.0.0.tgz" | cut -d ' ' -f 1)
			for architecture in amd64 arm64; do
				cat >>images/agent/versions.env <<-END
					PROGRAM=agent VERSION=1.0.0 packages=
					PACKAGE_$architecture=@some/agent@1.0.0 SHA512_$architecture=$sum
					FILES_$architecture="bin/agent:/usr/local/bin/agent lib:/usr/local/lib/agent"
				END
			done
			for architecture in amd64 arm64; do
				hack/agent.sh "$architecture" agent versions tidewaiter-agent:1.2.3 "$PWD/$architecture.tar"
			done`)
	}
	for _, file := range []string{"amd64.tar", "amd64.tar.npm.json", "arm64.tar", "arm64.tar.npm.json"} {
		wantSame(t, filepath.Join(both[0].dir, file), filepath.Join(both[1].dir, file))
	}
}

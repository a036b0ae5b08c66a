// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const committed = "image: tidewaiter:0.1.0\nargs: [--image=tidewaiter:0.1.0]\n"

// built is a work directory as release.sh leaves it; this test's own program stands for those of the product.
func built(t *testing.T, architectures ...string) release {
	t.Helper()
	r := workIn(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range architectures {
		folder := filepath.Join(r.work, product, a)
		for _, name := range []string{"manager", client} {
			write(t, filepath.Join(folder, name), program)
		}
		write(t, filepath.Join(folder, "image.tar"), imageArchive(t, a, []byte(strings.Repeat(a, 1000))))
		write(t, filepath.Join(folder, "image.tar.packages.json"), debianList(a))
	}
	return r
}

// builtAgent is a work directory with the image of an agent that is a script, for one architecture.
func builtAgent(t *testing.T) release {
	t.Helper()
	r := workIn(t)
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for name, text := range map[string]string{
		"usr/local/lib/qwen-code/package.json":                                                `{"name":"@qwen/code","version":"1.0.0"}`,
		"usr/local/lib/qwen-code/node_modules/@lydell/node-pty/package.json":                  `{"name":"@lydell/node-pty","version":"2.0.0"}`,
		"usr/local/lib/qwen-code/bundled/browser/node_modules/playwright-core/package.json":   `{"name":"playwright-core","version":"3.0.0","sha512":"what it says itself"}`,
		"usr/local/lib/qwen-code/bundled/browser/node_modules/playwright-core/a/package.json": `not a package`,
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(r.work, product+"-qwen-code", "amd64")
	write(t, filepath.Join(folder, "image.tar"), imageArchive(t, "amd64", content.Bytes()))
	write(t, filepath.Join(folder, "image.tar.packages.json"), debianList("amd64"))
	write(t, filepath.Join(folder, "image.tar.npm.json"), []byte(`[{"name":"@qwen/code","version":"1.0.0","sha512":"11ff"},{"name":"@lydell/node-pty","version":"2.0.0","sha512":"22ff"}]`))
	return r
}

func workIn(t *testing.T) release {
	t.Helper()
	dir := t.TempDir()
	r := release{
		version: "1.2.3", commit: "abc", manifest: filepath.Join(dir, "install.yaml"), chart: "../../charts/tidewaiter", work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"),
	}
	write(t, r.manifest, []byte(committed))
	return r
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o755)); err != nil {
		t.Fatal(err)
	}
}

func debianList(architecture string) []byte {
	return []byte(`[{"name":"git","version":"1:2.39.5-0+deb12u2","architecture":"` + architecture + `","sha256":"00ff"}]`)
}

// imageArchive is an OCI archive with one image of one layer that is not compressed.
func imageArchive(t *testing.T, architecture string, content []byte) []byte {
	t.Helper()
	layer := static.NewLayer(content, types.OCIUncompressedLayer)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: architecture, OS: "linux", Config: v1.Config{User: "65532:65532"}})
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// files of a directory, by path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// chartFiles are the files of a packed chart, by path below the chart's folder.
func chartFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	packed, err := readPacked(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for path, content := range packed {
		all[path] = string(content)
	}
	return all
}

// TestAssemble: two releases of the same build are the same bytes, and each says what is in it.
func TestAssemble(t *testing.T) {
	first, second := built(t, "amd64", "arm64"), built(t, "amd64", "arm64")
	for _, r := range []release{first, second} {
		if err := r.assemble(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := files(t, first.out), files(t, second.out)
	for path, content := range a {
		if b[path] != content {
			t.Errorf("%s differs from one release to the other", path)
		}
		if path != sumsFile && !strings.Contains(a[sumsFile], "  "+path+"\n") {
			t.Errorf("%s has no checksum of %s", sumsFile, path)
		}
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		if info, err := os.Stat(filepath.Join(first.out, programsDir, client+"-linux-"+architecture)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the program of %s: %v, %v", architecture, info, err)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d files and %d", len(a), len(b))
	}
	index, digest, version, err := indexOf(first.out, product)
	if err != nil || version != "1.2.3" {
		t.Fatalf("version %q, %v", version, err)
	}
	if want := "tidewaiter:1.2.3@" + digest.String(); strings.Count(a[manifestFile], want) != 2 {
		t.Errorf("the manifest does not name %s:\n%s", want, a[manifestFile])
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		image, err := index.Image(list.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != architecture || list.Manifests[i].Platform.Architecture != architecture || config.Config.User != "65532:65532" {
			t.Errorf("image %d is %+v, %v", i, config, err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(content); err != nil || string(text) != strings.Repeat(architecture, 1000) {
			t.Errorf("the layer of %s is another one: %v", architecture, err)
		}
	}
	chart := chartFiles(t, filepath.Join(first.out, "tidewaiter-1.2.3.tgz"))
	for path, want := range map[string]string{
		"Chart.yaml":  "\nversion: 1.2.3\nappVersion: \"1.2.3\"\n",
		"values.yaml": "\n  digest: " + digest.String() + "\n",
	} {
		if !strings.Contains(chart[path], want) {
			t.Errorf("%s of the chart does not say %q:\n%s", path, want, chart[path])
		}
	}
	for path := range files(t, first.chart) {
		if _, packed := chart[path]; !packed {
			t.Errorf("the packed chart has no %s", path)
		}
	}
	for path, want := range map[string]string{
		"sbom/manager-linux-arm64.cdx.json":          `"pkg:golang/github.com/google/go-containerregistry@`,
		"sbom/image-tidewaiter-linux-amd64.cdx.json": `"pkg:deb/debian/git@1:2.39.5-0%2Bdeb12u2?arch=amd64"`,
		provenanceFile: `"gitCommit": "abc"`,
	} {
		if !json.Valid([]byte(a[path])) || !strings.Contains(a[path], want) {
			t.Errorf("%s does not say %s", path, want)
		}
	}
}

func TestAssembleRefuses(t *testing.T) {
	for what, test := range map[string]struct {
		change func(*release)
		want   string
	}{
		"a version with a v": {func(r *release) { r.version = "v1.2.3" }, "VERSION"},
		"a directory in use": {func(r *release) { r.out = r.work }, "exists already"},
		"no commit":          {func(r *release) { r.commit = "" }, "--commit"},
		"a chart without an image": {func(r *release) {
			r.chart = t.TempDir()
			_ = os.WriteFile(filepath.Join(r.chart, "Chart.yaml"), []byte("version: 0.1.0\nappVersion: x\n"), 0o600)
			_ = os.WriteFile(filepath.Join(r.chart, "values.yaml"), []byte("a: b\n"), 0o600)
		}, "values.yaml"},
		"a manifest without it": {func(r *release) { r.manifest = filepath.Join(r.work, product, "amd64", "image.tar.packages.json") }, "names no image"},
		"the wrong architecture": {func(r *release) {
			_ = os.Rename(filepath.Join(r.work, product, "amd64"), filepath.Join(r.work, product, "arm64"))
		}, "is for amd64"},
	} {
		t.Run(what, func(t *testing.T) {
			r := built(t, "amd64")
			test.change(&r)
			if err := r.assemble(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want an error with %q", err, test.want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.manifest), "out*")); len(left) > 0 {
				t.Errorf("%v is left behind", left)
			}
		})
	}
}

// TestAssembleAgents: a release of agents' images has no manifest, and says which packages of npm are in them and from where.
func TestAssembleAgents(t *testing.T) {
	r := builtAgent(t)
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	all := files(t, r.out)
	_, digest, version, err := indexOf(r.out, product+"-qwen-code")
	if err != nil || version != r.version {
		t.Fatalf("version %q, %v", version, err)
	}
	if want := "tidewaiter-qwen-code:1.2.3@" + digest.String() + "\n"; all[listFile] != want {
		t.Errorf("the list is %q, want %q", all[listFile], want)
	}
	if _, ok := all[manifestFile]; ok {
		t.Error("there is a manifest, which would install nothing")
	}
	var document struct {
		Components []struct {
			PURL   string `json:"purl"`
			Hashes []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal([]byte(all["sbom/image-tidewaiter-qwen-code-linux-amd64.cdx.json"]), &document); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range document.Components {
		line := c.PURL
		for _, h := range c.Hashes {
			line += " " + h.Alg + " " + h.Content
		}
		got = append(got, line)
	}
	want := []string{
		"pkg:deb/debian/git@1:2.39.5-0%2Bdeb12u2?arch=amd64 SHA-256 00ff",
		"pkg:npm/%40qwen/code@1.0.0 SHA-512 11ff",
		"pkg:npm/%40lydell/node-pty@2.0.0 SHA-512 22ff",
		"pkg:npm/playwright-core@3.0.0", // came inside of another one
	}
	if !slices.Equal(got, want) {
		t.Errorf("the SBOM has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, want := range []string{digest.Hex, `"uri": "pkg:npm/%40qwen/code@1.0.0"`, `"sha512": "11ff"`, `"git_1:2.39.5-0+deb12u2_amd64.deb"`} {
		if !strings.Contains(all[provenanceFile], want) {
			t.Errorf("the provenance does not name %s", want)
		}
	}
	if strings.Contains(all[provenanceFile], `"go"`) {
		t.Error("the provenance names a Go version, and no program was built")
	}
}

// TestPush brings a release to a registry: what is there has the digest that the manifest asks for.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/tidewaiter"
	r := built(t, "amd64", "arm64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), r.out, repository+":1.2.3"); err == nil || !strings.Contains(err.Error(), "without a tag") {
		t.Errorf("a tag: %v", err)
	}
	if err := push(t.Context(), r.out, repository); err != nil {
		t.Fatal(err)
	}
	manifest := files(t, r.out)[pushedDir+"/"+manifestFile]
	_, digest, _, err := indexOf(r.out, product)
	if err != nil {
		t.Fatal(err)
	}
	if want := repository + ":1.2.3@" + digest.String(); strings.Count(manifest, want) != 2 {
		t.Errorf("the manifest does not name %s:\n%s", want, manifest)
	}
	values := chartFiles(t, filepath.Join(r.out, pushedDir, "tidewaiter-1.2.3.tgz"))["values.yaml"]
	for _, want := range []string{"\n  repository: " + repository + "\n", "\n  digest: " + digest.String() + "\n"} {
		if !strings.Contains(values, want) {
			t.Errorf("the chart's values do not say %q:\n%s", want, values)
		}
	}
	for _, asked := range []string{repository + ":1.2.3", repository + "@" + digest.String()} {
		reference, err := name.ParseReference(asked)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Get(reference)
		if err != nil || got.Digest != digest {
			t.Errorf("%s is %v, %v", asked, got, err)
		}
	}
}

// TestPushWithPassword: a registry that wants a password gets that of the environment.
func TestPushWithPassword(t *testing.T) {
	images := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/tidewaiter"
	r := built(t, "amd64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_USERNAME", "me")
	t.Setenv("REGISTRY_PASSWORD", "wrong")
	if err := push(t.Context(), r.out, repository); err == nil {
		t.Error("a wrong password is enough")
	}
	t.Setenv("REGISTRY_PASSWORD", "secret")
	if err := push(t.Context(), r.out, repository); err != nil {
		t.Error(err)
	}
}

// TestPushAgents: each image has a repository of its own, and the list says which.
func TestPushAgents(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/tidewaiter"
	r := builtAgent(t)
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), r.out, repository); err != nil {
		t.Fatal(err)
	}
	_, digest, _, err := indexOf(r.out, product+"-qwen-code")
	if err != nil {
		t.Fatal(err)
	}
	asked := repository + "-qwen-code:1.2.3@" + digest.String()
	all := files(t, r.out)
	if all[pushedDir+"/"+listFile] != asked+"\n" {
		t.Errorf("the list is %q, want %q", all[pushedDir+"/"+listFile], asked)
	}
	if _, ok := all[pushedDir+"/"+manifestFile]; ok {
		t.Error("there is a manifest, which would install nothing")
	}
	reference, err := name.ParseReference(asked)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := remote.Get(reference); err != nil || got.Digest != digest {
		t.Errorf("%s is %v, %v", asked, got, err)
	}
}

// TestArchive: one file has the image, by both names that a manifest asks for.
func TestArchive(t *testing.T) {
	r := built(t, "amd64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := archive(r.out, product, file); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unpack(file, dir); err != nil {
		t.Fatal(err)
	}
	index := files(t, dir)["index.json"]
	_, digest, _, err := indexOf(r.out, product)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"docker.io/library/tidewaiter:1.2.3"`, `"docker.io/library/tidewaiter@` + digest.String() + `"`} {
		if !strings.Contains(index, want) {
			t.Errorf("the archive has no name %s: %s", want, index)
		}
	}
}

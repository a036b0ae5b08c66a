// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseFile(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    File
		wantErr bool
	}{
		"default mode":       {text: "bin/a:/usr/bin/a", want: File{Source: "bin/a", Target: "/usr/bin/a", Mode: 0o755}},
		"own mode":           {text: "a:/etc/a:0644", want: File{Source: "a", Target: "/etc/a", Mode: 0o644}},
		"cleaned target":     {text: "a:/usr/../etc//a", want: File{Source: "a", Target: "/etc/a", Mode: 0o755}},
		"no target":          {text: "a", wantErr: true},
		"relative target":    {text: "a:b", wantErr: true},
		"no source":          {text: ":/a", wantErr: true},
		"mode not octal":     {text: "a:/a:9", wantErr: true},
		"mode too large":     {text: "a:/a:77777", wantErr: true},
		"one part too many":  {text: "a:/a:0644:x", wantErr: true},
		"negative mode":      {text: "a:/a:-1", wantErr: true},
		"nothing whatsoever": {text: "", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFile(test.text)
			if (err != nil) != test.wantErr || got != test.want {
				t.Errorf("ParseFile(%q) = %+v, %v; want %+v, an error: %t", test.text, got, err, test.want, test.wantErr)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		spec    Spec
		wantErr string
	}{
		"good":             {spec: Spec{Name: "local.test/a:1", User: "1000"}},
		"user and group":   {spec: Spec{Name: "local.test/a:1", User: "1000:2000"}},
		"no tag":           {spec: Spec{Name: "local.test:5000/a", User: "1"}, wantErr: "tag"},
		"tag latest":       {spec: Spec{Name: "local.test/a:latest", User: "1"}, wantErr: "latest"},
		"user by name":     {spec: Spec{Name: "local.test/a:1", User: "nobody"}, wantErr: "--user"},
		"variable of none": {spec: Spec{Name: "local.test/a:1", User: "1", Env: []string{"A"}}, wantErr: "--env"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.spec.Validate()
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("%v, want an error with %q", err, test.wantErr)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(folder, "base.tar")
	if err := os.WriteFile(base, []byte("the layer below"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Name: "local.test/a:1", User: "1000", Entrypoint: []string{"/opt/x/program"}, Env: []string{"A=b"},
		Files: []File{{Source: program, Target: "/opt/x/program", Mode: 0o755}},
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := Write(out, spec, base); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same image is another archive the second time")
	}
	archive := entries(t, &first)
	var index struct{ Manifests []descriptor }
	decode(t, archive["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations[annotationRef] != spec.Name {
		t.Fatalf("index %s does not name %s", archive["index.json"], spec.Name)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blobOf(t, archive, index.Manifests[0]), &manifest)
	if len(manifest.Layers) != 2 || string(blobOf(t, archive, manifest.Layers[0])) != "the layer below" {
		t.Fatalf("layers %v, want the given one below", manifest.Layers)
	}
	var config struct {
		Config struct {
			User            string
			Env, Entrypoint []string
		}
	}
	decode(t, blobOf(t, archive, manifest.Config), &config)
	if config.Config.User != "1000" || config.Config.Entrypoint[0] != "/opt/x/program" || !strings.HasPrefix(config.Config.Env[0], "PATH=") {
		t.Errorf("configuration %+v", config.Config)
	}
	files := entries(t, bytes.NewBuffer(blobOf(t, archive, manifest.Layers[1])))
	if string(files["opt/x/program"]) != "content" || !strings.Contains(string(files["etc/passwd"]), "user:x:1000:1000:") {
		t.Errorf("files %q", files)
	}
}

// TestFolder: a folder comes with all that is in it, in the same order each time, and what is no file is not left out without a word.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b/two", "a/one", "three"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700), os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := expand([]File{{Source: folder, Target: "/opt/x", Mode: 0o755}, {Source: filepath.Join(folder, "three"), Target: "/bin/three", Mode: 0o644}})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range files {
		list = append(list, fmt.Sprintf("%s %o", f.Target, f.Mode))
	}
	if got := strings.Join(list, ", "); got != "/opt/x/a/one 755, /opt/x/b/two 755, /opt/x/three 755, /bin/three 644" {
		t.Errorf("files: %s", got)
	}
	if err := os.Symlink("three", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := expand([]File{{Source: folder, Target: "/opt/x"}}); err == nil || !strings.Contains(err.Error(), "link is not a regular file") {
		t.Errorf("a folder with a link: %v", err)
	}
	if _, err := expand([]File{{Source: filepath.Join(folder, "none"), Target: "/opt/x"}}); err == nil {
		t.Error("a file that is not there was left out")
	}
}

func entries(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for in := tar.NewReader(archive); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[header.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

func blobOf(t *testing.T, archive map[string][]byte, d descriptor) []byte {
	t.Helper()
	content, ok := archive["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if !ok || int64(len(content)) != d.Size {
		t.Fatalf("the archive has no blob %s of %d bytes", d.Digest, d.Size)
	}
	return content
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
}

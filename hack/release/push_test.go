// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// signer stands for cosign: it writes what it is called with, and what it reads as the predicate.
const signer = `#!/bin/sh
echo "cosign $*" >>"$SIGN_TEST/calls"
case "$*" in
*/dev/stdin*) cat >"$SIGN_TEST/predicate" ;;
esac
exit "$SIGN_TEST_EXIT"
`

// TestPushSigns: push.sh has cosign sign each image that it has pushed, by digest, and attach the provenance of the release to it. A stub stands for
// cosign: signing is its own matter.
func TestPushSigns(t *testing.T) {
	r := builtAgent(t)
	if err := os.CopyFS(filepath.Join(r.work, product+"-codex"), os.DirFS(filepath.Join(r.work, product+"-qwen-code"))); err != nil {
		t.Fatal(err)
	}
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	var want struct {
		Predicate any `json:"predicate"`
	}
	if err := json.Unmarshal([]byte(files(t, r.out)[provenanceFile]), &want); err != nil || want.Predicate == nil {
		t.Fatalf("the provenance has no predicate: %v", err)
	}
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/tidewaiter"
	programs := t.TempDir()
	write(t, filepath.Join(programs, "cosign"), []byte(signer))
	push := func(seen, exit, key string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "./push.sh", r.out, repository)
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "SIGN_TEST="+seen, "SIGN_TEST_EXIT="+exit, "COSIGN_KEY="+key)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for key, flag := range map[string]string{"": "", "k8s://keys/release": "--key k8s://keys/release "} {
		seen := t.TempDir()
		if out, err := push(seen, "0", key); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var calls bytes.Buffer
		for _, runtime := range []string{"codex", "qwen-code"} {
			_, digest, _, err := indexOf(r.out, product+"-"+runtime)
			if err != nil {
				t.Fatal(err)
			}
			image := repository + "-" + runtime + ":1.2.3@" + digest.String()
			calls.WriteString("cosign sign --yes " + flag + image + "\ncosign attest --yes " + flag + "--type slsaprovenance1 --predicate /dev/stdin " + image + "\n")
		}
		all := files(t, seen)
		if all["calls"] != calls.String() {
			t.Errorf("with the key %q it calls\n%swant\n%s", key, all["calls"], &calls)
		}
		var got any
		if err := json.Unmarshal([]byte(all["predicate"]), &got); err != nil {
			t.Fatalf("%v: %q", err, all["predicate"])
		}
		if !reflect.DeepEqual(got, want.Predicate) {
			t.Errorf("the predicate is not that of the provenance: %s", all["predicate"])
		}
	}
	if out, err := push(t.TempDir(), "1", ""); err == nil {
		t.Errorf("push.sh succeeds although cosign fails:\n%s", out)
	}
}

// TestPushWithoutSigner: push.sh says that images are not signed.
func TestPushWithoutSigner(t *testing.T) {
	t.Setenv("PATH", without(t, "cosign"))
	r := built(t, "amd64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New())
	defer server.Close()
	out, err := exec.CommandContext(t.Context(), "./push.sh", r.out, strings.TrimPrefix(server.URL, "http://")+"/team/tidewaiter").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "cosign is not installed: the images are not signed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// without is PATH without a program.
func without(t *testing.T, program string) string {
	t.Helper()
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for i, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		dirs[i] = t.TempDir()
		for _, e := range entries {
			if e.Name() == program {
				continue
			}
			if err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(dirs[i], e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.Join(dirs, ":")
}

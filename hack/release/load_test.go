// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stub is a program that stands for another one: it writes what it is called with, and the index of the archive that an argument names. Like some of the
// real ones, it reads its input.
const stub = `#!/bin/sh
cat >/dev/null
{
  echo "${0##*/} $*"
  for argument; do
    case $argument in
    *.tar) tar --extract --to-stdout --file "$argument" index.json; echo ;;
    esac
  done
} >>"$LOAD_TEST_CALLS"
`

// TestLoad: load.sh gives the image to the tool of the cluster that is meant. The tools are stubs: a real one needs Docker.
func TestLoad(t *testing.T) {
	r := built(t, "amd64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		context   string
		arguments []string
		calls     string // with FILE for the path of the archive
		fails     string
	}{
		"kind, by context":          {"kind-dev", nil, "kind load image-archive FILE --name dev", ""},
		"k3d, by context":           {"k3d-dev", nil, "k3d image import FILE --cluster dev", ""},
		"minikube, by context":      {"mine", nil, "minikube image load FILE --profile mine", ""},
		"kind, by argument":         {"kind-dev", []string{"kind"}, "kind load image-archive FILE", ""},
		"k3d, by argument, a name":  {"kind-dev", []string{"k3d", "other"}, "k3d image import FILE --cluster other", ""},
		"minikube, without kubectl": {"", []string{"minikube"}, "minikube image load FILE", ""},
		"another cluster":           {"gke_europe", nil, "", "push the images to a registry with hack/release/push.sh"},
		"no context":                {"", nil, "", "kubectl config use-context"},
		"an unknown kind":           {"kind-dev", []string{"docker"}, "", "name kind, k3d, minikube or local"},
	} {
		t.Run(what, func(t *testing.T) {
			programs, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
			for _, program := range []string{"kind", "k3d"} {
				write(t, filepath.Join(programs, program), []byte(stub))
			}
			write(t, filepath.Join(programs, "minikube"), []byte(`#!/bin/sh
if [ "$1" = profile ]; then echo '{"invalid":[],"valid":[{"Name":"mine","Status":"OK"}]}'; exit; fi
`+strings.TrimPrefix(stub, "#!/bin/sh\n")))
			context := "exit 1"
			if test.context != "" {
				context = "echo " + test.context
			}
			write(t, filepath.Join(programs, "kubectl"), []byte("#!/bin/sh\n"+context+"\n"))
			cmd := exec.CommandContext(t.Context(), "./load.sh", append([]string{r.out}, test.arguments...)...)
			cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "LOAD_TEST_CALLS="+calls)
			out, err := cmd.CombinedOutput()
			if test.fails != "" {
				if err == nil || !strings.Contains(string(out), test.fails) {
					t.Errorf("%v, want an error with %q:\n%s", err, test.fails, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			call, index, _ := strings.Cut(string(text), "\n")
			words := strings.Fields(call)
			for i, word := range words {
				if strings.HasSuffix(word, ".tar") {
					words[i] = "FILE"
				}
			}
			if got := strings.Join(words, " "); got != test.calls {
				t.Errorf("called %q, want %q", got, test.calls)
			}
			if !strings.Contains(index, `"docker.io/library/tidewaiter:1.2.3"`) {
				t.Errorf("the archive has not the image: %s", index)
			}
			if want := "kubectl apply --server-side -f " + r.out + "/install.yaml"; !strings.Contains(string(out), want) {
				t.Errorf("it does not say what comes next: %s", out)
			}
		})
	}
}

// TestLoadAgents: load.sh loads each image of a release, and says what to do with them.
func TestLoadAgents(t *testing.T) {
	r := builtAgent(t)
	if err := os.CopyFS(filepath.Join(r.work, product+"-codex"), os.DirFS(filepath.Join(r.work, product+"-qwen-code"))); err != nil {
		t.Fatal(err)
	}
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	programs, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	write(t, filepath.Join(programs, "kind"), []byte(stub))
	cmd := exec.CommandContext(t.Context(), "./load.sh", r.out, "kind")
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "LOAD_TEST_CALLS="+calls)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "spec.agent.image") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"docker.io/library/tidewaiter-codex:1.2.3"`, `"docker.io/library/tidewaiter-qwen-code:1.2.3"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no archive has the image %s:\n%s", want, text)
		}
	}
}

// TestLoadRefuses what is not a release as it was made.
func TestLoadRefuses(t *testing.T) {
	r := built(t, "amd64")
	if err := r.assemble(); err != nil {
		t.Fatal(err)
	}
	load := func(dir string) string {
		out, err := exec.CommandContext(t.Context(), "./load.sh", dir, "local").CombinedOutput()
		if err == nil {
			t.Errorf("%s is loaded", dir)
		}
		return string(out)
	}
	if out := load(r.work); !strings.Contains(out, "make release VERSION") {
		t.Errorf("no release: %s", out)
	}
	write(t, filepath.Join(r.out, manifestFile), []byte("changed"))
	if out := load(r.out); !strings.Contains(out, "copy it again") {
		t.Errorf("a changed file: %s", out)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	quickStartPage = "../../docs/get-started/quick-start.md"
	pushPage       = "../../docs/get-started/push-a-branch.md"
	// mostCommands is how many commands a reader has to run until the diff is on the screen.
	mostCommands = 10
	// shop is the project of the pages.
	shop = "shop"
)

var (
	pageBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	savedAs   = regexp.MustCompile("Save this as `([^`]+)`")
	// untilPhase says when a reader ends the watch before it.
	untilPhase = regexp.MustCompile("^\\s*Press Ctrl-C when the phase is `([A-Za-z]+)`")
)

// modelScript is what the provider answers: one patch, and the end. It is a part of a prompt, in a block of YAML.
func modelScript(patch string) string {
	fence := "    ```"
	return fence + `script
    turns:
    - text: I write it.
      tool:
        name: repo_apply_patch
        input:
          operation_id: one
          patch: |
            ` + strings.ReplaceAll(strings.TrimSpace(patch), "\n", "\n            ") + `
    - tool: {name: task_complete, input: {summary: It is there.}}
    - text: It is done.
` + fence + "\n"
}

// quickStart does what the page says. What differs: the provider and the repository are in this cluster, with certificates of their own, and what the model says is
// a part of the prompt. Everybody may read the repository. push follows with the next page, on the same project.
func quickStart(ctx context.Context, t *testing.T, k8s *cluster.Cluster, push bool) {
	t.Helper()
	git := serve(ctx, t, k8s)
	provider, err := k8s.RunProvider(ctx, project)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { return git.Open(ctx, "shop") },
		func() error { return k8s.DeleteProject(ctx, shop) },
		func() error { return k8s.Project(ctx, shop) },
		func() error { return k8s.Create(ctx, git.CASecret(shop, cluster.GitSecret)) },
		func() error { return k8s.AllowGit(ctx, shop, git.Host) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{began: time.Now(), sh: shell(ctx, t, t.TempDir()), watch: watching(ctx, t), answers: map[string]string{}}
	r.sh(`printf %s "$KEY" > key.txt`, "KEY="+provider.Key)
	r.follow(t, quickStartPage, map[string]string{
		`      baseURL: https://api.anthropic.com`: "      baseURL: " + provider.URL + "\n      ca: |\n" + indented(provider.CA, 8),
		`  prompt: Add a section "First steps" to the README file. Say in three sentences what the repository is for.` + "\n": "  prompt: |\n    Add a section.\n\n" + modelScript(`
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1 +1,3 @@
 # Shop
+
+## First steps
`),
		`{url: "https://github.com/octocat/Hello-World.git", revision: master}`: `{url: "` + git.URL("shop") + `", revision: main, credentialsSecretRef: {name: ` + cluster.GitSecret + `}}`,
	})
	if at := r.commandsUntil["/diff"]; at > mostCommands {
		t.Errorf("the diff is on the screen after %d commands, want %d at most", at, mostCommands)
	}
	r.expect(t, "/diff", "+## First steps")
	r.expect(t, "/turns", "Answered")
	if _, err := k8s.Feature(ctx, shop, "first"); err == nil {
		t.Error("the Feature is still there after the page's last command")
	}
	if push {
		r.follow(t, pushPage, map[string]string{
			"  username: tidewaiter\n  password: replace-me\n  hosts: git.example.com\n": "  username: " + git.User + "\n  password: " + git.Password + "\n  hosts: " + git.Host + "\n  ca.crt: |\n" + indented(string(git.CA), 4) + "\n",
			"https://git.example.com/shop.git":                                           git.URL("shop"),
			"  prompt: Add a login page.\n":                                              "  prompt: |\n    Add a login page.\n\n" + modelScript("diff --git a/web/login.html b/web/login.html\nnew file mode 100644\n--- /dev/null\n+++ b/web/login.html\n@@ -0,0 +1 @@\n+<h1>Login</h1>"),
		})
		r.expect(t, "/diff", "+<h1>Login</h1>")
		head, err := git.Branch(ctx, "shop", "tidewaiter/add-login")
		if f, ferr := k8s.Feature(ctx, shop, "add-login"); err != nil || ferr != nil || head == "" || head != f.Status.Head {
			t.Errorf("the branch on the server is at %q: %v, %v; status %+v", head, err, ferr, f.Status)
		}
	}
	if err := k8s.DeleteProject(ctx, shop); err != nil {
		t.Error(err)
	}
}

// reader follows pages, block by block, in a shell.
type reader struct {
	began time.Time
	sh    func(command, variable string, input ...string) string
	watch func(command, phase string) string
	// commands counts those that were run. answers has what the newest one with a part of a command printed, and commandsUntil how many there were until then.
	commands      int
	answers       map[string]string
	commandsUntil map[string]int
}

// follow a page with some parts replaced: save its manifests, run its commands, and end a watch when the page says so.
func (r *reader) follow(t *testing.T, path string, parts map[string]string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, last := adapt(t, path, string(content), parts), 0
	r.commands, r.commandsUntil = 0, map[string]int{}
	for _, at := range pageBlock.FindAllStringSubmatchIndex(page, -1) {
		before, language, text := page[last:at[0]], page[at[2]:at[3]], page[at[4]:at[5]]
		last = at[1]
		if name := savedAs.FindStringSubmatch(before); language == "yaml" && name != nil {
			r.sh("cat > "+name[1], "", text)
			continue
		}
		if language != "sh" {
			continue
		}
		until := untilPhase.FindStringSubmatch(page[last:])
		var out string
		if strings.Contains(text, " --watch") {
			if until == nil {
				t.Fatalf("%s does not say when the reader ends %s", path, text)
			}
			out = r.watch(text, until[1])
			r.commands++
		} else {
			out = r.sh(text, "")
			r.commands += strings.Count(strings.TrimSpace(text), "\n") + 1
		}
		t.Logf("[%3.0fs] $ %s%s", time.Since(r.began).Seconds(), text, out)
		for _, part := range []string{"/diff", "/turns"} {
			if strings.Contains(text, part) {
				r.answers[part], r.commandsUntil[part] = out, r.commands
			}
		}
	}
}

// expect that the newest command with a part printed a text.
func (r *reader) expect(t *testing.T, part, want string) {
	t.Helper()
	if !strings.Contains(r.answers[part], want) {
		t.Errorf("the command with %s printed %q, want %q in it", part, r.answers[part], want)
	}
}

// watching runs a command that watches a Feature, until a line of it has the phase. A Feature that is blocked or failed ends the test.
func watching(ctx context.Context, t *testing.T) func(command, phase string) string {
	return func(command, phase string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		words := strings.Fields(os.Getenv("TIDEWAITER_KUBECTL"))
		arguments := strings.Fields(command)[1:] // the first word is kubectl
		cmd := exec.CommandContext(ctx, words[0], append(words[1:], arguments...)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var seen strings.Builder
		found := false
		for lines := bufio.NewScanner(out); !found && lines.Scan(); {
			line := lines.Text()
			seen.WriteString(line + "\n")
			fields := strings.Fields(line)
			if len(fields) > 1 && (fields[1] == "Blocked" || fields[1] == "Failed") {
				break
			}
			found = len(fields) > 1 && fields[1] == phase
		}
		cancel()
		_ = cmd.Wait() // it is interrupted, as by a reader
		if !found {
			t.Fatalf("%s: no %s is seen:\n%s\n%s", command, phase, seen.String(), kubectl(context.WithoutCancel(ctx), t, "describe", "features", "--namespace="+shop))
		}
		return seen.String()
	}
}

// indented is a text in a block of YAML.
func indented(text string, by int) string {
	spaces := strings.Repeat(" ", by)
	return spaces + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+spaces)
}

// adapt replaces parts of a page. A part that is not there any more has to be looked at.
func adapt(t *testing.T, path, page string, parts map[string]string) string {
	t.Helper()
	for old, now := range parts {
		if !strings.Contains(page, old) {
			t.Errorf("%s does not have %q", path, old)
		}
		page = strings.ReplaceAll(page, old, now)
	}
	return page
}

// shell runs commands in a folder, with the cluster's kubectl, and gives what they print.
func shell(ctx context.Context, t *testing.T, dir string) func(command, variable string, input ...string) string {
	t.Helper()
	programs := t.TempDir()
	kubectl := "#!/bin/sh\nexec " + os.Getenv("TIDEWAITER_KUBECTL") + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(kubectl), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return func(command, variable string, input ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, "sh", "-ec", command)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), variable), strings.NewReader(strings.Join(input, ""))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
}

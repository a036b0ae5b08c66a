// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	quickStartPage = "../../docs/get-started/quick-start.md"
	// mostCommands is how many commands a reader has to run until the diff is on the screen.
	mostCommands = 10
	// shop is the project of the page.
	shop = "shop"
)

// script is what the provider answers: one patch, and the end.
const script = `
    ${fence}script
    turns:
    - text: I add the section.
      tool:
        name: repo_apply_patch
        input:
          operation_id: one
          patch: |
            diff --git a/README.md b/README.md
            --- a/README.md
            +++ b/README.md
            @@ -1 +1,3 @@
             # Shop
            +
            +## First steps
    - tool: {name: task_complete, input: {summary: The section is there.}}
    - text: It is done.
    ${fence}`

var (
	pageBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	savedAs   = regexp.MustCompile("Save this as `([^`]+)`")
)

// quickStart does what the page says, block by block, in a shell. What differs: the provider and the repository are in this cluster, with certificates of their own,
// what the model says is a part of the prompt.
func quickStart(ctx context.Context, t *testing.T, k8s *cluster.Cluster) {
	t.Helper()
	began := time.Now()
	git := serve(ctx, t, k8s)
	provider, err := k8s.RunProvider(ctx, project)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { return k8s.DeleteProject(ctx, shop) },
		func() error { return k8s.Project(ctx, shop) },
		func() error { return k8s.Create(ctx, git.Secret(shop, cluster.GitSecret)) },
		func() error { return k8s.AllowGit(ctx, shop, git.Host) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(quickStartPage)
	if err != nil {
		t.Fatal(err)
	}
	adapted := adapt(t, string(page), map[string]string{
		`      baseURL: https://api.anthropic.com`: "      baseURL: " + provider.URL + "\n      ca: |\n        " + strings.ReplaceAll(strings.TrimSpace(provider.CA), "\n", "\n        "),
		`  prompt: Add`:                      "  prompt: |\n    Add",
		`what the repository is for.` + "\n": "what the repository is for.\n" + strings.ReplaceAll(script, "${fence}", "```") + "\n",
		`{url: "https://github.com/octocat/Hello-World.git", revision: master}`: `{url: "` + git.URL("shop") + `", revision: main, credentialsSecretRef: {name: ` + cluster.GitSecret + `}}`,
	})
	sh := shell(ctx, t, t.TempDir())
	sh(`printf %s "$KEY" > key.txt`, "KEY="+provider.Key)
	commands, diff := 0, ""
	last := 0
	for _, at := range pageBlock.FindAllStringSubmatchIndex(adapted, -1) {
		before, language, text := adapted[last:at[0]], adapted[at[2]:at[3]], adapted[at[4]:at[5]]
		last = at[1]
		if name := savedAs.FindStringSubmatch(before); language == "yaml" && name != nil {
			sh("cat > "+name[1], "", text)
			continue
		}
		if language != "sh" {
			continue
		}
		commands += strings.Count(strings.TrimSpace(text), "\n") + 1
		if strings.Contains(text, "wait feat/first") { // what is Blocked or Failed is not waited for
			delivered(ctx, t, k8s)
		}
		out := sh(text, "")
		t.Logf("[%3.0fs] $ %s%s", time.Since(began).Seconds(), text, out)
		switch {
		case strings.Contains(text, "/diff"):
			diff = out
			if commands > mostCommands {
				t.Errorf("the diff is on the screen after %d commands, want %d at most", commands, mostCommands)
			}
		case strings.Contains(text, "/turns") && !strings.Contains(out, "Answered"):
			t.Errorf("the turns are\n%s", out)
		}
	}
	if !strings.Contains(diff, "+## First steps") {
		t.Errorf("the diff is %q", diff)
	}
	if _, err := k8s.Feature(ctx, shop, "first"); err == nil {
		t.Error("the Feature is still there after the page's last command")
	}
	if err := k8s.DeleteProject(ctx, shop); err != nil {
		t.Error(err)
	}
}

// delivered waits until the Feature of the page is, as its reader does.
func delivered(ctx context.Context, t *testing.T, k8s *cluster.Cluster) {
	t.Helper()
	err := cluster.Until(ctx, "the Feature to be delivered", func(ctx context.Context) (bool, error) {
		f, err := k8s.Feature(ctx, shop, "first")
		if err == nil && (f.Status.Phase == v1alpha1.PhaseBlocked || f.Status.Phase == v1alpha1.PhaseFailed) {
			t.Fatalf("the Feature is %s: %+v", f.Status.Phase, f.Status.Conditions)
		}
		return err == nil && f.Status.Phase == v1alpha1.PhaseDelivered, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// adapt replaces parts of a page. A part that is not there any more has to be looked at.
func adapt(t *testing.T, page string, parts map[string]string) string {
	t.Helper()
	for old, now := range parts {
		if !strings.Contains(page, old) {
			t.Errorf("%s does not have %q", quickStartPage, old)
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

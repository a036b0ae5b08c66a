// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what this test reads of a workflow of the forge.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Steps []map[string]any `json:"steps"`
	} `json:"jobs"`
}

var (
	// call is a call of a make target, or of the script that pushes a release. The arguments are for this repository, never for a machine.
	call = regexp.MustCompile(`^(?:make ([a-z0-9-]+)(?: [A-Z_]+=[a-z-]+)*|hack/release/push\.sh [a-z-]+ "\$REPOSITORY")$`)
	// action is one of the forge's own, in the version that a commit names.
	action = regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	// secret is one that a workflow uses.
	secret = regexp.MustCompile(`\bsecrets\.([A-Z_]+)`)
	target = regexp.MustCompile(`(?m)^\.PHONY: ([a-z0-9-]+)$`)
)

// TestWorkflows: the forge runs what a user can run: make targets and the script that pushes a release.
func TestWorkflows(t *testing.T) {
	targets := map[string]bool{}
	for _, file := range []string{"Makefile", "hack/cluster/cluster.mk", "hack/make/api.mk"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			targets[m[1]] = true
		}
	}
	names, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 2 {
		t.Fatalf("workflows %q, want at least two", names)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problemsOf(string(text), targets) {
			t.Errorf("%s: %s", filepath.Base(name), problem)
		}
	}
}

func problemsOf(text string, targets map[string]bool) (problems []string) {
	report := func(format string, values ...any) { problems = append(problems, fmt.Sprintf(format, values...)) }
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return []string{err.Error()}
	}
	first, _, _ := strings.Cut(text, "\n")
	if !strings.Contains(first, "Secrets: ") {
		report("the first line must say which secrets it needs: %q", first)
	}
	for _, m := range secret.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(first, m[1]) {
			report("the first line does not name the secret %s", m[1])
		}
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		report("permissions %v, want contents: read", w.Permissions)
	}
	steps := 0
	for job, j := range w.Jobs {
		for _, step := range j.Steps {
			steps++
			for key, value := range step {
				switch key {
				case "run":
					m := call.FindStringSubmatch(fmt.Sprint(value))
					if m == nil || m[1] != "" && !targets[m[1]] {
						report("job %s runs %q, which is no make target and not push.sh", job, value)
					}
				case "uses":
					if !action.MatchString(fmt.Sprint(value)) {
						report("job %s uses %q: name an action of the forge by its commit", job, value)
					}
				case "with":
				default:
					report("job %s has a step with %s", job, key)
				}
			}
		}
	}
	if steps == 0 {
		report("it has no step")
	}
	return problems
}

// TestWorkflowsAreRead: each way to do more than a user can is a problem.
func TestWorkflowsAreRead(t *testing.T) {
	const good = "# Checks. Secrets: A.\npermissions: {contents: read}\nenv: {A: \"${{ secrets.A }}\"}\njobs:\n  j:\n    steps:\n" +
		"    - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4\n    - run: make verify\n    - run: hack/release/push.sh release \"$REPOSITORY\"\n"
	targets := map[string]bool{"verify": true}
	if problems := problemsOf(good, targets); len(problems) > 0 {
		t.Fatalf("%q", problems)
	}
	for what, change := range map[string][2]string{
		"another target":      {"make verify", "make install"},
		"a second command":    {"make verify", "make verify && curl example.com"},
		"a path":              {"make verify", "make verify OUT=/tmp/out"},
		"a tag of an action":  {"@11bd71901bbe5b1630ceea73d27597364c9af683", "@v4"},
		"somebody's action":   {"actions/checkout@", "somebody/checkout@"},
		"a shell":             {"- run: make verify", "- run: make verify\n      shell: python"},
		"a secret not said":   {"Secrets: A", "Secrets: none"},
		"nothing of secrets":  {"Secrets: A", ""},
		"rights to write":     {"contents: read", "contents: write"},
		"more rights":         {"contents: read", "contents: read, packages: write"},
		"no step":             {"steps:", "other:"},
		"a broken file":       {"jobs:", "jobs: ["},
		"an evaluated output": {"\"$REPOSITORY\"", "\"$(whoami)\""},
	} {
		if problems := problemsOf(strings.Replace(good, change[0], change[1], 1), targets); len(problems) == 0 {
			t.Errorf("%s is no problem", what)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Rules about content see what is in the trusted repository, by every path, and say nothing of what a secret is.
func TestContentIsJudged(t *testing.T) {
	t.Parallel()
	// Made up, and in two parts: the orders are in the journal, and the agent's script with them.
	const one, two = "Zq3xV7mK9pL2rT5wY8", "bN1cD4fG6hJ0sA2eU7"
	w := newWorld(t, `printf 'token = "ghp_%s%s"\n' `+one+` `+two+` > web/config.js; printf 'a\0b' > web/logo.bin
		for i in 1 2 3 4 5 6 7 8 9; do echo "insert $i;"; done > web/data.sql; echo run > web/run.sh; chmod +x web/run.sh
		echo closed > web/closed.txt; echo api > web/api.yaml`, seldom,
		func(o *protocol.Orders) {
			o.Agent.Role = "writer"
			o.Policy.Changes.Executables, o.Policy.Changes.Binaries, o.Policy.Changes.Secrets = policy.Deny, policy.Deny, policy.Deny
			o.Policy.Changes.MaxLines = 8
			o.Policy.Paths.Rules = []policy.PathRule{{Paths: []string{"closed.txt"}, Roles: []string{"writer"}, Access: policy.ReadOnly}}
			o.Policy.Contracts = []policy.Contract{{Name: "api", Paths: []string{"web/api.yaml"}}}
			o.Policy.Checks = []policy.Check{{Name: "no-big-sql", CEL: "file.path.endsWith('.sql') && file.linesAdded > 8", Message: "too much SQL"}}
		})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	c := w.intake.Checkpoints()[0]
	var got []string
	for _, v := range c.Violations {
		got = append(got, v.Rule+" "+v.Path)
	}
	want := []string{
		"changed-lines ", "binaries web/logo.bin", "contracts web/api.yaml", "executables web/run.sh", "no-big-sql web/data.sql",
		"path-rules web/closed.txt", "secrets web/config.js",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if c.LinesAdded != 13 || c.LinesDeleted != 0 {
		t.Errorf("lines +%d -%d, want +13 -0", c.LinesAdded, c.LinesDeleted)
	}
	reports, err := json.Marshal(w.intake.Checkpoints())
	if err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(filepath.Join(w.paths.Trusted, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(reports), one+two) || strings.Contains(string(journal), one+two) {
		t.Error("the secret is in a report or in the journal")
	}
}

// What is only Info is neither told nor blocks; a Warning is told and does not block.
func TestSeveritiesTell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo old > web/legacy/info.html; ln -s a web/link; read line; echo "$line" > "$HOME/told"`, keen,
		func(o *protocol.Orders) {
			o.Policy.Paths.Severity = policy.Info
			o.Policy.Changes.Symlinks = policy.Warn
		})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(told); !strings.Contains(text, `"constraint":"symlinks"`) || strings.Contains(text, "forbidden-areas") {
		t.Errorf("the agent was told %s, want the link and not the forbidden area", text)
	}
	found := false
	for _, c := range w.intake.Checkpoints() {
		found = found || c.ViolationCount == 2 && c.Action == protocol.ActionPromoted
	}
	if !found {
		t.Errorf("checkpoints %+v, want one with both violations that was promoted", w.intake.Checkpoints())
	}
}

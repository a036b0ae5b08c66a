// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// ask runs a subcommand that reads the trusted volume.
func (w *world) ask(args ...string) string {
	w.t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{args[0], "--trusted", w.paths.Trusted}, args[1:]...)
	if code := command(args, &out, &errs); code != 0 {
		w.t.Fatalf("%v: code %d\n%s", args, code, errs.String())
	}
	return out.String()
}

// twoTasks leaves two promoted checkpoints.
func twoTasks(t *testing.T) *world {
	w := newWorld(t, `case $TIDEWAITER_TASK in
		one) echo "<form>" > web/login.html; printf '\033[2Jevil\n' > "web/$(printf 'es\033c')"; head -c 3000 /dev/zero > web/zero.bin;;
		two) echo "</form>" >> web/login.html; rm web/index.html; ln -s login.html web/link;; esac`, seldom,
		func(o *protocol.Orders) {
			o.Tasks = []protocol.Task{{Name: "one"}, {Name: "two"}}
			o.Policy.Enforcement = policy.Audit // the name is against the rules
		})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	return w
}

func TestDiffOfACheckpoint(t *testing.T) {
	t.Parallel()
	w := twoTasks(t)
	first, second, all := w.ask("diff", "login-1"), w.ask("diff", "2"), w.ask("diff", "--cumulative")
	for name, tc := range map[string]struct {
		diff, want string
		holds      bool
	}{
		"the first has the form":            {diff: first, want: "\n+<form>\n", holds: true},
		"a name that a terminal acts on":    {diff: first, want: `+++ "b/web/es\033c"`, holds: true},
		"content that a terminal acts on":   {diff: first, want: `+\u001b[2Jevil`, holds: true},
		"a binary file is told":             {diff: first, want: "Binary files /dev/null and b/web/zero.bin differ", holds: true},
		"the first lacks the second":        {diff: first, want: "</form>"},
		"the second adds a line":            {diff: second, want: "\n <form>\n+</form>\n", holds: true},
		"the second deletes":                {diff: second, want: "\ndeleted file mode 100644\n", holds: true},
		"the second lacks what was before":  {diff: second, want: "evil"},
		"the newest since the base has all": {diff: all, want: "\n+<form>\n+</form>\n", holds: true},
		"with what the first brought":       {diff: all, want: "evil", holds: true},
	} {
		if strings.Contains(tc.diff, tc.want) != tc.holds {
			t.Errorf("%s: %q, want %v of %q", name, tc.diff, tc.holds, tc.want)
		}
	}
	patch := filepath.Join(w.dir, "patch")
	if err := os.WriteFile(patch, []byte(w.ask("diff", "--cumulative", "--patch", "2")), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := w.seed()
	w.git("-C", seed, "apply", "--index", patch)
	if got, want := w.git("-C", seed, "write-tree"), w.intake.Checkpoints()[1].Tree; got != want {
		t.Errorf("the applied patch gives the tree %s, want that of the checkpoint, %s", got, want)
	}
	var out bytes.Buffer
	code := command([]string{"diff", "--trusted", w.paths.Trusted, "9"}, &out, &out)
	if code != 1 || !strings.Contains(out.String(), "there is no checkpoint 9; there are 1, 2") {
		t.Errorf("a checkpoint that is not there: code %d, %s", code, out.String())
	}
}

func TestFileEventsAreLogged(t *testing.T) {
	t.Parallel()
	w := twoTasks(t)
	type line struct {
		Event string `json:"event_type"`
		Path  string `json:"file_path"`
		Size  int64  `json:"file_size"`
		ID    string `json:"checkpoint_id"`
	}
	var got []line
	for decoder := json.NewDecoder(strings.NewReader(w.ask("log", "--files"))); decoder.More(); {
		var l line
		if err := decoder.Decode(&l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	want := []line{
		{"add", "web/es\x1bc", 9, "login-1"}, {"add", "web/login.html", 7, "login-1"}, {"add", "web/zero.bin", 3000, "login-1"},
		{"unlink", "web/index.html", 0, "login-2"}, {"add", "web/link", 10, "login-2"}, {"change", "web/login.html", 15, "login-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTheJournalHoldsWhatAnAuditAsksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo evil > web/legacy/evil.html; read told; rm web/legacy/evil.html; echo good > web/good.html`, keen)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	log := w.ask("log")
	for _, want := range []string{
		`"orders":{`, `"generation":`, `"hash":"policy-1"`, // what it was held to
		`"verdict":"Invalid"`, `"rule":"forbidden-areas"`, // what was found
		`"told":{"checkpoint":1,"delivered":true,"text":"{\"type\":\"checkpoint_violation\"`, // what the agent was told
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the journal has no %s:\n%s", want, log)
		}
	}
}

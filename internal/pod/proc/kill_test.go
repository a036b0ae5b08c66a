// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

func mustKill(t *testing.T, c *Container, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Kill(ctx, grace); err != nil {
		t.Fatal(err)
	}
	if left := pids(t); len(left) != 0 {
		t.Errorf("left after kill, zombies counted: %v", left)
	}
}

func TestKill(t *testing.T) {
	const never = time.Hour // a grace that passes would be seen as a hanging test
	for name, test := range map[string]struct {
		script string
		freeze bool
		grace  time.Duration
		want   Exit
		// or is another end that is right: on a busy machine a short grace is over before the shell has had its turn.
		or Exit
		// wantFile is what the script has written at the end.
		wantFile string
	}{
		"ends on SIGTERM":               {script: "touch up; sleep 1000", grace: never, want: Exit{143, "SIGTERM"}},
		"handles SIGTERM":               {script: "trap 'echo bye >>up; exit 5' TERM; touch up; while :; do sleep 0.01; done", grace: never, want: Exit{Code: 5}, wantFile: "bye\n"},
		"handles SIGTERM when frozen":   {script: "trap 'echo bye >>up; exit 5' TERM; touch up; while :; do sleep 0.01; done", freeze: true, grace: never, want: Exit{Code: 5}, wantFile: "bye\n"},
		"ignores SIGTERM":               {script: "trap '' TERM; touch up; while :; do sleep 0.01; done", grace: 20 * time.Millisecond, want: Exit{137, "SIGKILL"}},
		"no grace":                      {script: "trap 'echo bye >>up' TERM; touch up; while :; do sleep 0.01; done", want: Exit{137, "SIGKILL"}},
		"no grace, frozen":              {script: "touch up; while :; do :; done", freeze: true, want: Exit{137, "SIGKILL"}},
		"grandchildren, own session":    {script: "setsid sh -c '(setsid sleep 1000 &) ; sleep 1000' & touch up; sleep 1000", grace: never, want: Exit{143, "SIGTERM"}},
		"grandchildren, ignore SIGTERM": {script: "(trap '' TERM; (sleep 1000 & sleep 1000) & sleep 1000) & touch up; sleep 1000", grace: 20 * time.Millisecond, want: Exit{143, "SIGTERM"}, or: Exit{137, "SIGKILL"}},
		"stopped by itself":             {script: "touch up; kill -STOP $$", grace: never, want: Exit{143, "SIGTERM"}},
	} {
		t.Run(strings.ReplaceAll(name, ",", ""), func(t *testing.T) {
			container.Run(t, func(t *testing.T) {
				c := newTestContainer(t)
				dir := container.TempDir(t)
				p := shell(t, c, "cd "+dir+"; "+test.script)
				eventually(t, "the script is up", func() bool { _, err := os.Stat(dir + "/up"); return err == nil })
				if test.freeze {
					mustFreeze(t, c)
				}
				mustKill(t, c, test.grace)
				if got := await(t, p); got != test.want && (test.or == Exit{} || got != test.or) {
					t.Errorf("exit = %+v, want %+v", got, test.want)
				}
				if text, _ := os.ReadFile(filepath.Join(dir, "up")); string(text) != test.wantFile {
					t.Errorf("file = %q, want %q", text, test.wantFile)
				}
				if got := await(t, shell(t, c, "exit 6")); got.Code != 6 { // the freeze is over as well
					t.Errorf("code of the next = %d, want 6", got.Code)
				}
			})
		})
	}
}

func TestKillOfNothing(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		mustKill(t, newTestContainer(t), time.Hour)
	})
}

func TestKillForkStorm(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		for range most(2, 5) {
			path := filepath.Join(container.TempDir(t), "counters")
			counters := container.NewCounters(t, path, 20)
			start(t, c, container.Storm(path, 20), os.Args[0])
			counters.AwaitProgress(t)
			mustKill(t, c, 0)
			checkStill(t, counters, "killed")
		}
	})
}

func TestInput(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		dir := container.TempDir(t)
		long := strings.Repeat("x", 200<<10) // more than a pipe holds
		p := shell(t, c, fmt.Sprintf("cat >%s/out", dir))
		for _, line := range []string{"one", "", long} {
			if !p.Input.Write(line) {
				t.Errorf("line of %d bytes was dropped", len(line))
			}
		}
		want := "one\n\n" + long + "\n"
		eventually(t, "all has come whole", func() bool {
			text, _ := os.ReadFile(dir + "/out")
			return string(text) == want
		})
		eventually(t, "the next line goes in too", func() bool { return p.Input.Write("last") })
	})
}

func TestInputIsDropped(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		lines  int // that fit before the first is dropped, at most
	}{
		"closed":      {"exec <&-; touch up; sleep 1000", 0},
		"never reads": {"touch up; sleep 1000", 100},
	} {
		t.Run(name, func(t *testing.T) {
			container.Run(t, func(t *testing.T) {
				c := newTestContainer(t)
				dir := container.TempDir(t)
				p := shell(t, c, "cd "+dir+"; "+test.script)
				eventually(t, "the script is up", func() bool { _, err := os.Stat(dir + "/up"); return err == nil })
				n := 0
				for p.Input.Write(strings.Repeat("x", 1000)) {
					if n++; n > test.lines {
						t.Fatalf("%d lines were taken, want %d at most", n, test.lines)
					}
				}
				mustKill(t, c, 0)
				await(t, p)
				if p.Input.Write("after the end") {
					t.Error("a line was taken after the end")
				}
			})
		})
	}
}

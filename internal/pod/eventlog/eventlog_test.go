// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/pod/eventlog"
)

type event struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

func keyOf(line []byte) (string, bool) {
	var e event
	err := json.Unmarshal(line, &e)
	return e.Key, err == nil && e.Key != ""
}

func open(t testing.TB, path string) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(eventlog.Options{Path: path, MaxBytes: 200, Keep: 2, KeyOf: keyOf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func read(t testing.TB, path string) []event {
	t.Helper()
	var out bytes.Buffer
	if err := eventlog.Copy(&out, path); err != nil {
		t.Fatal(err)
	}
	var events []event
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var e event
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestABatchIsThereOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "log.jsonl")
	l := open(t, path)
	a, b, c := event{"1", "a"}, event{"1", "b"}, event{"2", "c"}
	for _, batch := range [][]any{{a, b}, {}, {a, b}, {a, b}} { // again and again, as after a crash; an empty one is none
		if err := l.Append("1", batch...); err != nil {
			t.Fatal(err)
		}
	}
	l = open(t, path)
	for range 2 {
		if err := l.Append("2", c); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]event{a, b, c}, read(t, path)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestWhatACrashToreIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	a, b := event{"1", "a"}, event{"2", "b"}
	if err := open(t, path).Append("1", a); err != nil {
		t.Fatal(err)
	}
	for _, rubbish := range []string{`{"key":"2","te`, "\x00\x00\x00\n", "{}\n"} {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString(rubbish)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if err := open(t, path).Append("2", b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]event{a, b}, read(t, path)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", rubbish, diff)
		}
	}
}

// TestTheLogIsBounded: whatever is written, the newest lines are there in order, and the files stay within their bound.
func TestTheLogIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		path := filepath.Join(dir, "log.jsonl")
		var want []event
		l := open(t, path)
		for n := range rapid.IntRange(1, 60).Draw(rt, "batches") {
			if rapid.Bool().Draw(rt, "restart") {
				l = open(t, path)
			}
			key := strconv.Itoa(n)
			var batch []any
			for _, text := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,10}`), 0, 4).Draw(rt, "batch") {
				e := event{key, text}
				batch, want = append(batch, e), append(want, e)
			}
			for range rapid.IntRange(1, 2).Draw(rt, "times") {
				if err := l.Append(key, batch...); err != nil {
					rt.Fatal(err)
				}
			}
		}
		got := read(t, path)
		if len(got) > len(want) {
			rt.Fatalf("%d events of %d", len(got), len(want))
		}
		if diff := cmp.Diff(want[len(want)-len(got):], got); diff != "" {
			rt.Fatalf("the newest events (-want +got):\n%s", diff)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) > 3 {
			rt.Fatalf("files %v, %v", files, err)
		}
		for _, f := range files {
			if i, err := os.Stat(f); err != nil || i.Size() > 200 {
				rt.Fatalf("%s: %v, %v", f, i.Size(), err)
			}
		}
	})
}

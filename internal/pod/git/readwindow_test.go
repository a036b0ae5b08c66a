// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// store writes blobs as a capture does, so that they are kept in memory.
func store(t *testing.T, r *git.Repository, contents ...string) []objects.ID {
	t.Helper()
	pack := r.Store().NewPack(nil)
	defer pack.Abort()
	var ids []objects.ID
	for _, content := range contents {
		id, err := pack.Add(objects.KindBlob, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := pack.Commit(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// readAll says of each object what it is, and fails where they come out of order.
func readAll(t *testing.T, from *git.Objects, ids []objects.ID) []string {
	t.Helper()
	var got []string
	err := from.ReadAll(t.Context(), ids, 1000, func(i int, content []byte, err error) {
		if i != len(got) {
			t.Errorf("object %d comes as the %dth", i, len(got))
		}
		switch {
		case errors.Is(err, git.ErrNoObject):
			content = []byte("missing")
		case errors.Is(err, git.ErrTooLarge):
			content = []byte("large")
		case err != nil:
			t.Error(err)
		}
		got = append(got, string(content))
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// mixed gives a repository with blobs of which some are in memory, some in packs alone, some nowhere and some too large;
// more of each than are asked for at once.
func mixed(t *testing.T) (*git.Repository, []objects.ID) {
	t.Helper()
	r := newRepository(t)
	var old, now []string
	for i := range 2500 {
		old, now = append(old, fmt.Sprintf("old %d\n", i)), append(now, fmt.Sprintf("new %d\n", i))
		switch i % 100 {
		case 3:
			now[i] = strings.Repeat("large", 400) + now[i]
		case 4:
			now[i] = ""
		}
	}
	before := store(t, r, old...)
	r.Store().Recent().Clear()
	after := store(t, r, now...)
	var ids []objects.ID
	for i := range before {
		if ids = append(ids, before[i], after[i]); i%100 == 5 {
			ids = append(ids, objects.Hash(objects.KindBlob, []byte("nowhere")))
		}
	}
	return r, ids
}

// TestReadAllFromMemory: what comes from memory is what git reads, in the same order.
func TestReadAllFromMemory(t *testing.T) {
	r, ids := mixed(t)
	others := r.MoreObjects()
	t.Cleanup(func() { _ = others.Close() })
	want := readAll(t, others, ids)
	if diff := cmp.Diff(want, readAll(t, r.Objects(), ids)); diff != "" {
		t.Errorf("(-git +memory):\n%s", diff)
	}
}

// TestForgedMemoryIsNotBelieved: where bytes in memory are no longer those that were hashed, git is asked; every object
// comes once, and as it is stored.
func TestForgedMemoryIsNotBelieved(t *testing.T) {
	r, ids := mixed(t)
	others := r.MoreObjects()
	t.Cleanup(func() { _ = others.Close() })
	want := readAll(t, others, ids)
	forged := 0
	for i, id := range ids {
		if content, ok := r.Store().Recent().Get(id); ok && len(content) > 0 && i > len(ids)/2 {
			content[0] ^= 1
			forged++
		}
	}
	if forged < 1000 {
		t.Fatalf("%d forged", forged)
	}
	if diff := cmp.Diff(want, readAll(t, r.Objects(), ids)); diff != "" {
		t.Errorf("(-git +memory):\n%s", diff)
	}
}

// TestForgedMemoryChangesNoVerdict: a secret that was captured is found although its bytes in memory were replaced by
// harmless ones, and a harmless file is no secret although its bytes were replaced by one.
func TestForgedMemoryChangesNoVerdict(t *testing.T) {
	const secret, harmless = "key: ghp_x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeTuW\n", "nothing to be seen here, and of the same length\n"
	for content, want := range map[string]protocol.Verdict{secret: protocol.Invalid, harmless: protocol.Valid} {
		r := newRepository(t)
		id := store(t, r, content)[0]
		in := judge.Input{
			Policy: policy.Merge(policy.Sources{}), Names: func([]string) map[string][]string { return map[string][]string{"": {"a.txt"}} },
			Changes: []judge.Change{{Path: "a.txt", Kind: judge.Added, New: judge.Entry{Mode: judge.ModeFile, ID: id.String(), Size: int64(len(content))}}},
			Contents: func(ids []string, limit int64, visit func(int, []byte, bool)) {
				if err := r.Objects().ReadAll(t.Context(), []objects.ID{id}, limit, func(i int, content []byte, err error) { visit(i, content, err == nil) }); err != nil {
					t.Error(err)
				}
			},
		}
		judged := func() judge.Judgement {
			j, err := judge.Judge(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		before := judged()
		kept, ok := r.Store().Recent().Get(id)
		if !ok || before.Verdict != want {
			t.Fatalf("kept %v, verdict %s (%s), want %s", ok, before.Verdict, judge.Summary(before), want)
		}
		copy(kept, map[string]string{secret: harmless, harmless: secret}[content])
		if diff := cmp.Diff(before, judged()); diff != "" {
			t.Errorf("%q (-before +forged):\n%s", content, diff)
		}
	}
}

// TestReadAllFromMemoryEnds: a judgement that is called off ends, also where git is not asked for anything.
func TestReadAllFromMemoryEnds(t *testing.T) {
	r := newRepository(t)
	ids := store(t, r, "one\n", "two\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.Objects().ReadAll(ctx, ids, 1000, func(int, []byte, error) { t.Error("visited") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

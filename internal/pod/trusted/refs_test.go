// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Refs move together, once, from where the journal has them and from nowhere else.
func TestRefsMoveByCompareAndSwap(t *testing.T) {
	repo, err := git.Init(t.Context(), Dir(t.TempDir()).Repository(), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	const chain, delivery = "refs/tidewaiter/chain", "refs/tidewaiter/delivery"
	commit := func(message string) string {
		person := objects.Person{Name: "A", Email: "a@example.com", When: time.Unix(0, 0).UTC()}
		id, err := repo.WriteCommit(objects.Commit{Tree: objects.EmptyTree, Author: person, Committer: person, Message: message})
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	one, two, three := commit("one"), commit("two"), commit("three")
	steps := []struct {
		name     string
		moves    []Move
		fails    bool
		at, then string // chain and delivery afterwards
	}{
		{"the first", []Move{{chain, "", one}, {delivery, "", one}}, false, one, one},
		{"again, as after a crash", []Move{{chain, "", one}, {delivery, "", one}}, false, one, one},
		{"one of them alone", []Move{{chain, one, two}, {delivery, one, one}}, false, two, one},
		{"from elsewhere", []Move{{chain, one, three}, {delivery, one, three}}, true, two, one},
		{"one of them is there already", []Move{{chain, one, two}, {delivery, one, two}}, false, two, two},
	}
	for _, s := range steps {
		if err := MoveRefs(t.Context(), repo, s.moves...); (err != nil) != s.fails || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", s.name, err)
		}
		if err := CheckRefs(t.Context(), repo, Ref{chain, s.at}, Ref{delivery, s.then}, Ref{"refs/tidewaiter/none", ""}); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if err := CheckRefs(t.Context(), repo, Ref{chain, one}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a ref that is elsewhere: %v, want %v", err, ErrCorrupt)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// RefUpdate moves one ref by compare-and-swap.
type RefUpdate struct {
	// Name in full, such as refs/tidewaiter/chain.
	Name string
	// Old is the value the ref must have; zero: it must not exist.
	Old objects.ID
	// New value; zero deletes the ref.
	New objects.ID
}

// UpdateRefs makes all of the updates or none. ErrRefMoved says that a ref did not have its old value. The updates survive a loss of power.
func (r *Repository) UpdateRefs(ctx context.Context, updates []RefUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	var in strings.Builder
	in.WriteString("start\x00")
	for _, u := range updates {
		if err := checkName("ref", u.Name); err != nil {
			return err
		}
		if u.New.IsZero() {
			fmt.Fprintf(&in, "delete %s\x00%s\x00", u.Name, u.Old)
		} else {
			fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", u.Name, u.New, u.Old)
		}
	}
	in.WriteString("prepare\x00commit\x00")
	_, err := r.runner.run(ctx, call{args: []string{"update-ref", "--no-deref", "-z", "--stdin"}, stdin: strings.NewReader(in.String())})
	if _, exited := exitCode(err); exited && mentions(err.Error(), "but expected", "already exists", "unable to resolve reference", "reference is missing") {
		return fmt.Errorf("%w: %w", ErrRefMoved, err)
	}
	if err != nil {
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

// Ref returns what a ref names; the zero ID when it does not exist.
func (r *Repository) Ref(ctx context.Context, name string) (objects.ID, error) {
	if err := checkName("ref", name); err != nil {
		return objects.ID{}, err
	}
	if !strings.HasPrefix(name, "refs/") {
		return objects.ID{}, fmt.Errorf("ref %q is not a full name: begin it with refs/", name)
	}
	// The process that reads objects knows where refs are at the time of the question. It does not tell a ref that does not exist from one whose
	// object is missing.
	id, err := r.objects.named(ctx, name)
	if !errors.Is(err, ErrNoObject) {
		return id, err
	}
	if r.lacksRef(name) {
		return objects.ID{}, nil
	}
	out, err := r.runner.run(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name}})
	if code, exited := exitCode(err); exited && code == 1 {
		return objects.ID{}, nil
	}
	if err != nil {
		return objects.ID{}, fmt.Errorf("read ref %s: %w", name, err)
	}
	return objects.ParseID(strings.TrimSpace(string(out)))
}

// lacksRef tells whether a ref cannot exist: in a repository as init makes it, a ref is a file of its name or a line of packed-refs.
func (r *Repository) lacksRef(name string) bool {
	for _, path := range []string{name, "packed-refs"} {
		if _, err := os.Lstat(filepath.Join(r.dir, path)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return r.asMade()
}

// named returns the object that a full name of a ref stands for. The error is ErrNoObject if there is no such ref, or no such object.
func (o *Objects) named(ctx context.Context, name string) (objects.ID, error) {
	var id objects.ID
	err := o.ask(ctx, []byte("info "+name+"\nflush\n"), func(p *catFile) error {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return errors.Join(fmt.Errorf("read ref %s: %w", name, err), io.EOF, errBroken)
		}
		line = strings.TrimSuffix(line, "\n")
		if line == name+" missing" {
			return fmt.Errorf("%w: %s", ErrNoObject, name)
		}
		words := strings.Split(line, " ")
		if id, err = objects.ParseID(words[0]); err != nil || len(words) != 3 {
			return errors.Join(fmt.Errorf("read ref %s: answer %q", name, line), err, errBroken)
		}
		return nil
	})
	return id, err
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"hash"

	"github.com/pjbgf/sha1cd"
)

// CollisionError says that content bears the marks of a SHA-1 collision: somebody has made other content with the same
// name. The checked content could then differ from the delivered one, so the watchdog does not store it.
type CollisionError struct {
	// Kind of the object.
	Kind Kind
	// ID of the content by plain SHA-1; zero for content that was too large to compute it first.
	ID ID
}

// Error says what to do.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("a %s has been made to have the same SHA-1 as another; remove it: it can be neither stored nor delivered", e.Kind)
}

// collisionHash is SHA-1 that recognises one half of a collision only from that half. It takes several times as long as
// SHA-1 on the processor's own instructions, so it runs where content is compressed, which takes longer still, and no agent
// waits for it.
type collisionHash interface {
	hash.Hash
	// CollisionResistantSum appends the sum, and says whether it is that of a collision.
	CollisionResistantSum(in []byte) ([]byte, bool)
}

func newCollisionHash() collisionHash { return sha1cd.New().(collisionHash) }

// check recognises an object that is one half of a collision. It gives the ID that the content has.
func (p *Pack) check(o object) (id ID, err error) {
	p.guard.Reset()
	p.guard.Write(header(o.kind, int64(len(o.content))))
	p.guard.Write(o.content)
	if _, collides := p.guard.CollisionResistantSum(id[:0]); collides {
		return ID{}, &CollisionError{Kind: o.kind, ID: o.id}
	}
	if id != o.id {
		return ID{}, fmt.Errorf("%w: a %s was to be stored as %s and is %s", ErrWrite, o.kind, o.id, id)
	}
	return id, nil
}

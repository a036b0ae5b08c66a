// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// BenchmarkPack measures what a frozen agent waits for (add) and what comes after it thaws (commit), for content that
// compresses about as well as source code does.
func BenchmarkPack(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	content := make([][]byte, 1000)
	for i := range content {
		content[i] = make([]byte, 8<<10)
		for at := 0; at+8 <= len(content[i]); at += 8 {
			binary.LittleEndian.PutUint64(content[i][at:], random.Uint64()&0x0f0f0f0f)
		}
	}
	b.Run("add", func(b *testing.B) {
		b.SetBytes(8000 << 10)
		for b.Loop() {
			pack := NewStore(b.TempDir()).NewPack(nil)
			for _, c := range content {
				_ = pack.hash(KindBlob, c)
			}
		}
	})
	for name, guard := range map[string]func() collisionHash{"commit": newCollisionHash, "commit without a look at collisions": func() collisionHash { return blind{} }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(8000 << 10)
			for b.Loop() {
				pack := NewStore(b.TempDir()).NewPack(nil)
				pack.guard = guard()
				for _, c := range content {
					if _, err := pack.Add(KindBlob, c); err != nil {
						b.Fatal(err)
					}
				}
				if err := pack.Commit(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// blind is a guard that does not look.
type blind struct{ collisionHash }

func (blind) Reset()                                         {}
func (blind) Write(b []byte) (int, error)                    { return len(b), nil }
func (blind) CollisionResistantSum(in []byte) ([]byte, bool) { return in, false }

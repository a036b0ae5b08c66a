// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"slices"
)

// largeOffset is the first offset that does not fit into the 31 bits of an index's short table.
const largeOffset = 1 << 31

// encodeIndex gives the index, version 2, of a pack with this checksum. Entries are reordered in place.
func encodeIndex(entries []packEntry, pack ID) []byte {
	slices.SortFunc(entries, func(a, b packEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	b := make([]byte, 0, 8+256*4+len(entries)*(len(ID{})+8)+2*len(ID{}))
	b = append(b, 0xff, 't', 'O', 'c')
	b = binary.BigEndian.AppendUint32(b, 2)
	b = appendFanout(b, entries)
	for i := range entries {
		b = append(b, entries[i].id[:]...)
	}
	for i := range entries {
		b = binary.BigEndian.AppendUint32(b, entries[i].crc)
	}
	var large []int64
	for i := range entries {
		if entries[i].offset < largeOffset {
			b = binary.BigEndian.AppendUint32(b, uint32(entries[i].offset))
			continue
		}
		b = binary.BigEndian.AppendUint32(b, largeOffset|uint32(len(large)))
		large = append(large, entries[i].offset)
	}
	for _, offset := range large {
		b = binary.BigEndian.AppendUint64(b, uint64(offset))
	}
	b = append(b, pack[:]...)
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// appendFanout writes, for each first byte, how many ids begin with it or a lesser one.
func appendFanout(b []byte, entries []packEntry) []byte {
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].id[0]) <= first {
			n++
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hash identifies the values of a policy, in hex. Where they come from does not count.
func (e Effective) hash() string {
	e.Hash, e.Sources, e.Conflicts, e.Origins = "", nil, nil, nil
	more := map[string]any{}
	for _, row := range Rows() {
		if !row.later {
			continue
		}
		if now, builtin := row.cut(&e); !bytes.Equal(text(now), text(builtin)) {
			more[row.Path] = now
		}
	}
	all := text(e)
	if len(more) > 0 {
		all = append(all, text(more)...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:])
}

// text of a value. Equal values have equal texts.
func text(value any) []byte {
	// encoding/json writes fields in the order of their declaration, maps in the order of their keys, and every list is sorted:
	// equal values, equal bytes. Only channels, functions, cycles and numbers that are none cannot be written, and a policy has
	// none of these.
	written, _ := json.Marshal(value) //nolint:errchkjson // see above
	return written
}

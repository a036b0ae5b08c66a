// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

// ConversationCache is the file with the session's state, so that a restarted watchdog neither forgets its messages nor
// repeats them.
type ConversationCache struct{ path string }

// NewConversationCache of a volume.
func NewConversationCache(d Dir) *ConversationCache {
	return &ConversationCache{path: d.conversation()}
}

// Load the stored state; nil if there is none.
func (m *ConversationCache) Load() ([]byte, error) {
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Keep it. It is durable when Keep returns.
func (m *ConversationCache) Keep(data []byte) error { return durable.Replace(m.path, data) }

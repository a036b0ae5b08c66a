// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

// Memory is what a watchdog remembers of the agent's conversation, so that one that begins anew neither forgets what it has said nor says
// it twice.
type Memory struct{ path string }

// NewMemory of a volume.
func NewMemory(d Dir) *Memory { return &Memory{path: d.conversation()} }

// Load what was kept; nil where nothing was.
func (m *Memory) Load() ([]byte, error) {
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Keep it. It is durable when Keep returns.
func (m *Memory) Keep(data []byte) error { return durable.Replace(m.path, data) }

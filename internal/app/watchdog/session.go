// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/host/link"
)

// runnerSession keeps the nonce of the session with the runner on the trusted volume. It belongs to one attempt: each has a
// runner of its own.
type runnerSession struct {
	path    string
	attempt int64
}

var _ link.Memory = (*runnerSession)(nil)

// keptSession is the file's content, JSON.
type keptSession struct {
	Attempt int64  `json:"attempt"`
	Nonce   string `json:"nonce"`
}

// Nonce implements link.Memory.
func (s *runnerSession) Nonce() (string, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var kept keptSession
	if err := json.Unmarshal(data, &kept); err != nil {
		return "", fmt.Errorf("%w: file session: %w", errCorrupt, err)
	}
	if kept.Attempt != s.attempt {
		return "", nil
	}
	return kept.Nonce, nil
}

// Keep implements link.Memory.
func (s *runnerSession) Keep(nonce string) error {
	data, err := json.Marshal(keptSession{Attempt: s.attempt, Nonce: nonce})
	if err != nil {
		return err
	}
	return replaceFile(s.path, data)
}

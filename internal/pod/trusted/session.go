// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

// Session keeps the nonce of the session with the runner. It belongs to one attempt: each has a runner of its own.
type Session struct {
	path    string
	attempt int64
}

// NewSession is that of an attempt.
func NewSession(d Dir, attempt int64) *Session { return &Session{path: d.session(), attempt: attempt} }

// keptSession is the file's content, JSON.
type keptSession struct {
	Attempt int64  `json:"attempt"`
	Nonce   string `json:"nonce"`
}

// Nonce that was stored in this attempt; empty if there is none.
func (s *Session) Nonce() (string, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var kept keptSession
	if err := json.Unmarshal(data, &kept); err != nil {
		return "", fmt.Errorf("%w: file session: %w", ErrCorrupt, err)
	}
	if kept.Attempt != s.attempt {
		return "", nil
	}
	return kept.Nonce, nil
}

// Keep a nonce. It is durable when Keep returns.
func (s *Session) Keep(nonce string) error {
	data, err := json.Marshal(keptSession{Attempt: s.attempt, Nonce: nonce})
	if err != nil {
		return err
	}
	return durable.Replace(s.path, data)
}

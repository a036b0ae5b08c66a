// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxOutputs bounds the outputs of gates on a volume, in bytes: the oldest go.
const maxOutputs = 8 << 20

// Outputs are the outputs of gates, each under the sum of its bytes. The journal names them, and does not need them.
type Outputs struct{ path string }

// NewOutputs of a volume.
func NewOutputs(d Dir) Outputs { return Outputs{d.in("outputs")} }

var outputName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Keep an output, and return its sum. It is durable when Keep returns.
func (o Outputs) Keep(text []byte) (sum string, err error) {
	hash := sha256.Sum256(text)
	sum = hex.EncodeToString(hash[:])
	if err := os.MkdirAll(o.path, 0o700); err != nil {
		return "", fmt.Errorf("keep the output of a gate: %w", err)
	}
	if err := o.drop(maxOutputs - int64(len(text))); err != nil {
		return "", err
	}
	if err := durable.Replace(filepath.Join(o.path, sum), text); err != nil {
		return "", fmt.Errorf("keep the output of a gate: %w", objects.WrapFull(err))
	}
	return sum, nil
}

// drop the oldest outputs until the others have at most so many bytes.
func (o Outputs) drop(room int64) error {
	entries, err := os.ReadDir(o.path)
	if err != nil {
		return fmt.Errorf("list the outputs of gates: %w", err)
	}
	type kept struct {
		name string
		at   time.Time
		size int64
	}
	var all []kept
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("list the outputs of gates: %w", err)
		}
		all = append(all, kept{entry.Name(), info.ModTime(), max(info.Size(), minOutput)})
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	for _, k := range all {
		if room -= k.size; room >= 0 {
			continue
		}
		if err := os.Remove(filepath.Join(o.path, k.name)); err != nil {
			return fmt.Errorf("drop the output of a gate: %w", err)
		}
	}
	return nil
}

// minOutput is what an output counts at least: a file takes a block.
const minOutput = 4 << 10

// Read an output by its sum; nil if it is not there any more. The error is ErrCorrupt if it is not as it was written.
func (o Outputs) Read(sum string) ([]byte, error) {
	if !outputName.MatchString(sum) {
		return nil, fmt.Errorf("%w: %q names no output", ErrCorrupt, sum)
	}
	text, err := os.ReadFile(filepath.Join(o.path, sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the output of a gate: %w", err)
	}
	if hash := sha256.Sum256(text); hex.EncodeToString(hash[:]) != sum {
		return nil, fmt.Errorf("%w: the output %s is not what was written", ErrCorrupt, sum)
	}
	return text, nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	hostbackends "github.com/tidewaiter/tidewaiter/internal/host/backends"
	"github.com/tidewaiter/tidewaiter/internal/host/models"
	"github.com/tidewaiter/tidewaiter/internal/kube/translate"
)

const (
	// reloadEvery is how often the files are looked at. The kubelet writes them anew up to a minute after the objects.
	reloadEvery = 5 * time.Second
	// maxKey bounds a key in bytes; keys of providers have some hundred.
	maxKey = 16 << 10
	// maxBackendsFile bounds the configuration in bytes: a ConfigMap has at most 1 MiB.
	maxBackendsFile = 1 << 20
)

// backends keeps the configuration of backends as its files say it. A broken one is told, and the last good one stays.
type backends struct {
	file, keys string
	log        *slog.Logger
	// told which backends there are and whether each has its key; nil where the configuration is broken.
	told func(ready map[string]bool)

	table atomic.Pointer[models.Table]
	seen  [sha256.Size]byte
}

// NeedLeaderElection is false: every replica serves.
func (*backends) NeedLeaderElection() bool { return false }

// Start looks again and again.
func (b *backends) Start(ctx context.Context) error {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		b.load(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// load takes the files over where they have changed.
func (b *backends) load(ctx context.Context) {
	text, keys, err := b.read()
	if err != nil {
		b.log.ErrorContext(ctx, "Backends cannot be read; the last good configuration stays", "error", err.Error())
		b.told(nil)
		return
	}
	seen := digest(text, keys)
	if seen == b.seen {
		return
	}
	b.seen = seen // a broken configuration is told once
	var table *models.Table
	config, err := translate.Backends(string(text))
	if err == nil {
		table, err = models.NewTable(config, keys, hostbackends.Options{})
	}
	if err != nil {
		b.told(nil)
		b.log.ErrorContext(ctx, "The configuration of backends cannot be used; the last good one stays", "file", b.file, "error", err.Error())
		return
	}
	if old := b.table.Swap(table); old != nil {
		old.Close()
	}
	b.told(table.Ready())
	b.log.InfoContext(ctx, "Backends", "ready", table.Ready())
	if list := config.Windowless(); len(list) > 0 {
		b.log.InfoContext(ctx, "Models have no contextWindow: the condition ContextPressure is not seen with them", "models", list)
	}
}

// read the files. Without a configuration there are no backends, and that is none that is broken.
func (b *backends) read() (text []byte, keys map[string]string, err error) {
	text, err = readBounded(b.file, maxBackendsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	keys = map[string]string{}
	entries, err := os.ReadDir(b.keys)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read keys: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // the kubelet's own
			continue
		}
		key, err := readBounded(filepath.Join(b.keys, e.Name()), maxKey)
		if err != nil {
			return nil, nil, err
		}
		keys[e.Name()] = string(bytes.TrimSpace(key))
	}
	return text, keys, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, %d are the most", path, info.Size(), limit)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// digest tells files apart; never zero, so that a first look counts as a change.
func digest(text []byte, keys map[string]string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", text, keys)) // %q of a map is in the order of its keys
}

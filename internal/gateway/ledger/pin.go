// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	// maxTerms and maxTemplates bound what is pinned, in bytes: some times the largest object of Kubernetes.
	maxTerms, maxTemplates = 1 << 20, 8 << 20
)

// PinKey is what terms are pinned for.
type PinKey struct {
	FeatureUID string
	Attempt    int64
	Task       string
}

// Pin returns what applies to a task: the given terms if the task has none yet, or else the terms that any replica pinned first. The ledger
// stores the text of templates once for all tasks with the same text.
func (l *Ledger) Pin(ctx context.Context, key PinKey, terms []byte, templates string) (pinnedTerms []byte, pinnedTemplates string, err error) {
	const what = "pin what applies to a task"
	if len(terms) > maxTerms || len(templates) > maxTemplates {
		return nil, "", fmt.Errorf("%s: %d bytes of terms and %d bytes of templates are too many: the limits are %d and %d", what, len(terms), len(templates), maxTerms, maxTemplates)
	}
	key.FeatureUID, key.Task = word(key.FeatureUID, maxWord), word(key.Task, maxWord)
	var text []byte
	find := func(row *sql.Row) error { return row.Scan(&pinnedTerms, &text) }
	args := []any{key.FeatureUID, key.Attempt, key.Task}
	err = l.read(ctx, what, func(db *sql.DB) error { return find(db.QueryRowContext(ctx, selectPin, args...)) })
	if errors.Is(err, sql.ErrNoRows) {
		sum := sha256.Sum256([]byte(templates))
		hash, packed := hex.EncodeToString(sum[:]), l.bodies.compress([]byte(templates))
		err = l.write(ctx, what, durable, func(tx *transaction) error {
			if _, err := tx.ExecContext(ctx, insertTemplate, hash, packed); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, insertPin, key.FeatureUID, key.Attempt, key.Task, l.now().UnixNano(), append([]byte{}, terms...), hash); err != nil {
				return err
			}
			return find(tx.QueryRowContext(ctx, selectPin, args...))
		})
	}
	if err != nil {
		return nil, "", err
	}
	plain, err := decompress(text, maxTemplates)
	return pinnedTerms, string(plain), err
}

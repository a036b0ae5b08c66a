// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Paths that the delivery changes: the first ones that are printable and short enough, sorted, and how many there are.
func (s *Service) Paths(ctx context.Context) (paths []string, count int64, err error) {
	j := s.Journal.State()
	var trees [2]*objects.Tree
	for i, name := range []string{j.Base.Tree, j.Head().Tree} {
		id, err := objects.ParseID(name)
		if err != nil {
			return nil, 0, err
		}
		if trees[i], err = s.Repository.Tree(ctx, id); err != nil {
			return nil, 0, err
		}
	}
	room, last := protocol.MaxDeliveredBytes, ""
	objects.Diff(trees[0], trees[1], func(path string, _, _ *objects.Entry) {
		if path == last { // a file on one side, and something else on the other
			return
		}
		last = path
		count++
		if len(paths) < protocol.MaxDeliveredPaths && len(path) <= room && utf8.RuneCountInString(path) <= protocol.MaxDeliveredPath && judge.Escape(path) == path {
			paths, room = append(paths, path), room-len(path)
		}
	})
	return paths, count, nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// benchInput is a change of so many files in a tree of ten times as many, under so many patterns of all kinds.
func benchInput(files, patterns int) Input {
	in := Input{Workspace: Workspace{Files: int64(files), Bytes: int64(files)}}
	var tree []string
	for i := range files * 10 {
		path := fmt.Sprintf("services/team-%d/module-%d/src/File%d.go", i%7, i%97, i)
		tree = append(tree, path)
		if i%10 != 0 {
			continue
		}
		if i%20 == 0 {
			in.Changes = append(in.Changes, addFile(path))
		} else {
			in.Changes = append(in.Changes, modifyFile(path))
		}
	}
	for i := range patterns {
		list := &in.Policy.Paths.Protected
		if i%3 == 0 {
			list = &in.Plan.Forbidden
		}
		switch i % 6 {
		case 0:
			*list = append(*list, fmt.Sprintf("legacy-%d/**", i))
		case 1:
			*list = append(*list, fmt.Sprintf("CODEOWNERS-%d", i))
		case 2:
			*list = append(*list, fmt.Sprintf("*.secret%d", i))
		case 3:
			*list = append(*list, fmt.Sprintf("services/*/config-%d/*.yaml", i))
		case 4:
			*list = append(*list, fmt.Sprintf("services/**/keys-%d/**", i))
		case 5:
			*list = append(*list, fmt.Sprintf("**/fixtures-%d/[a-z]*.json", i))
		}
	}
	in.Plan.Allowed = []string{"services/team-*/**", "docs/"}
	in.Policy.Changes.Symlinks = policy.Allow
	in.Names = treeOf(tree...)
	return sound(in)
}

func BenchmarkJudge(b *testing.B) {
	for _, files := range []int{1000, 10000} {
		for _, patterns := range []int{12, 300} {
			in := benchInput(files, patterns)
			if j := judgeAll(in); j.Verdict != protocol.Valid {
				b.Fatal(Summary(j))
			}
			b.Run(fmt.Sprintf("files=%d/patterns=%d", files, patterns), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					judgeAll(in)
				}
			})
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reasons gives the core the API's names of conditions and reasons, which it may not import. It runs in the
// checkout's root, and is linked with nothing that uses these names: a new one need not compile before it is generated.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"

	"github.com/tidewaiter/tidewaiter/hack/gen/apinames"
)

// output is one generated file.
type output struct {
	// path below the root, and the name of the package that it belongs to.
	path, pkg string
	blocks    func(apinames.Names) []block
}

// block is a block of constants with its comment.
type block struct {
	comment, prefix string
	list            []apinames.Constant
}

// outputs lists what is generated. Each reason is in one of them.
func outputs() []output {
	return []output{
		{"internal/core/protocol/zz_generated.reasons.go", "protocol", func(n apinames.Names) []block {
			return []block{{"Reasons of faults and final reports. They become reasons of conditions.", "Reason", n.Reported}}
		}},
		{"internal/core/lifecycle/zz_generated.reasons.go", "lifecycle", func(n apinames.Names) []block {
			return []block{
				{"Condition types, in the API's own names.", "Condition", n.Types},
				{"Reasons that are the controllers' own; those of faults and final reports are in core/protocol.", "Reason", n.Own},
			}
		}},
	}
}

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
}

// write makes every file and leaves those alone whose content is right.
func write(root string) error {
	names, err := apinames.Read(root)
	if err != nil {
		return err
	}
	for _, o := range outputs() {
		content, err := o.render(names)
		if err != nil {
			return fmt.Errorf("make %s: %w", o.path, err)
		}
		path := filepath.Join(root, o.path)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	return nil
}

func (o output) render(names apinames.Names) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Copyright The Tidewaiter Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"+
		"// Code generated from %s by hack/gen/reasons. DO NOT EDIT.\n\npackage %s\n", apinames.File, o.pkg)
	for _, block := range o.blocks(names) {
		fmt.Fprintf(&b, "\n// %s\nconst (\n", block.comment)
		for _, c := range block.list {
			fmt.Fprintf(&b, "%s%s = %q\n", block.prefix, c.Name, c.Value)
		}
		b.WriteString(")\n")
	}
	return format.Source(b.Bytes())
}

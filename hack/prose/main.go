// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose measures the English of the documentation, of the API's field descriptions, of messages and of comments, and prints where one of rules.tsv applies.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root, list := flag.String("root", ".", "folder of the checkout"), flag.Bool("list", false, "print each place where a rule applies, with what to write instead")
	flag.Parse()
	if err := run(os.Stdout, *root, *list); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, list bool) error {
	rules, err := readRules(filepath.Join(root, "hack/prose/rules.tsv"))
	if err != nil {
		return err
	}
	sources, err := readSources(root)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-40s %9s %6s %8s %9s %5s\n", "", "SENTENCES", "YOU", "PASSIVE", ">25 WORDS", "HITS")
	for _, s := range sources {
		f := measure(s.passages)
		found := s.broken(rules)
		fmt.Fprintf(out, "%-40s %9d %5d%% %7d%% %8d%% %5d\n", s.name, f.sentences, f.percent(f.you), f.percent(f.passive), f.percent(f.long), len(found))
		if list && len(found) > 0 {
			fmt.Fprintln(out, "  "+strings.Join(found, "\n  "))
		}
	}
	return nil
}

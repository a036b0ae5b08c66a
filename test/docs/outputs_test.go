// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// recordedPages show what real runs printed. The value says what keeps the page to it.
var recordedPages = map[string]string{
	"docs/get-started/demo.md": "test/demo renders the page from the record of a run",
	"docs/benchmarks.md":       "make bench prints the lines, and the page names machine and day",
}

// figure is a block that no program prints: a drawing, or the form of a text.
const figure = "figure"

var example = regexp.MustCompile(`(?i)\bexamples?\b`)

// output is a block of a page that shows what a program prints.
type output struct {
	before string // the paragraph before the block
	text   string
}

// outputs of a page, without figures.
func outputs(page string) []output {
	var all []output
	for _, at := range block.FindAllStringSubmatchIndex(page, -1) {
		info := strings.Fields(page[at[4]:at[5]])
		language := ""
		if len(info) > 0 {
			language = info[0]
		}
		if slices.Contains(info, figure) || !slices.Contains([]string{"", "text", "console", "json", "diff"}, language) {
			continue
		}
		paragraphs := strings.Split(strings.TrimSpace(page[:at[0]]), "\n\n")
		all = append(all, output{before: paragraphs[len(paragraphs)-1], text: page[at[6]:at[7]]})
	}
	return all
}

// TestOutputs: a block of output is a record of a run, or the sentence before it says that it is an example. So nobody takes invented output for a promise.
// What is not output is marked: ```text figure.
func TestOutputs(t *testing.T) {
	count := 0
	recorded := map[string]bool{}
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		for _, o := range outputs(text) {
			count++
			if recordedPages[name] != "" {
				recorded[name] = true
			} else if strings.HasPrefix(strings.TrimSpace(o.before), "```") || !example.MatchString(o.before) {
				t.Errorf("%s: the paragraph before this block does not say that it is an example. If no program prints it, mark it as ```text %s:\n%s", name, figure, o.text)
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d blocks of output were found", count)
	}
	for name := range recordedPages {
		if !recorded[name] {
			t.Errorf("%s has no block of output any more", name)
		}
	}
}

// TestColumns: a table of our objects that a page shows has the columns that kubectl prints today.
func TestColumns(t *testing.T) {
	var headers []string
	crds, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var ours []string // columns by which a table of ours is recognized
	for _, path := range crds {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					AdditionalPrinterColumns []struct {
						Name     string
						Priority int
					}
				}
			}
		}
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		short, wide := "", ""
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			title := " " + strings.ToUpper(column.Name)
			if wide += title; column.Priority == 0 {
				short += title
			}
		}
		headers = append(headers, short, wide)
		ours = append(ours, strings.Fields(short)[0]+" "+strings.Fields(short)[1])
	}
	count := 0
	for name, text := range pages(t) {
		for _, o := range outputs(text) {
			for line := range strings.Lines(o.text) {
				words := strings.Fields(line)
				at := slices.Index(words, "NAME")
				if at < 0 || at > 1 { // NAMESPACE may come first
					continue
				}
				columns := words[at+1:]
				if len(columns) < 2 || !slices.Contains(ours, columns[0]+" "+columns[1]) {
					continue
				}
				if count++; !slices.Contains(headers, " "+strings.Join(columns, " ")) {
					t.Errorf("%s shows a table with other columns than kubectl prints: %s", name, line)
				}
			}
		}
	}
	if count < 5 {
		t.Errorf("only %d tables were found", count)
	}
}

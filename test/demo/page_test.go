// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "render the page of the demo from the recorded run")
	record = flag.String("record", "", "take the record of a run from this folder, which make demo writes, and render the page")
)

const (
	recorded = "testdata"
	page     = "../../docs/get-started/demo.md"
)

//go:embed page.md.tmpl
var pageTemplate string

// TestPage: the page of the demo shows the recorded run.
func TestPage(t *testing.T) {
	if *record != "" {
		for _, name := range []string{runFile, describeFile, explainFile} {
			text, err := os.ReadFile(filepath.Join(*record, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(recorded, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := render(read(t, runFile), read(t, describeFile), read(t, explainFile))
	if err != nil {
		t.Fatal(err)
	}
	if *update || *record != "" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/get-started/demo.md is not what the recorded run says; -args -update renders it (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// render makes the page of what a run printed, and of what kubectl said about the Feature intruder and about the API.
func render(run, describe, explain string) (string, error) {
	sections, err := split(run, title)
	if err != nil {
		return "", err
	}
	stories, err := split(sections["The results"], paragraph)
	if err != nil {
		return "", err
	}
	var objects []string
	for line := range strings.Lines(sections["The objects"]) {
		if row, is := strings.CutPrefix(line, "    "); is {
			objects = append(objects, strings.TrimSuffix(row, "\n"))
		}
	}
	said, err := condition(describe)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = template.Must(template.New("page").Option("missingkey=error").Parse(pageTemplate)).Execute(&b, map[string]any{
		"Features":  strings.TrimSpace(sections["Applying the Features"] + sections["Following them"]),
		"Story":     stories,
		"Objects":   strings.TrimSpace(strings.Join(withoutMost(objects, checkpointRow), "\n")),
		"Condition": said,
		"Explain":   strings.TrimSpace(explain),
	})
	return trailing.ReplaceAllString(b.String(), ""), err
}

var (
	// title of a step, and paragraph about a Feature, begin a part of what a run prints.
	title     = regexp.MustCompile(`^\[ *\d+s\] == (.*)$`)
	paragraph = regexp.MustCompile(`^  ([a-z]+): `)
	// What there is much of is shortened: the checkpoints of a Feature, and its commits.
	checkpointRow = regexp.MustCompile(`^checkpoint\.tidewaiter\.dev/([a-z]+)-\d+ `)
	commitRow     = regexp.MustCompile(`^    [0-9a-f]{8} (Tidewaiter)  `)
	trailing      = regexp.MustCompile(`(?m)[ \t]+$`)
)

// split a text into the parts that begin with such a line, by what its group has.
func split(text string, begin *regexp.Regexp) (map[string]string, error) {
	parts, at := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if m := begin.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			at = m[1]
		}
		if at != "" {
			parts[at] += line
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("the run has nothing like %s", begin)
	}
	for name, part := range parts {
		lines := strings.Split(strings.Trim(part, "\n"), "\n")
		parts[name] = strings.Join(withoutMost(lines, commitRow), "\n") + "\n"
		if begin == title {
			parts[name] = part
		}
	}
	return parts, nil
}

// most is how many rows of one kind the page shows before it shortens them.
const most = 6

// withoutMost leaves the first and the last row of many of one kind, with the lines that follow each.
func withoutMost(lines []string, row *regexp.Regexp) []string {
	counts, kind := map[string]int{}, make([]string, len(lines))
	for i, line := range lines {
		if m := row.FindStringSubmatch(line); m != nil {
			counts[m[1]]++
			kind[i] = m[1]
		} else if i > 0 && strings.HasPrefix(line, " ") {
			kind[i] = kind[i-1] // it belongs to the row before it
		}
	}
	seen := map[string]int{}
	var kept []string
	for i, line := range lines {
		k := kind[i]
		if row.MatchString(line) {
			seen[k]++
			if counts[k] > most && seen[k] == 2 {
				kept = append(kept, "…")
			}
		}
		if k == "" || counts[k] <= most || seen[k] == 1 || seen[k] == counts[k] {
			kept = append(kept, line)
		}
	}
	return kept
}

// condition is what kubectl describe says of the condition Succeeded, and the events.
func condition(describe string) (string, error) {
	before, _, found := strings.Cut(describe, "    Type:                  Succeeded\n")
	_, events, hasEvents := strings.Cut(describe, "\nEvents:\n")
	at := strings.LastIndex(before, "    Last Transition Time:")
	if !found || !hasEvents || at < 0 {
		return "", fmt.Errorf("kubectl describe shows no condition Succeeded, or no events")
	}
	return before[at:] + "    Type:                  Succeeded\nEvents:\n" + strings.TrimRight(events, "\n"), nil
}

// TestTheRecordHasTheWordsOfTheProgram: each line of the recorded run is one that the program prints today, and it has a line for each text
// of the program. Names, times and figures are free.
func TestTheRecordHasTheWordsOfTheProgram(t *testing.T) {
	texts := words(t)
	for _, s := range append(agents, stories...) {
		texts = append(texts, regexp.MustCompile("^"+regexp.QuoteMeta(s.line())+"$"))
	}
	found := make([]bool, len(texts))
	var end bytes.Buffer
	newProgress(&end).farewell("hack/cluster/run.sh kubectl", true)
	run, is := strings.CutSuffix(strings.TrimSpace(read(t, runFile)), strings.TrimSpace(end.String()))
	if !is {
		t.Errorf("the record does not end with\n%s", end.String())
	}
	for line := range strings.Lines(run) {
		said := stamp.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if said == nil {
			continue
		}
		known := false
		for i, text := range texts {
			if text.MatchString(said[1]) {
				known, found[i] = true, true
			}
		}
		if !known {
			t.Errorf("the program does not say this any more: %s", line)
		}
	}
	for i, text := range texts {
		if !found[i] {
			t.Errorf("the record has no line for %s", text)
		}
	}
	if t.Failed() {
		t.Log("run make demo, then go test ./test/demo -args -record ../../bin/demo")
	}
}

// stamp is the time of a line. A paragraph has none, and keeps its indent.
var stamp = regexp.MustCompile(`^(?:\[ *\d+s\] )?((?:  )?[^ ].*)$`)

// words are the texts that the program prints: the formats of progress, and the titles of the steps.
func words(t *testing.T) []*regexp.Regexp {
	t.Helper()
	before := map[string]string{"say": "", "paragraph": "  ", "change": "%-12s "}
	var formats []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			prefix, prints := before[method.Sel.Name]
			for _, argument := range call.Args {
				text, ok := argument.(*ast.BasicLit)
				if !prints || !ok || text.Kind != token.STRING {
					continue
				}
				format, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				// What is printed whole has its words elsewhere.
				if format != "%s" {
					formats = append(formats, prefix+format)
				}
				break
			}
			return true
		})
	}
	for _, step := range (&demo{}).steps() {
		formats = append(formats, "== "+strings.ReplaceAll(step.title, "%", "%%"))
	}
	if len(formats) < 10 {
		t.Fatalf("only %d texts were found: %q", len(formats), formats)
	}
	var texts []*regexp.Regexp
	for _, format := range slices.Compact(slices.Sorted(slices.Values(formats))) {
		texts = append(texts, regexp.MustCompile("^"+verb.ReplaceAllString(regexp.QuoteMeta(format), ".*")+"$"))
	}
	return texts
}

var verb = regexp.MustCompile(`%(?:-?\d+)?[sdv]`)

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// maxPath bounds a path in bytes: Linux's PATH_MAX with its terminating NUL. Longer ones can be made but not opened.
	maxPath = 4095
	// maxName bounds one name of a path in bytes: Linux's NAME_MAX, which its file systems share.
	maxName = 255
	// maxDepth bounds the names in a path. The deepest trees of real repositories stay below 60; the time to match a
	// path grows with its depth.
	maxDepth = 128
)

// wellFormed exists because the other rules believe what a change says of itself: a path such as "web/../ci.yaml" is
// inside "web/**" by its letters only.
func wellFormed() Rule {
	return Rule{
		ID:         "malformed-entry",
		Reason:     "MalformedEntry",
		Doc:        "Every change must be one entry of a Git tree. It has a canonical path of at most 4095 bytes and 128 names of at most 255 bytes, which appears once. Its kind and modes agree, and its mode is one that Git gives to files, links and submodules. The other rules cannot check anything else, so this rule rejects it.",
		Severity:   "always Error",
		Suggestion: "remove or rename the entry",
		check: func(v *view) []breach {
			found := slices.Clone(v.malformed)
			for _, f := range v.Found {
				switch f.Kind {
				case FoundGitDir, FoundFIFO, FoundSocket, FoundDevice, FoundTooLarge, FoundHardlink:
				default:
					found = append(found, breach{
						path:     f.Path,
						severity: policy.Error,
						message:  fmt.Sprintf("the capture met something unknown (%s)", quoteName(string(f.Kind))),
					})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a path that climbs", Input{Changes: []Change{addFile("web/../ci.yaml")}}},
			{"an absolute path", Input{Changes: []Change{addFile("/etc/passwd")}}},
			{"an empty name", Input{Changes: []Change{addFile("web//index.html")}}},
			{"no path", Input{Changes: []Change{addFile("")}}},
			{"a path that cannot be opened", Input{Changes: []Change{addFile(strings.Repeat("deep/", 900) + "x")}}},
			{"a name that no file system holds", Input{Changes: []Change{addFile("web/" + strings.Repeat("n", 256))}}},
			{"a directory that no file system holds", Input{Changes: []Change{addFile(strings.Repeat("d", 256) + "/x")}}},
			{"a mode that Git does not know", Input{Changes: []Change{{Path: "a", Kind: Added, New: Entry{Mode: 0o100600, ID: sampleID}}}}},
			{"a kind that the modes deny", Input{Changes: []Change{{Path: "a", Kind: Deleted, New: Entry{Mode: ModeFile, ID: sampleID}}}}},
			{"a path listed twice", Input{Changes: []Change{addFile("a"), deleteFile("a")}}},
			{"a finding of an unknown kind", Input{Found: []Found{{Path: "a", Kind: "Whiteout"}}}},
		},
		Accept: []Sample{
			{"plain changes", Input{Changes: []Change{addFile("a"), modifyFile("b/c"), deleteFile("d")}}},
			{"a name of 255 bytes", Input{Changes: []Change{addFile("web/" + strings.Repeat("n", 255))}}},
			{"names with dots", Input{Changes: []Change{addFile("..."), addFile(".env"), addFile("a/..b")}}},
			{"a file that became executable", Input{Changes: []Change{{
				Path: "run", Kind: Modified,
				Old: Entry{Mode: ModeFile, ID: sampleID}, New: Entry{Mode: ModeExecutable, ID: sampleID},
			}}}},
			{"a known finding", Input{Found: []Found{{Path: "a", Kind: FoundFIFO}}}},
		},
	}
}

// fault says why a change is not one entry of a tree, or "".
func (c Change) fault() string {
	if fault := pathFault(c.Path); fault != "" {
		return fault
	}
	if !knownMode(c.Old.Mode) || !knownMode(c.New.Mode) {
		return fmt.Sprintf("the mode (%o before, %o now) is not one that Git gives", c.Old.Mode, c.New.Mode)
	}
	agrees := false
	switch c.Kind {
	case Added:
		agrees = c.Old.Mode == 0 && c.New.Mode != 0
	case Deleted:
		agrees = c.Old.Mode != 0 && c.New.Mode == 0
	case Modified, TypeChanged:
		agrees = c.Old.Mode != 0 && c.New.Mode != 0
	}
	if !agrees {
		return fmt.Sprintf("the kind of change (%s) and the modes (%o before, %o now) disagree",
			quoteName(string(c.Kind)), c.Old.Mode, c.New.Mode)
	}
	return ""
}

// pathFault says why a path is not canonical, or "".
func pathFault(path string) string {
	switch {
	case path == "":
		return "the path is empty"
	case len(path) > maxPath:
		return fmt.Sprintf("the path has %d bytes, and the limit is %d", len(path), maxPath)
	case strings.IndexByte(path, 0) >= 0:
		return "the path has a NUL byte"
	}
	depth := 0
	for name := range strings.SplitSeq(path, "/") {
		depth++
		if name == "" || name == "." || name == ".." {
			return fmt.Sprintf("the path is not canonical: it has the name %q", name)
		}
		if len(name) > maxName {
			return fmt.Sprintf("a name in the path has %d bytes, and file systems hold %d", len(name), maxName)
		}
	}
	if depth > maxDepth {
		return fmt.Sprintf("the path is %d names deep, and the limit is %d", depth, maxDepth)
	}
	return ""
}

func knownMode(mode uint32) bool {
	switch mode {
	case 0, ModeFile, ModeExecutable, ModeSymlink, ModeGitlink:
		return true
	default:
		return false
	}
}

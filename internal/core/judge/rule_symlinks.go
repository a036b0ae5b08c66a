// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// symlinks keeps links inside the tree. Only what the letters of a target say is believed: a target may climb at its
// beginning, from the link's own directory, which is a real one, but not after a name, which may be a link itself
// ("d/.." is not "." where d is a link). If every link keeps to that, no chain of links leaves the tree: each step
// replaces a path inside it by another one, and what remains goes down.
func symlinks() Rule {
	deny := policy.Effective{Changes: policy.Changes{Symlinks: policy.Deny}}
	allow := policy.Effective{Changes: policy.Changes{Symlinks: policy.Allow}}
	return Rule{
		ID:         "symlinks",
		Reason:     "SymlinkNotAllowed",
		Doc:        "A symbolic link must have a target that file systems hold (1 to 4095 bytes, no NUL). It must not be absolute, lead out of the repository, into a .git, or climb (\"..\") after a name. For other links, the policy allows, reports or denies. The rule only applies to new and changed links.",
		Severity:   "Error for links out of the repository, or Critical if changes.symlinks of the policy is; for others changes.symlinks, by default Warn",
		Suggestion: "replace the link by what it should lead to",
		check:      badLinks,
		Reject: []Sample{
			{"an absolute link", Input{Policy: allow, Changes: []Change{addLink("a", "/etc/passwd")}}},
			{"a link out of the tree", Input{Policy: allow, Changes: []Change{addLink("web/a", "../../x")}}},
			{"a link out of the tree and back", Input{Policy: allow, Changes: []Change{addLink("web/a", "../../workspace/x")}}},
			{"a link that climbs after a name", Input{Policy: allow, Changes: []Change{addLink("l", "p/d/../..")}}},
			{"a link into .git", Input{Policy: allow, Changes: []Change{addLink("web/a", "../.git/hooks/pre-commit")}}},
			{"a link into .GIT", Input{Policy: allow, Changes: []Change{addLink("a", ".GIT")}}},
			{"a link with a drive", Input{Policy: allow, Changes: []Change{addLink("a", `C:\Windows`)}}},
			{"a link with NUL in its target", Input{Policy: allow, Changes: []Change{addLink("a", "b\x00c")}}},
			{"a link with a target that is too long", Input{Policy: allow, Changes: []Change{addLink("a", strings.Repeat("b", 4096))}}},
			{"a link whose target is too long to be read", Input{Policy: allow, Changes: []Change{{
				Path: "a", Kind: Added, New: Entry{Mode: ModeSymlink, ID: sampleID, Size: 1 << 20},
			}}}},
			{"a link to nothing", Input{Policy: allow, Changes: []Change{addLink("a", "")}}},
			{"a link that was turned around", Input{Policy: allow, Changes: []Change{{
				Path: "a", Kind: Modified, Old: Entry{Mode: ModeSymlink, Target: "b"}, New: Entry{Mode: ModeSymlink, Target: "/b"},
			}}}},
			{"a file that became a link", Input{Policy: allow, Changes: []Change{{
				Path: "a", Kind: TypeChanged, Old: Entry{Mode: ModeFile, ID: sampleID}, New: Entry{Mode: ModeSymlink, Target: ".."},
			}}}},
			{"any link, if denied", Input{Policy: deny, Changes: []Change{addLink("a", "b")}}},
			{"any link, under a policy with an unknown value", Input{
				Policy:  policy.Effective{Changes: policy.Changes{Symlinks: "Perhaps"}},
				Changes: []Change{addLink("a", "b")},
			}},
		},
		Accept: []Sample{
			{"a link with the longest target", Input{Policy: allow, Changes: []Change{addLink("a", strings.Repeat("b", 4095))}}},
			{"a link inside the tree", Input{Policy: allow, Changes: []Change{addLink("web/a/b", "../../docs/c"), addLink("d", "./e"), addLink("web/f", "..")}}},
			{"a link that is removed", Input{Policy: deny, Changes: []Change{{Path: "a", Kind: Deleted, Old: Entry{Mode: ModeSymlink, Target: "/b"}}}}},
			{"a file", Input{Policy: deny, Changes: []Change{addFile("a")}}},
		},
	}
}

// badLinks finds added and changed links that are not allowed.
func badLinks(v *view) []breach {
	var found []breach
	for _, c := range v.changes {
		if c.New.Mode != ModeSymlink {
			continue
		}
		if fault := targetFault(c.New); fault != "" {
			found = append(found, breach{path: c.Path, severity: v.Policy.Changes.Symlinks.AtLeastError(), message: fault})
			continue
		}
		shown := v.shownTarget(c.New.Target)
		if fault := linkFault(c.Path, c.New.Target, shown); fault != "" {
			found = append(found, breach{
				path: c.Path, severity: v.Policy.Changes.Symlinks.AtLeastError(), message: fault,
				suggestion: "remove the link, or let it lead to a path inside the repository, relative to its own directory",
			})
		} else if severity, broken := v.Policy.Changes.Symlinks.Severity(); broken {
			found = append(found, breach{
				path: c.Path, severity: severity,
				message: "it is a symbolic link to " + shown,
			})
		}
	}
	return found
}

// shownTarget is how messages name a target: not at all where it holds a secret, whether that is new or not, or may hold
// one.
func (v *view) shownTarget(target string) string {
	const little = secrets.Budget / 60 // there may be many links
	if found, _, err := v.scanner().Find(v.ctx, little, "", nil, []byte(target)); len(found) > 0 || err != nil {
		return "(not shown: it looks like a secret)"
	}
	return quoteName(target)
}

// maxTarget bounds the target of a link in bytes: Linux's PATH_MAX without its terminating NUL.
const maxTarget = 4095

// targetFault says why no file system holds a link, or "". A target that is too long is not read: its size tells.
func targetFault(e Entry) string {
	size := max(e.Size, int64(len(e.Target)))
	switch {
	case size > maxTarget:
		return fmt.Sprintf("it is a symbolic link with a target of %d bytes, and the limit is %d", size, maxTarget)
	case e.Target == "":
		return "it is a symbolic link with no target"
	case strings.IndexByte(e.Target, 0) >= 0:
		return "it is a symbolic link with a NUL byte in its target"
	}
	return ""
}

// linkFault says why a link at path must not lead to target, or "". Messages name the target as shown.
func linkFault(path, target, shown string) string {
	if target[0] == '/' || target[0] == '\\' || len(target) > 1 && target[1] == ':' {
		return fmt.Sprintf("it is a symbolic link to the absolute path %s", shown)
	}
	depth := strings.Count(path, "/")
	down := false
	for name := range strings.FieldsFuncSeq(target, isSlash) {
		switch {
		case name == ".":
		case name == ".." && down:
			return fmt.Sprintf("it is a symbolic link to %s, which climbs after a name", shown)
		case name == "..":
			if depth--; depth < 0 {
				return fmt.Sprintf("it is a symbolic link to %s, outside of the repository", shown)
			}
		case IsGitDir(name):
			return fmt.Sprintf("it is a symbolic link to %s, into a .git", shown)
		default:
			down = true
		}
	}
	return ""
}

// isSlash takes backslashes too: Windows does, and a target is the same text everywhere.
func isSlash(r rune) bool { return r == '/' || r == '\\' }

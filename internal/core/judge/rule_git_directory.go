// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// gitDirectory exists because what is inside a nested repository is invisible to Git (`git status -uall` prints only
// "hide/"), a submodule points to content that nobody checked, and a tree with ".git" in it has executed code on the
// machines of those who checked it out (CVE-2014-9390 and its successors).
func gitDirectory() Rule {
	link := Entry{Mode: ModeGitlink, ID: sampleID}
	return Rule{
		ID:         "git-directory",
		Reason:     "GitDirectory",
		Doc:        "The repository may contain no other repository. No path may have the name .git, in any spelling that some file system treats as .git: case, composition, invisible characters, \".git.\", \"git~1\", \".git:stream\". The work may not add a submodule, move it to another commit or remove it.",
		Severity:   "always Error",
		Suggestion: "remove the nested repository, or move its files where they belong without its .git",
		check: func(v *view) []breach {
			var found []breach
			for _, f := range v.Found {
				if f.Kind == FoundGitDir {
					found = append(found, breach{path: f.Path, severity: policy.Error, message: "it is a nested Git repository"})
				}
			}
			for _, c := range v.changes {
				switch {
				case c.New.Mode == ModeGitlink || c.Old.Mode == ModeGitlink:
					found = append(found, breach{
						path: c.Path, severity: policy.Error,
						message:    "it is a submodule that was " + c.done(),
						suggestion: "put the submodule back as it was; ask a user to make this change",
					})
				case !c.deleted() && hasDotGit(c.Path):
					found = append(found, breach{path: c.Path, severity: policy.Error, message: "a name in it is, or stands for, .git"})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a nested repository", Input{Found: []Found{{Path: "hide/.git", Kind: FoundGitDir}}}},
			{"a .git in the tree", Input{Changes: []Change{addFile("hide/.git/config")}}},
			{"in capitals", Input{Changes: []Change{addFile(".GIT/hooks/pre-commit")}}},
			{"with a zero-width character", Input{Changes: []Change{addFile(".g\u200cit/config")}}},
			{"in full-width letters", Input{Changes: []Change{addFile(".ｇｉｔ/config")}}},
			{"its short name", Input{Changes: []Change{addFile("a/GIT~1/config")}}},
			{"with dots and spaces that NTFS drops", Input{Changes: []Change{addFile("a/.git . ./config")}}},
			{"as a stream", Input{Changes: []Change{addFile("a/.git::$INDEX_ALLOCATION/config")}}},
			{"behind a backslash", Input{Changes: []Change{addFile(`a\.git\config`)}}},
			{"a gitfile", Input{Changes: []Change{addFile("a/.git")}}},
			{"a new submodule", Input{Changes: []Change{{Path: "lib", Kind: Added, New: link}}}},
			{"a moved submodule", Input{Changes: []Change{{Path: "lib", Kind: Modified, Old: link, New: Entry{Mode: ModeGitlink, ID: otherID}}}}},
			{"a removed submodule", Input{Changes: []Change{{Path: "lib", Kind: Deleted, Old: link}}}},
		},
		Accept: []Sample{
			{"files of Git's family", Input{Changes: []Change{addFile(".gitignore"), addFile("docs/git.md"), addFile(".github/x"), addFile("git~")}}},
			{"a .git that is removed", Input{Changes: []Change{deleteFile("a/.git/config")}}},
		},
	}
}

// hasDotGit says whether a name of a path is .git in some spelling.
func hasDotGit(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if IsGitDir(name) {
			return true
		}
	}
	return false
}

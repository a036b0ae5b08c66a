// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge decides whether a captured tree may leave the workspace. It sees values only: names, modes, sizes and
// object ids of what changed, and what the capture met that Git cannot hold.
//
// Judge looks at every path, every time: there is no sampling and no time limit, and what a rule cannot check (an unusable pattern, a
// directory that cannot be listed, an entry that contradicts itself, a content that exceeds the limit of work) is a violation. Judge counts
// work instead of time, so that the result depends only on its input.
//
// # Placement rules
//
// Some rules are about where an agent may write: see PlacementRules. A path breaks at most one of them, the first in the
// order of Rules. So nothing that the plan or a role grants opens a path that an earlier rule closes. All other rules hold
// wherever a path stands.
//
// # Patterns
//
// Patterns are written as in .gitignore and matched on canonical paths: '*', '?' and '[a-z]' stay within one name, "**"
// stands for any number of directories, a pattern without a slash matches at any depth, a leading slash anchors it, a
// trailing slash means what is in the directory, and a pattern that matches a directory covers all below it. Negation
// (also of classes) and braces are refused, see ValidatePattern.
//
// Patterns that grant (allowed areas, planned files) are matched exactly. Patterns that guard (forbidden, protected) are
// matched as the most forgiving file system would: without regard to case, Unicode composition and invisible
// characters; and they guard the directories on the way too, so that none can be replaced by a link.
package judge

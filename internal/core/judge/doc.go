// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge decides whether a captured tree may leave the workspace. It sees values only: names, modes, sizes and
// object ids of what changed, and what the capture met that Git cannot hold.
//
// Judge looks at every path, every time: there is no sampling and no time limit. What a rule cannot check is a violation: an unusable
// pattern, an unreadable directory, an entry that contradicts itself, a content that exceeds the limit of work. Judge counts work instead
// of time, so that the result depends only on its input.
//
// # Placement rules
//
// Some rules are about where an agent may write: see PlacementRules. A path breaks at most one of them, the first in the
// order of Rules. So nothing that the plan or a role grants opens a path that an earlier rule closes. All other rules hold
// wherever a path stands.
//
// # Patterns
//
// Patterns have the syntax of .gitignore and match canonical paths. '*', '?' and '[a-z]' stay within one name, and "**" stands for any
// number of directories. A pattern without a slash matches at any depth, and a leading slash anchors it. A trailing slash means the content
// of the directory. A pattern that matches a directory covers all below it. Negation (also of classes) and braces are refused, see
// ValidatePattern.
//
// Patterns that grant (allowed areas, planned files) are matched exactly. Patterns that guard (forbidden, protected) are
// matched as the most forgiving file system would: without regard to case, Unicode composition and invisible characters. They also guard
// the directories on the way, so that no link can replace one.
package judge

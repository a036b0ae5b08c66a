// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// KnowledgeDir is the folder of the repository with the knowledge of a team.
const KnowledgeDir = "docs/knowledge"

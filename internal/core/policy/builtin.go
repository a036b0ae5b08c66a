// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// The built-in rules, which hold unless a policy says otherwise. Each figure has its source.
const (
	// builtinInterval, builtinMinInterval, builtinMaxChanges and builtinPauseTimeout: a checkpoint every 30 s or 50
	// changed paths, never closer than 5 s, and an agent that cannot be stopped within 10 s is captured unsettled. The figures are from the
	// specification of execution modes; 5 s is also its debounce.
	builtinInterval     = 30 * time.Second
	builtinMinInterval  = 5 * time.Second
	builtinMaxChanges   = 50
	builtinPauseTimeout = 10 * time.Second

	// builtinMaxFileSize is half of what the large Git hosts accept in a push (100 MB), so that a file that passes here
	// is not refused there.
	builtinMaxFileSize = 50 << 20
	// builtinMaxWorkspaceSize is that specification's disk quota of one piece of work: 1 GiB.
	builtinMaxWorkspaceSize = 1 << 30
	// builtinMaxWorkspaceFiles is twice the largest repository that the checkpoint budgets are measured with (100,000
	// files), to leave room for what a build makes.
	builtinMaxWorkspaceFiles = 200_000

	// builtinMaxCheckpointFailures in a row open the breaker: the same specification's circuit breaker.
	builtinMaxCheckpointFailures = 3
	// builtinMaxRunning is that specification's number of features at work at once; it allows 10. A policy may set more, so that a large
	// installation needs no second project for it.
	builtinMaxRunning = 5
	// builtinGitSilence: a server counts the objects of a large repository, or runs a slow hook, for minutes. MaxGitSilence is the
	// longest that a policy may set, and what the gateway's tunnels for Git are made for.
	builtinGitSilence = 5 * time.Minute
	// MaxGitSilence of a policy.
	MaxGitSilence = time.Hour
	// builtinKeepCheckpoints of a Feature stay as objects: at 4 KiB each (8 KiB with violations), 10,000 Features cost the API server 400 to 800
	// MiB.
	builtinKeepCheckpoints = 10
	// builtinUnpromotedBytes is twice builtinMaxWorkspaceSize, and less than half of the default volume (5 GiB).
	builtinUnpromotedBytes = 2 << 30
	// LedgerRetention is how long the ledger keeps records by default: 30 days, as in the example of the requirements.
	LedgerRetention = 720 * time.Hour
)

// BuiltinProtected are the paths that every policy protects, even if they do not exist: Git's and CI's control files
// and the files that steer agents and editors.
func BuiltinProtected() []string {
	return []string{
		".claude/**",
		".cursor/**",
		".gitattributes",
		".github/**",
		".gitlab-ci.yml",
		".gitmodules",
		".mcp.json",
		".vscode/**",
		"AGENTS.md",
		"CLAUDE.md",
		"CODEOWNERS",
	}
}

// builtin are the built-in rules. Hosts are not among them: the agent may reach none, and Git that of the repository.
func builtin() Rules {
	var r Rules
	for _, row := range Rows() {
		if row.preset != nil {
			row.preset(&r)
		}
	}
	return r
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// This file is all that this package knows of the values below changes: what a source sets, what is in effect, and the row
// of each. A rule of package judge with a value of its own adds one of each here.

// ChangeRules are the values of Changes that a source sets.
type ChangeRules struct {
	MaxFiles          *int64
	MaxLines          *int64
	MaxFileSize       *int64
	MaxWorkspaceSize  *int64
	MaxWorkspaceFiles *int64
	Symlinks          Permission
	SpecialFiles      Permission
	Hardlinks         Permission
	Executables       Permission
	Binaries          Permission
	Secrets           Permission
	Confusables       Permission
	UnportableNames   Permission
	HiddenCharacters  Permission
	StrayLinks        Permission
}

// Changes are the rules for the content of changes. Sizes are bytes.
type Changes struct {
	// MaxFiles is how many files may differ from the base; 0 means unlimited.
	MaxFiles int64 `json:"maxFiles,omitempty"`
	// MaxLines is how many lines a change may add and remove; 0 means unlimited.
	MaxLines int64 `json:"maxLines,omitempty"`
	// MaxFileSize of a changed file.
	MaxFileSize int64 `json:"maxFileSize"`
	// MaxWorkspaceSize of all files in the workspace.
	MaxWorkspaceSize int64 `json:"maxWorkspaceSize"`
	// MaxWorkspaceFiles in the workspace.
	MaxWorkspaceFiles int64 `json:"maxWorkspaceFiles"`
	// Symlinks that stay inside the workspace; others are always denied.
	Symlinks Permission `json:"symlinks"`
	// SpecialFiles: FIFOs, sockets, devices.
	SpecialFiles Permission `json:"specialFiles"`
	// Hardlinks: files with another name outside of the capture.
	Hardlinks Permission `json:"hardlinks"`
	// Executables that were not executable before.
	Executables Permission `json:"executables"`
	// Binaries: files with NUL bytes.
	Binaries Permission `json:"binaries"`
	// Secrets: keys and tokens in content.
	Secrets Permission `json:"secrets"`
	// Confusables: new names that look like another one, or mix scripts.
	Confusables Permission `json:"confusables"`
	// UnportableNames: new names that other systems cannot hold or misread.
	UnportableNames Permission `json:"unportableNames"`
	// HiddenCharacters: invisible and bidirectional characters in source code and in what steers agents.
	HiddenCharacters Permission `json:"hiddenCharacters"`
	// StrayLinks: symbolic links to a place outside of the plan's allowed areas.
	StrayLinks Permission `json:"strayLinks"`
}

func changeRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		count("changes.maxFiles", "How many files can differ from the base.",
			func(x *r) **int64 { return &x.MaxFiles }, func(x *e) *int64 { return &x.Changes.MaxFiles }, 0, smaller, from[int64](1, maxLarge)),
		count("changes.maxLines", "How many lines the work can add and remove.",
			func(x *r) **int64 { return &x.MaxLines }, func(x *e) *int64 { return &x.Changes.MaxLines }, 0, smaller, from[int64](1, maxLarge)),
		size("changes.maxFileSize", "Largest size of a changed file.",
			func(x *r) **int64 { return &x.MaxFileSize }, func(x *e) *int64 { return &x.Changes.MaxFileSize }, builtinMaxFileSize, smaller, from[int64](1, maxSize)),
		size("changes.maxWorkspaceSize", "Largest size of all files in the workspace together, including ignored files.",
			func(x *r) **int64 { return &x.MaxWorkspaceSize }, func(x *e) *int64 { return &x.Changes.MaxWorkspaceSize }, builtinMaxWorkspaceSize, smaller, from[int64](1, maxSize)),
		count("changes.maxWorkspaceFiles", "How many files the workspace can have, including ignored files.",
			func(x *r) **int64 { return &x.MaxWorkspaceFiles }, func(x *e) *int64 { return &x.Changes.MaxWorkspaceFiles }, builtinMaxWorkspaceFiles, smaller, from[int64](1, maxLarge)),
		permission("changes.symlinks", "Symbolic links that stay inside the workspace. Tidewaiter always denies other links.",
			func(x *r) *Permission { return &x.Symlinks }, func(x *e) *Permission { return &x.Changes.Symlinks }, Warn),
		permission("changes.specialFiles", "FIFOs, sockets and devices.",
			func(x *r) *Permission { return &x.SpecialFiles }, func(x *e) *Permission { return &x.Changes.SpecialFiles }, Deny),
		permission("changes.hardlinks", "Files with another name outside of what checkpoints capture.",
			func(x *r) *Permission { return &x.Hardlinks }, func(x *e) *Permission { return &x.Changes.Hardlinks }, Warn),
		permission("changes.executables", "Files that were not executable before.",
			func(x *r) *Permission { return &x.Executables }, func(x *e) *Permission { return &x.Changes.Executables }, Warn),
		permission("changes.binaries", "Files with NUL bytes.",
			func(x *r) *Permission { return &x.Binaries }, func(x *e) *Permission { return &x.Changes.Binaries }, Warn),
		permission("changes.secrets", "Keys and tokens in content.",
			func(x *r) *Permission { return &x.Secrets }, func(x *e) *Permission { return &x.Changes.Secrets }, Deny),
		permission("changes.confusables", "New names that look like another one, or mix scripts.",
			func(x *r) *Permission { return &x.Confusables }, func(x *e) *Permission { return &x.Changes.Confusables }, Warn),
		permission("changes.unportableNames", "New names that other systems cannot hold or misread.",
			func(x *r) *Permission { return &x.UnportableNames }, func(x *e) *Permission { return &x.Changes.UnportableNames }, Warn),
		permission("changes.hiddenCharacters", "Invisible and bidirectional characters in source code and in files that steer agents.",
			func(x *r) *Permission { return &x.HiddenCharacters }, func(x *e) *Permission { return &x.Changes.HiddenCharacters }, Warn),
		permission("changes.strayLinks", "Symbolic links to a place outside the plan's allowed areas.",
			func(x *r) *Permission { return &x.StrayLinks }, func(x *e) *Permission { return &x.Changes.StrayLinks }, Warn),
	}
}

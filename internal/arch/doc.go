// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch is the architecture as a test: which package may import what, and why. Its test parses the sources of
// the whole module; see rows in table_test.go to add a package.
package arch

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists compares lists that must agree and that cannot be made of one table: of runtimes, of the dialects of models, and of what can be wrong
// with an agent. Its tests name each place where a new one was forgotten.
package lists

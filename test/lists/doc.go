// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists compares lists that must agree and that cannot come from one table: runtimes, dialects of models, and anomalies of an
// agent. Its tests name each place that lacks a new entry.
package lists

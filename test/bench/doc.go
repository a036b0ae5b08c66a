// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures what Tidewaiter promises of its speed, each promise beside its baseline in the same run. It is
// made of tests alone: `make bench` runs them at full size and prints one line for each budget, `make test` at a tiny size
// to see that they work.
package bench

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures Tidewaiter's budgets of speed, each next to its baseline in the same run. It consists only of tests: `make bench`
// runs them at full size and prints one line for each budget, `make test` at a tiny size to see that they work.
package bench

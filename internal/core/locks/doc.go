// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package locks decides who may work on a contract of a repository. A lock is a Lease with one holder. It is renewed while
// it is held; one that nobody renews any more is taken over. Who reads and writes Leases is told what to do here.
package locks

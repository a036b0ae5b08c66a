// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package locks decides which Feature may work on a contract of a repository. A lock is a Lease with one holder. The holder renews it;
// another Feature takes over a lock that nobody renews any more. The package only decides: its callers read and write Leases.
package locks

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import "slices"

// blind are runs of scenarios that were written blind, after those that are held back had been looked into.
func blind() []Run { return each(slices.Concat(blindHealthy(), blindSick())) }

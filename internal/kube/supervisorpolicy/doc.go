// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisorpolicy reads SupervisorPolicies as the core's rules and merges the ones that apply to a Feature. Manager and gateway
// share it, so that they apply the same policy.
package supervisorpolicy

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

// FailureOf a result.
func FailureOf(r Result) Failure { return newClassifier().failure(r) }

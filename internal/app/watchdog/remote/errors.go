// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

// CredentialsError: the Secret that the Feature names, or a key of it, is not there.
type CredentialsError struct{ message string }

// Error says what is missing and where.
func (e *CredentialsError) Error() string { return e.message }

// HostError: the Feature's Secret is not for the repository's host.
type HostError struct{ message string }

// Error names the Secret, the refused host and the allowed hosts.
func (e *HostError) Error() string { return e.message }

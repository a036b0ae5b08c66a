// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package translate carries values between the API's types and those of the core, which knows no Kubernetes. Nothing is
// decided here, and nothing is lost: tests walk every field both ways.
package translate

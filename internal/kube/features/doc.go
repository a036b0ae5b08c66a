// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features carries Features between the API's types and those of the core, which knows no Kubernetes: what is asked of
// one, its orders, and its status. Nothing is decided here, and nothing is lost: tests walk every field both ways. It is the manager's.
package features

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features translates Features between the API's types and the types of core, which knows no Kubernetes: spec, orders and status.
// It makes no decisions, and it keeps every value: tests walk every field both ways. Only the manager uses it.
package features

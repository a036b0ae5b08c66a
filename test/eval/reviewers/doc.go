// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reviewers plays labelled breakpoints to the reviewers and compares what comes of the answers with the labels. It also has a model do small tasks with and
// without documents of the project and reviewers. The answers are scripted, or come from a real model that the environment names.
package reviewers

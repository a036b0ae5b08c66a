// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eval tells how well the supervision of a conversation sees that a run goes wrong, and that it stays silent where a run goes
// well. It is made of tests alone: a labelled corpus of runs is played through the watchdog's proxy as the requests and answers of the agents'
// clients, and what is reported is compared with what a person looking on would say. `make eval` prints the table.
package eval

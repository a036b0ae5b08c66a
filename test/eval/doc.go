// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eval measures how well the supervision of a conversation notices that a run goes wrong, and stays silent if a run goes well. It
// consists only of tests. They play a labelled corpus of runs through the watchdog's proxy, as the requests and answers of the agents'
// clients, and compare the reports with the verdict of an onlooker. `make eval` prints the table.
package eval

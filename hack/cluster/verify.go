// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "context"

func (d driver) verify(context.Context, []string) error { return nil }

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package consult

import (
	"context"
	"time"
)

// SleepBy replaces how the desk waits.
func (d *Desk) SleepBy(sleep func(context.Context, time.Duration) bool) { d.sleep = sleep }

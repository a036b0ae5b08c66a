// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import "golang.org/x/sys/unix"

// nativeArch is how the kernel names the only architecture whose programs may run next to this one.
const nativeArch = unix.AUDIT_ARCH_AARCH64

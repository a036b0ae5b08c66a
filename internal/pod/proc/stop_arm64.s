// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Offsets in siginfo_t of asm-generic/siginfo.h.
#define CODE 8
#define SENDER 16

#define SYS_WRITE 64
#define SYS_RT_SIGRETURN 139

// The kernel calls it with the signal in R0 and its siginfo_t in R1, and restores every register afterwards.
// Of kill(2) the code is SI_USER, which is 0.
TEXT ·handleStop(SB), NOSPLIT|NOFRAME, $0
	MOVW CODE(R1), R3
	CBNZW R3, done
	MOVW SENDER(R1), R3
	CBNZW R3, done
	MOVW ·stopPipe(SB), R0
	MOVD $4, R2 // siginfo_t begins with the signal's number
	MOVD $SYS_WRITE, R8
	SVC
done:
	RET

TEXT ·restoreSignal(SB), NOSPLIT|NOFRAME, $0
	MOVD $SYS_RT_SIGRETURN, R8
	SVC
	UNDEF

TEXT ·handlerAddresses(SB), NOSPLIT, $0-16
	MOVD $·handleStop(SB), R3
	MOVD R3, handler+0(FP)
	MOVD $·restoreSignal(SB), R3
	MOVD R3, restorer+8(FP)
	RET

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Offsets in siginfo_t of asm-generic/siginfo.h.
#define CODE 8
#define SENDER 16

#define SYS_WRITE 1
#define SYS_RT_SIGRETURN 15

// The kernel calls it with the signal in DI and its siginfo_t in SI, and restores every register afterwards.
// Of kill(2) the code is SI_USER, which is 0.
TEXT ·handleStop(SB), NOSPLIT|NOFRAME, $0
	CMPL CODE(SI), $0
	JNE  done
	CMPL SENDER(SI), $0
	JNE  done
	MOVL ·stopPipe(SB), DI
	MOVL $4, DX // siginfo_t begins with the signal's number
	MOVL $SYS_WRITE, AX
	SYSCALL
done:
	RET

TEXT ·restoreSignal(SB), NOSPLIT|NOFRAME, $0
	MOVL $SYS_RT_SIGRETURN, AX
	SYSCALL
	INT  $3

TEXT ·handlerAddresses(SB), NOSPLIT, $0-16
	LEAQ ·handleStop(SB), AX
	MOVQ AX, handler+0(FP)
	LEAQ ·restoreSignal(SB), AX
	MOVQ AX, restorer+8(FP)
	RET

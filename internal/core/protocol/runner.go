// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Messages between watchdog and runner: one JSON object a line over SocketPath. The runner connects before it starts
// anything and again whenever the connection breaks, with every agent process stopped meanwhile; the watchdog accepts
// one runner and then closes its listener, so that an agent can stand in for neither side.

// MaxRunnerLine bounds one line in bytes (arguments and environment are at most a few MiB).
const MaxRunnerLine = 8 << 20

// RunnerOrphanedCode is the runner's exit code when no watchdog came back: the attempt is lost, not failed (EX_TEMPFAIL).
const RunnerOrphanedCode = 75

// RunnerBlindCode is the runner's exit code after repeated failures to stop the agent's processes: only the runner's own exit stops them (EX_OSERR).
const RunnerBlindCode = 71

// RunnerCommand is what the watchdog asks of the runner. Exactly one pointer is set.
type RunnerCommand struct {
	// ID is answered by events with the same ID.
	ID     int64         `json:"id"`
	Start  *RunnerStart  `json:"start,omitempty"`
	Freeze *RunnerFreeze `json:"freeze,omitempty"`
	Thaw   *struct{}     `json:"thaw,omitempty"`
	Kill   *RunnerKill   `json:"kill,omitempty"`
	Input  *RunnerInput  `json:"input,omitempty"`
	// Pulse asks for signs of activity.
	Pulse *struct{}      `json:"pulse,omitempty"`
	Exit  *RunnerExitNow `json:"exit,omitempty"`
	// Session follows the very first Hello, without an ID; the runner answers Session.
	Session *RunnerSession `json:"session,omitempty"`
}

// RunnerSession authenticates watchdog and runner to each other once there is an agent. A runner that has no nonce, or another one, is a
// process of the agent. The runner keeps it in its memory, which no process of its uid can read.
type RunnerSession struct {
	Nonce string `json:"nonce"`
}

// RunnerStart starts the agent; there is at most one at a time.
type RunnerStart struct {
	Argv []string `json:"argv"`
	// Env as NAME=value, added to the container's own environment.
	Env []string `json:"env,omitempty"`
	Dir string   `json:"dir"`
	// Input is all of its standard input, which ends after it. Nil leaves the input open for lines.
	Input *string `json:"input,omitempty"`
	// Files that the runner writes below Home before it starts the process: the text of each by its path. The runner replaces existing files.
	Files map[string]string `json:"files,omitempty"`
	// Home is the absolute path of the folder for Files; empty if there are none.
	Home string `json:"home,omitempty"`
	// Gate: this is a gate, not the agent. Its environment is PATH of the container, LANG, CI, a HOME and a TMPDIR of its own, and Env. The
	// runner reports its output with its exit.
	Gate bool `json:"gate,omitempty"`
}

// What the runner keeps of a gate's output, in bytes: its beginning, and the end of what follows. Both have room for LongestSecret, because a secret at a
// cut cannot be recognized: what it may be in is left out before users read the output.
const (
	MaxGateHead = 64<<10 + LongestSecret
	MaxGateTail = 192<<10 + LongestSecret
	// LongestSecret: the private key of the longest RSA modulus in use, with its lines, is 13 KB.
	LongestSecret = 16 << 10
)

// RunnerFreeze stops every process of the container but the runner.
type RunnerFreeze struct {
	// Timeout after which the answer is Frozen with Settled false.
	Timeout time.Duration `json:"timeout"`
	// Limit after which the runner thaws by itself, if the watchdog never asks.
	Limit time.Duration `json:"limit"`
	// Ask comes first if the agent said that it takes part in pauses; nil stops it without asking.
	Ask *RunnerAsk `json:"ask,omitempty"`
}

// RunnerAsk asks the agent to reach a good point before the freeze. The runner stops it whatever it answers.
type RunnerAsk struct {
	// Line is the text on its standard input, and Resume the text that it gets when it continues.
	Line   string `json:"line"`
	Resume string `json:"resume"`
	// ID that its answer may name; one with another ID answers an earlier pause.
	ID string `json:"id"`
	// Timeout after which the runner stops it without an answer.
	Timeout time.Duration `json:"timeout"`
}

// RunnerKill ends every process of the container but the runner: SIGTERM, then SIGKILL after Grace.
type RunnerKill struct {
	Grace time.Duration `json:"grace"`
}

// RunnerInput writes one line to the agent's standard input; the runner drops the line and does not wait if the agent does not read.
type RunnerInput struct {
	Line string `json:"line"`
}

// RunnerExitNow ends the runner, and with it the container.
type RunnerExitNow struct {
	Code int `json:"code"`
}

// RunnerEvent is what the runner tells the watchdog.
type RunnerEvent struct {
	// ID of the command that this answers; 0 for Hello, Session, Exited, Signal and Understood.
	ID      int64           `json:"id,omitempty"`
	Hello   *RunnerHello    `json:"hello,omitempty"`
	Started *RunnerStarted  `json:"started,omitempty"`
	Frozen  *RunnerFrozen   `json:"frozen,omitempty"`
	Thawed  *RunnerThawed   `json:"thawed,omitempty"`
	Killed  *RunnerKilled   `json:"killed,omitempty"`
	Exited  *RunnerExited   `json:"exited,omitempty"`
	Signal  *RunnerSignal   `json:"signal,omitempty"`
	Input   *RunnerInputAck `json:"input,omitempty"`
	Pulse   *RunnerPulse    `json:"pulse,omitempty"`
	Session *struct{}       `json:"session,omitempty"`
	// Understood is the agent's acknowledgment of rules that it broke.
	Understood *RunnerUnderstood `json:"understood,omitempty"`
	// Error says why the runner could not carry out a command. BadCommand: it is the fault of the program that a start names.
	Error      string `json:"error,omitempty"`
	BadCommand bool   `json:"badCommand,omitempty"`
}

// RunnerHello opens every connection and reports the runner's state, so that a restarted watchdog can continue.
type RunnerHello struct {
	Version int `json:"version"`
	// Nonce of the session, once there is one.
	Nonce string `json:"nonce,omitempty"`
	// Running is the ID of the start command whose agent is still running; 0 for none.
	Running int64 `json:"running,omitempty"`
	// LastExit is how the last agent ended, if one did.
	LastExit *RunnerExited `json:"lastExit,omitempty"`
	// Frozen is true when the processes are stopped, as they are after every broken connection: the watchdog thaws them
	// once it watches again. Without a watchdog for five minutes the runner ends them and exits with RunnerOrphanedCode.
	Frozen bool `json:"frozen,omitempty"`
}

// RunnerStarted answers Start.
type RunnerStarted struct {
	PID int `json:"pid"`
}

// RunnerFrozen answers Freeze.
type RunnerFrozen struct {
	// Processes that were stopped.
	Processes int `json:"processes"`
	// Pause is the result of asking the agent; nil if the runner did not ask.
	Pause *Pause `json:"pause,omitempty"`
	// Settled is true when no process can still run user code or is inside a system call that may still write.
	Settled bool `json:"settled"`
	// Latency is the time from the request until all processes were stopped, without the time that the agent took to answer.
	Latency time.Duration `json:"latency"`
	// Reason says what kept running when Settled is false.
	Reason string `json:"reason,omitempty"`
}

// Bounds of Pause, in entries and in bytes of one.
const (
	MaxPendingOperations = 4
	MaxPendingOperation  = 128
)

// Pause is the answer of an agent that takes part in pauses.
type Pause struct {
	// Acknowledged is false when no answer came in time.
	Acknowledged bool `json:"acknowledged"`
	// Latency of its answer, or of the wait for it.
	Latency time.Duration `json:"latency"`
	// Pending are operations that it says are not finished: MaxPendingOperations at most, each cut to MaxPendingOperation.
	Pending []string `json:"pending,omitempty"`
}

// RunnerThawed answers Thaw, or says (ID 0) that the limit of a freeze has passed.
type RunnerThawed struct {
	// ByLimit is true when the watchdog did not ask.
	ByLimit bool `json:"byLimit,omitempty"`
	// Newcomers is how many times something ran during the freeze that had not been there before (kubectl exec) or had
	// been woken by it. The runner stopped them at once, but what they did first is outside the freeze.
	Newcomers int `json:"newcomers,omitempty"`
}

// RunnerKilled answers Kill: no process of the agent is left.
type RunnerKilled struct{}

// RunnerExited says that the agent's process ended.
type RunnerExited struct {
	// Start is the ID of its start command.
	Start int64 `json:"start"`
	// Code is the exit code, or 128 plus the signal's number.
	Code int `json:"code"`
	// Signal that ended it, if one did.
	Signal string `json:"signal,omitempty"`
	// Gate: this was a gate, not the agent.
	Gate bool `json:"gate,omitempty"`
	// Head is the beginning of a gate's output, at most MaxGateHead, and Tail the end of what follows, at most MaxGateTail; nil for an agent.
	// OutputSize is how many bytes it has written.
	Head       []byte `json:"head,omitempty"`
	Tail       []byte `json:"tail,omitempty"`
	OutputSize int64  `json:"outputSize,omitempty"`
}

// RunnerSignal says that the container received SIGTERM.
type RunnerSignal struct {
	Name string `json:"name"`
}

// RunnerUnderstood says that the agent acknowledges rules that it broke. A runner passes on at most MaxAcknowledgments for each line that
// the watchdog sends to the agent.
type RunnerUnderstood struct {
	// Checkpoint and Rule that it names, each cut to MaxAcknowledged bytes; empty for all rules in the request.
	Checkpoint string `json:"checkpoint,omitempty"`
	Rule       string `json:"rule,omitempty"`
	// Instead is what it does instead, cut to MaxAcknowledged bytes.
	Instead string `json:"instead,omitempty"`
}

// MaxAcknowledged is how many bytes of one text a runner passes on.
const MaxAcknowledged = 1 << 10

// RunnerPulse answers Pulse.
type RunnerPulse struct {
	// CPU is the CPU time of all of the agent's processes, including ended ones.
	CPU time.Duration `json:"cpu"`
	// Processes is the number of processes now.
	Processes int `json:"processes"`
	// Written is the number of bytes that these processes have written. It falls when one of them ends.
	Written int64 `json:"written,omitempty"`
	// Age of the agent's own process, 0 if there is none, and the youngest other processes.
	Age      time.Duration   `json:"age,omitempty"`
	Commands []RunnerProcess `json:"commands,omitempty"`
}

// RunnerProcess is a process in the container other than the agent's own.
type RunnerProcess struct {
	// Name that it has given itself, at most 15 bytes of any kind. The runner does not report its arguments, which may hold a secret.
	Name string        `json:"name"`
	Age  time.Duration `json:"age"`
}

// RunnerInputAck answers Input.
type RunnerInputAck struct {
	Delivered bool `json:"delivered"`
}

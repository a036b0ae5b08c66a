// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Failure says how a tool call failed.
type Failure string

// Kinds of failures.
const (
	// FailureNone: it has not failed, as far as anything says so.
	FailureNone Failure = ""
	// FailureTool: the tool says that it failed.
	FailureTool Failure = "ToolError"
	// FailureExit: a command ended with a code other than 0.
	FailureExit Failure = "ExitCode"
	// FailureEdit: a change did not apply, because the text to replace is not there, or there more than once.
	FailureEdit Failure = "NotApplied"
	// FailureDenied: a user, a rule or the system does not allow it.
	FailureDenied Failure = "Denied"
	// FailureTime: it took too long.
	FailureTime Failure = "TimedOut"
	// FailureFormat: the call did not have the tool's format, so the tool did nothing.
	FailureFormat Failure = "Format"
	// FailureMissing: a file, a command or a tool is not there.
	FailureMissing Failure = "Missing"
)

// marks of failures in what tools answer. They are what Claude Code 2.1, Codex 0.169, opencode 1.18, Qwen Code 0.24, Gemini CLI 0.61 and the
// watchdog's own tools say where something fails; the first that matches counts. Each is looked for in the first lines of a result that
// failed: that a file which was read has such words says nothing.
var marks = []struct {
	kind Failure
	in   string
}{
	{FailureFormat, `(?i)inputvalidationerror|invalid (tool )?(arguments|input|parameters)|failed to parse function arguments|schema validation|arguments are not a json object|missing required parameter|must have required property|model tried to call unavailable tool`},
	{FailureDenied, `(?i)permission (to use \S+ )?(has been )?denied|user (doesn't want|rejected)|operation not permitted|read-only file system|rejected (permission|by user)|not allowed|"status":"refused"|prevents you from using|denied by (policy|permission rules)`},
	{FailureEdit, `(?i)string to replace not found|oldstring not found|old_string|found \d+ matches of the string|multiple matches|apply_patch verification failed|failed to find (expected lines|context)|patch (does not apply|failed)|could not find (the )?(old|exact)|file (\S+ )?has (not been read|been modified since)|you must read (the )?file`},
	{FailureTime, `(?i)timed? ?out|exceeded the timeout`},
	{FailureMissing, `(?i)no such (file|tool|directory)|file (does not exist|not found)|command not found|cannot find|not found in (path|registry)|unknown tool`},
}

// exits are the forms in which clients give the exit code of a command.
const exits = `(?im)^\s*(?:exit code:?|process exited with code|exited with code|<exit_code>)\s*(-?\d{1,4})|"exit_code":\s*(-?\d{1,4})`

// unmarked are the first words of a result that failed, of clients that do not mark it.
const unmarked = `(?i)^\s*(error|<tool_use_error>|failed to |apply_patch verification failed|patch rejected|unsupported call|(exec_command|write_stdin) failed|` +
	`the arguments provided to the tool are invalid|could not find oldstring|found multiple matches for oldstring|file not found: |` +
	`command timed out after \d|this "\w+" invocation was denied|tool "[^"]*" not found|file \S+ has not been read in|params must have |` +
	`you must read (the )?file |the user rejected permission|request failed with status|\{"status":"refused"|` +
	// Of programs, for clients that do not say how a command ended.
	`(/bin/)?(ba|da|z)?sh: |fatal: |npm (err!|error)|make(\[\d+\])?: \*\*\*|traceback \(most recent|` +
	`(cat|cd|cp|diff|find|grep|head|ls|mkdir|mv|rm|sed|stat|tail|touch|wc): [^\n]*(no such file or directory|permission denied|(is|not) a directory)|` +
	`E(ACCES|CONNREFUSED|CONNRESET|EXIST|IO|MFILE|NOENT|NOSPC|NOTFOUND|PERM|ROFS|TIMEDOUT): |` +
	// Of the SDKs of MCP, where the server of a tool refuses a call, is gone, or does not start.
	`mcp error -\d+|not connected\s*\z|spawn \S+ E[A-Z]+\b)`

// mayFail says whether a text begins with a character that words of unmarked begin with. Most results do not, such as lines with their numbers.
func mayFail(text string) bool {
	text = strings.TrimLeft(text, "\t\n\f\r ")
	return text != "" && (text[0] >= utf8.RuneSelf || strings.IndexByte("e<fapuwctyr{/bdzsnmghl", text[0]|0x20) >= 0) // a letter that is not ASCII may fold to one that is
}

// verdicts are last lines by which builds and tests say that they failed, for clients that do not say how a command ended. Behind some, a command that
// was put behind may have printed the code. "Error: " is how Terraform, Helm and Node.js begin the last thing that they say behind others; its other
// lines are blank, indented or in a box.
const verdicts = `(?m)(?:^(?:make(?:\[\d+\])?: \*\*\* .+ Error \d+|FAIL(?:\t.*)?|=+ .*\b\d+ failed.*=+|Tests: +\d+ failed.*|BUILD FAILED.*|error: (?:could not compile|aborting due to) .*|` +
	`\[ERROR\] +(?:Failed to execute goal|\[Help \d+\]|mvn ).*)(?:\s+(?i:exit[a-z ]*[:=]? ?)?[1-9]\d{0,4})?\s*|\S\s*\n(?:│ )?Error: .*(?:\r?\n(?:[ \t│╵].*)?)*)\z`

// judged says whether a text has one of the words that all verdicts have. Most results have none.
func judged(text string) bool {
	for _, word := range []string{" Error ", "FAIL", " failed", "rror: ", "[ERROR]"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// stopped is what opencode puts after what a command has printed until its time was over.
const stopped = `<(?:bash|shell)_metadata>\s*[^<]*terminated command after exceeding timeout`

// looked is how much of a result is searched at its beginning, in bytes: clients say first that something failed.
const looked = 400

// classifier tells failures of tools. It is made when a conversation is heard first: a watchdog with a silent agent needs no memory for it.
type classifier struct {
	marks                              []*regexp.Regexp
	exits, unmarked, verdicts, stopped *regexp.Regexp
}

func newClassifier() *classifier {
	c := &classifier{exits: regexp.MustCompile(exits), unmarked: regexp.MustCompile(unmarked), verdicts: regexp.MustCompile(verdicts), stopped: regexp.MustCompile(stopped)}
	for _, m := range marks {
		c.marks = append(c.marks, regexp.MustCompile(m.in))
	}
	return c
}

// failure of a result. Failed says that the client calls it an error; most clients do not for a command's exit code, which is in the text.
func (c *classifier) failure(r Result) Failure {
	text := r.Text.Text
	head := text[:min(len(text), looked)]
	code, coded := c.exitCode(text)
	failed := r.Failed || coded && code != 0
	switch {
	case coded && code == 0 && !r.Failed:
		return FailureNone
	case coded && code == 124: // of timeout(1)
		return FailureTime
	case coded && code == 127: // of a shell
		return FailureMissing
	}
	if tail := text[max(0, len(text)-looked):]; !coded && strings.Contains(tail, "_metadata>") && c.stopped.MatchString(tail) {
		return FailureTime
	} else if !failed && judged(tail) && c.verdicts.MatchString(tail) {
		return FailureExit
	}
	if !failed {
		// Clients that mark nothing begin with such words.
		failed = mayFail(head) && c.unmarked.MatchString(head)
	}
	if !failed {
		return FailureNone
	}
	for i, m := range marks {
		if c.marks[i].MatchString(head) && (!coded || m.kind != FailureEdit && m.kind != FailureFormat) {
			return m.kind
		}
	}
	if coded {
		return FailureExit
	}
	return FailureTool
}

// exiting says whether a text has the word that every form of exits has, and few results.
func exiting(text string) bool {
	const word = "exit"
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i+1]|0x20 == 'x' && strings.EqualFold(text[i:i+len(word)], word) { // few words have an x
			return true
		}
	}
	return false
}

func (c *classifier) exitCode(text string) (code int, ok bool) {
	for _, part := range []string{text[:min(len(text), looked)], text[max(0, len(text)-looked):]} {
		if !exiting(part) {
			continue
		}
		if m := c.exits.FindStringSubmatch(part); m != nil {
			code, err := strconv.Atoi(m[1] + m[2])
			return code, err == nil
		}
	}
	return 0, false
}

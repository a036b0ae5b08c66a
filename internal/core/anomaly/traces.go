// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// sum tells texts apart: a part of a digest, since much is remembered. An agent that makes two of them equal harms only itself.
type sum uint64

func digestSum(d conversation.Digest) sum { return sum(binary.BigEndian.Uint64(d[:])) }

func textSum(text string) sum { return digestSum(conversation.Sum([]byte(text))) }

// mix makes one sum of some. That of none is 0.
func mix(sums ...sum) sum {
	if len(sums) == 0 {
		return 0
	}
	var b []byte
	for _, s := range sums {
		b = binary.BigEndian.AppendUint64(b, uint64(s))
	}
	return digestSum(conversation.Sum(b))
}

// How long a call has taken that was there to wait: without a mention of waiting, and with one.
const (
	pause      = time.Minute
	shortPause = 5 * time.Second
	// longestSleep that a call can ask for, since its arguments are the agent's.
	longestSleep = 24 * time.Hour
)

// bare finds results that say no more than how a command ended; none is longer than longestBare bytes.
var bare = regexp.MustCompile(`(?i)^[\s(<]*(?:(?:process |command )?exit(?:ed)?(?: with)?(?: code| status)?:?\s*-?\d{0,3}|(?:bash completed with )?no output)?[\s)>.]*$`)

const longestBare = 64

// Name of a tool, as findings show it. The agent chooses names, so Name removes characters that could end a sentence or begin one.
func Name(tool string) string {
	const most = 48
	out := []byte(tool[:min(len(tool), most)])
	for i, c := range out {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "a tool"
	}
	return string(out)
}

// arguments of a call.
type arguments struct {
	call conversation.Call
	tool string // its name in small letters
	// fields, where they were read; and the command, where the tool is a shell.
	fields  map[string]any
	command string
}

// forPeople are fields in which models explain a call, in other words each time, or bound it.
var forPeople = []string{"description", "explanation", "justification", "title", "reason", "timeout", "timeout_ms"}

func argumentsOf(c conversation.Call) arguments {
	a := arguments{call: c, tool: strings.ToLower(c.Name[:min(len(c.Name), 128)])}
	if c.Arguments.Size > conversation.MaxQuote || json.Unmarshal([]byte(c.Arguments.Text), &a.fields) != nil {
		return a
	}
	for _, key := range []string{"command", "cmd", "script"} {
		switch v := a.fields[key].(type) {
		case string:
			a.command = v
		case []any: // words, of which the last is a script where a shell is called
			if n := len(v); n > 0 {
				a.command, _ = v[n-1].(string)
			}
		}
	}
	return a
}

// sum of a call, the same for calls that do the same.
func (a arguments) sum() sum {
	if a.fields == nil {
		return mix(textSum(a.call.Name), digestSum(a.call.Arguments.Digest))
	}
	for _, f := range forPeople {
		delete(a.fields, f)
	}
	canonical, err := json.Marshal(a.fields)
	if err != nil {
		return mix(textSum(a.call.Name), digestSum(a.call.Arguments.Digest))
	}
	return mix(textSum(a.call.Name), textSum(string(canonical)))
}

// writes says whether a call is there to change files, by what tools of clients are called.
func (a arguments) writes() bool {
	return a.call.Edit.Edits() || !has(a.tool, "todo", "plan", "stdin") && has(a.tool, "write", "edit", "patch", "create", "replace", "insert") ||
		has(a.command, "apply_patch", "*** Begin Patch")
}

// path of the file that a call is about, or 0.
func (a arguments) path() sum {
	if path := a.named(); path != "" {
		return textSum(path)
	}
	return 0
}

// named is the path that a call has among its arguments, or "".
func (a arguments) named() string {
	if a.call.Edit.Path != "" {
		return a.call.Edit.Path
	}
	for _, key := range []string{"file_path", "filePath", "path", "absolute_path"} {
		if path, is := a.fields[key].(string); is && path != "" {
			return path
		}
	}
	return ""
}

// edit of a file that a call makes, or the whole content that it writes.
func (a arguments) edit(call sum) (edit, bool) {
	e := a.call.Edit
	if e.Edits() {
		return edit{Path: textSum(e.Path), From: digestSum(e.Removed), To: digestSum(e.Added), Call: call}, true
	}
	content, is := a.fields["content"].(string)
	return edit{Path: a.path(), To: textSum(content), Call: call}, is && a.path() != 0
}

// whole says whether a call writes a whole file, by its content or as a patch that adds it.
func (a arguments) whole() bool {
	if a.call.Edit.Edits() {
		return strings.Contains(a.call.Arguments.Text, "*** Add File: ")
	}
	_, content := a.fields["content"].(string)
	return (content || a.call.Edit.Path != "") && a.path() != 0 && !has(a.tool, "insert", "append")
}

// written is how large a call is that has written a whole file, in bytes, and its lines; 0 for one that has not.
func (a arguments) written(done bool) (size int, lines []uint32) {
	if !done || !a.whole() {
		return 0, nil
	}
	return a.call.Arguments.Size, a.lines()
}

// lines of what a call writes, by their sums: the lowest ones, sorted. Of a large call, its two ends are looked at.
func (a arguments) lines() []uint32 {
	var l lowest
	for line := range strings.Lines(strings.ReplaceAll(a.call.Arguments.Text, `\n`, "\n")) {
		const short = 8 // bytes: brackets and the like
		if line = strings.TrimSpace(line); len(line) >= short {
			l.add(named(line))
		}
	}
	return l.list
}

// readers are programs that change no file.
var readers = []string{
	"cat", "ls", "rg", "grep", "egrep", "fgrep", "ag", "head", "tail", "find", "wc", "pwd", "cd", "echo", "printf", "which", "stat", "file", "tree", "less", "du", "df",
	"sleep", "true", "test", "date", "sort", "uniq", "cut", "jq", "diff", "ps", "env",
}

// reads says whether a call only looks at something, as far as its tool's or its programs' names say.
func (a arguments) reads() bool {
	if a.command == "" {
		return a.fields["command"] == nil && !a.writes() && has(a.tool, "read", "grep", "glob", "list", "search", "view", "fetch")
	}
	if strings.Contains(a.command, ">") && strings.Contains(strings.NewReplacer("2>&1", "", "2>/dev/null", "", ">/dev/null", "", "> /dev/null", "").Replace(a.command), ">") {
		return false
	}
	for part := range strings.FieldsFuncSeq(a.command, func(r rune) bool { return r == ';' || r == '&' || r == '|' || r == '\n' }) {
		list := strings.Fields(part)
		switch {
		case len(list) == 0, oneOf(list[0], readers...), list[0] == "sed" && len(list) > 1 && list[1] == "-n", part == "1":
		case list[0] == "git" && len(list) > 1 && oneOf(list[1], "status", "log", "diff", "show", "blame", "grep", "ls-files", "rev-parse"):
		default:
			return false
		}
	}
	return true
}

// ended says whether a result of a call that polls says that a background process has ended.
func ended(q conversation.Quote) bool {
	head := strings.ToLower(q.Text[:min(len(q.Text), 400)])
	return has(head, "completed", "exited", "finished", "<status>failed", "killed")
}

// idle are commands that bring nothing.
var idle = regexp.MustCompile(`^\s*(echo|printf|true|:|pwd|date|sleep)(\s[^|&;<>$()` + "`" + `]*)?$`)

// program that a shell is to run first: the tool, as far as what fails is concerned. "" where the call is not one of a shell.
func (a arguments) program() string {
	for word := range strings.FieldsSeq(a.command[:min(len(a.command), 256)]) {
		if strings.Contains(word, "=") || word == "sudo" || word == "env" { // what is set for it
			continue
		}
		return Name(word)
	}
	return ""
}

// useless says whether a call can bring nothing about the work.
func (a arguments) useless() bool {
	return has(a.tool, "todo", "think", "update_plan") || a.command != "" && idle.MatchString(a.command)
}

func has(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// sleeping finds how long a call says that it waits; awaiting finds calls that wait for something, and limits how long such a call may take.
var (
	sleeping = regexp.MustCompile(`(?i)\b(?:start-)?sleep\b(?: +-[a-z]+)?["',\s]{1,4}(\d{1,6})(?:\.\d+)?([smhd]?)|"(?:delay|wait|sleep|duration)?_?seconds" ?: ?(\d{1,6})`)
	awaiting = regexp.MustCompile(`\b(?:kubectl\s+(?:wait|rollout\s+status)|gh\s+run\s+watch|inotifywait|docker\s+wait|tail\s+-[fF])\b|--wait\b`)
	limits   = regexp.MustCompile(`(?i)(?:--?|["'\s_])(?:timeout|wait|max[-_]?time|deadline|duration)(_?ms|_?millis|_?seconds|_?minutes)?["']?\s*[=:\s]\s*["']?(\d{1,9})(?:\.\d+)?(ms|s|m|h|d)?`)
)

// sleeps is how long a call says that it waits.
func sleeps(arguments string) time.Duration {
	if !has(arguments, "leep", "econds", "wait", "rollout", "watch", "tail") { // most calls
		return 0
	}
	if m := sleeping.FindStringSubmatch(arguments); m != nil {
		return lasts(m[1]+m[3], m[2])
	}
	if awaiting.MatchString(arguments) {
		return max(pause, limit(arguments))
	}
	return 0
}

// awaits says whether a call waits for something until it comes or its time is over, rather than for a time, after which it looks.
func awaits(arguments string) bool {
	return awaiting.MatchString(arguments) && !sleeping.MatchString(arguments)
}

// takes is how long a call may take by what it says: it sleeps, or gives up after a time.
func takes(arguments string) time.Duration { return max(sleeps(arguments), limit(arguments)) }

// limit after which a call says that it gives up.
func limit(arguments string) (longest time.Duration) {
	if !has(arguments, "imeout", "IMEOUT", "wait", "time", "eadline", "uration") { // most calls
		return 0
	}
	for _, m := range limits.FindAllStringSubmatch(arguments, 8) {
		unit := m[3]
		if unit == "" {
			unit = map[string]string{"ms": "ms", "millis": "ms", "minutes": "m"}[strings.ToLower(strings.TrimPrefix(m[1], "_"))]
		}
		longest = max(longest, lasts(m[2], unit))
	}
	return longest
}

// lasts the given units of time, or seconds. What is more than a second and has no unit may be in milliseconds: ten minutes are the most
// that clients of agents take then.
func lasts(number, unit string) time.Duration {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	of := map[string]time.Duration{"": time.Second, "s": time.Second, "ms": time.Millisecond, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[strings.ToLower(unit)]
	if unit == "" && n >= 60_000 && n%1000 == 0 {
		of = time.Millisecond
	}
	return time.Duration(min(int64(n), int64(longestSleep/of))) * of
}

// polls says whether a call asks for the progress of a background process or agent.
func polls(x conversation.Step) bool {
	tool := strings.ToLower(x.Call.Name[:min(len(x.Call.Name), 128)])
	head := x.Result.Text[:min(len(x.Result.Text), 400)]
	return has(tool, "bashoutput", "taskoutput", "agentoutput", "task_output", "read_output", "background_output", "background_process", "get_output", "stdin", "wait", "sleep", "poll") ||
		has(head, "<status>running</status>", "Process running with session ID")
}

// said is the sum of what a model said, or 0. Headers of hunks and the letters' case are left out, and so are numbers.
func said(quotes []conversation.Quote) sum {
	var sums []sum
	for _, q := range quotes {
		var words strings.Builder
		for line := range strings.Lines(strings.ToLower(q.Text)) {
			if !strings.HasPrefix(line, "@@") {
				words.WriteString(line)
			}
		}
		number := false
		text := strings.Map(func(r rune) rune {
			was := number
			if number = r >= '0' && r <= '9'; !number {
				return r
			}
			if was {
				return -1
			}
			return '#'
		}, strings.Join(strings.Fields(words.String()), " "))
		if text != "" {
			sums = append(sums, textSum(text))
		}
	}
	return mix(sums...)
}

// wordOf is the word that a text begins with, and how many digits it has.
func wordOf(text string) (word string, digits int) {
	end := 0
	for ; end < len(text) && wordy(text[end]); end++ {
		if digit(text[end]) {
			digits++
		}
	}
	return text[:end], digits
}

func wordy(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '.' || c == ':' || c == '-' || c == '+' || c == '_' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number says whether the word is a number.
func number(word string) bool {
	for i := range len(word) {
		if !digit(word[i]) && (word[i] != '.' || i == 0) {
			return false
		}
	}
	return word != ""
}

// trimmed is the word without the marks at its end.
func trimmed(word string) string {
	for len(word) > 0 && (word[len(word)-1] == '.' || word[len(word)-1] == ':' || word[len(word)-1] == '-') {
		word = word[:len(word)-1]
	}
	return word
}

// unit says whether a text continues with a unit of time.
func unit(rest string) bool {
	rest, spaced := strings.CutPrefix(rest, " ")
	end := 0
	for end < len(rest) && end < 8 && wordy(rest[end]) {
		end++
	}
	switch strings.TrimRight(rest[:end], ".:") {
	case "s", "ms", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes":
		return spaced
	}
	return false
}

// fleeting says whether the word, which has a digit, is a time, a duration or an id.
func fleeting(word string) bool {
	word = trimmed(word)
	if len(word) < 2 {
		return false
	}
	var digits, colons, dashes, hex, others int
	for i := range len(word) {
		switch c := word[i]; {
		case digit(c):
			digits++
		case c == ':':
			colons++
		case c == '-':
			dashes++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			hex++
		case c == '.' || c == '+' || c == 'T' || c == 'Z':
		default:
			others++
		}
	}
	switch {
	case others+hex == 0 && digits >= 4 && (colons > 0 || dashes > 1), // 12:30:01, 2026-11-23T12:30:01.5Z
		digits >= 10 && len(word) == digits,                                    // seconds since 1970
		others == 0 && colons == 0 && digits+hex >= 8 && digits > 0 && hex > 0, // a hash, a UUID
		strings.HasPrefix(word, "0x") && digits+hex >= 5:
		return true
	}
	if last := word[len(word)-1]; !digit(word[0]) || last != 's' && last != 'm' && last != 'h' {
		return false
	}
	_, err := time.ParseDuration(word)
	return err == nil
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// outcome is what is remembered of a result: what differs from run to run aside.
type outcome struct {
	// sum of all lines that are not blank, whatever their order and however often each is there.
	sum sum
	// failing is what a failure names, sorted: at most maxFailing of all that it names, those with the lowest sums. All counts the lines that name something.
	failing []uint32
	all     int
	// pending says that the result is not there yet, and passing that the same may succeed after a while.
	pending, passing bool
}

const (
	// maxFailing names of one failure are remembered, which is enough to tell failures apart.
	maxFailing = 8
	// maxLine is how much of a line is looked at for the name of what fails, in bytes.
	maxLine = 512
)

// outcomeOf a result: other content makes it a different one even if the text is the same.
func outcomeOf(q conversation.Quote, failure conversation.Failure, waits bool) outcome {
	o := textOutcome(q, failure, waits)
	if q.Other != (conversation.Digest{}) {
		o.sum = mix(o.sum, digestSum(q.Other))
	}
	return o
}

// textOutcome is what the text says. It is linear in it.
func textOutcome(q conversation.Quote, failure conversation.Failure, waits bool) outcome {
	text := q.All()
	if len(text) < q.Size { // all that is left of it is its digest
		return outcome{sum: digestSum(q.Digest)}
	}
	o, lines := outcome{}, make([]uint64, 0, 64)
	var steadied steadier
	names := naming{words: slices.DeleteFunc(slices.Clone(errs), func(w string) bool { return failure == conversation.FailureNone || !strings.Contains(text, w) })}
	moves := has(text, "B/s", "it/s", "ETA ", "===>", "rogress")
	for line := range strings.Lines(text) {
		line = shown(line)
		if line == "" || wraps(line) || moves && progress(line) {
			continue
		}
		steadied.line(line)
		if steadied.size > 0 {
			lines = append(lines, steadied.hash)
		}
		if failure != conversation.FailureNone {
			names.see(line, uint32(steadied.hash>>32))
		}
	}
	slices.Sort(lines)
	h := uint64(fnvOffset)
	for _, l := range slices.Compact(lines) {
		for range 8 {
			h, l = (h^(l&0xff))*fnvPrime, l>>8
		}
	}
	o.sum = sum(h)
	o.failing, o.all = names.best()
	if failure == conversation.FailureNone && !waits && len(text) > searched { // who asks how far something is gets little
		return o
	}
	head, tail := strings.ToLower(text[:min(len(text), searched)]), ""
	if len(text) > searched {
		tail = strings.ToLower(text[len(text)-min(searched, len(text)-searched):])
	}
	if failure == conversation.FailureNone {
		o.pending = pending(head, waits, len(text)) || pending(tail, waits, len(text))
	} else {
		o.passing = has(head, transient...) || has(tail, transient...)
	}
	return o
}

// searched is how much of a result is searched at each end for words that say how far something is, in bytes.
const searched = 1 << 10

// unfinished are words that say that something has not ended.
var unfinished = []string{
	"queued", "in_progress", "in progress", "inprogress", "not ready", "not yet", "scheduled", "empty", "none",
	"running", "pending", "waiting", "building", "creating", "containercreating", "starting", "initializing", "provisioning", "processing", "deploying", "progressing",
}

// transient are words of failures that may be over after a while.
var transient = []string{
	"connection refused", "connection reset", "could not connect", "couldn't connect", "failed to connect", "econnrefused", "econnreset", "unreachable", "timed out", "timeout",
	"temporarily", "unavailable", "try again", "locked", " busy", "rate limit", "too many requests", " 502", " 503", " 504", " 429", "not ready", "not yet", "pending", "in progress",
}

// pending says whether a text, in small letters, says that something has not ended. What a call that waits has seen says so with any of the
// words; others with a single word that is their whole text, or all that a line says, or the value of a state, or a cell of a table.
func pending(text string, waits bool, size int) bool {
	const short = 64
	ing := strings.Contains(text, "ing")
	for _, word := range unfinished {
		if !ing && strings.HasSuffix(word, "ing") {
			continue
		}
		for from := 0; ; {
			i := strings.Index(text[from:], word)
			if i < 0 {
				break
			}
			i += from
			from = i + len(word)
			before, after := strings.TrimRight(text[:i], " \"'=:>\t"), text[from:]
			if i > 0 && letter(text[i-1]) || after != "" && letter(after[0]) {
				continue
			}
			cell := strings.HasSuffix(text[:i], "  ") || strings.HasSuffix(text[:i], "\t")
			alone := (before == "" || before[len(before)-1] == '\n') && strings.IndexFunc(strings.TrimLeft(after, " \t\r"), func(r rune) bool { return r != '\n' }) != 0
			if waits || size <= short || cell || alone || hasSuffix(before, "status", "state", "phase", "process", "is", "progress") {
				return true
			}
		}
	}
	return false
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func hasSuffix(text string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(text, s) })
}

// shown is what remains to be seen of a line: what stands behind the last return of the carriage.
func shown(line string) string {
	for len(line) > 0 && line[len(line)-1] <= ' ' {
		line = line[:len(line)-1]
	}
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// wraps says whether a line is one by which Codex says of each call how it went.
func wraps(line string) bool {
	if line[0] != 'C' && line[0] != 'W' && line[0] != 'O' && line[0] != 'T' {
		return false
	}
	for _, p := range []string{"Chunk ID: ", "Wall time: ", "Original token count: ", "Total output lines: "} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

// progress says whether a line says how far something is, and nothing else.
func progress(line string) bool {
	return strings.Contains(line, "B/s") || strings.Contains(line, "it/s") || strings.Contains(line, "ETA ") || strings.Contains(line, "===>") ||
		strings.HasPrefix(line, "progress") || strings.HasPrefix(line, "Progress")
}

// lowest are the lowest of some sums, sorted, and how many there were.
type lowest struct {
	list []uint32
	all  int
}

func (l *lowest) add(sum uint32) {
	l.all++
	i, has := slices.BinarySearch(l.list, sum)
	if has || i >= maxFailing {
		return
	}
	l.list = slices.Insert(l.list[:min(len(l.list), maxFailing-1)], i, sum)
}

// naming collects what a failure names.
type naming struct {
	// strict are names of tests, and loose lines of errors.
	strict, loose lowest
	// edges are the first and the last lines.
	edges []uint32
	// words of errors that are there.
	words []string
}

// see a line of a failure, by its sum.
func (n *naming) see(line string, sum uint32) {
	line = line[:min(len(line), maxLine)]
	switch {
	case strings.Contains(line, "make: *** "), strings.HasPrefix(line, "make["), strings.HasPrefix(line, "Exit code"), strings.HasPrefix(line, "Process exited"),
		line == "Output:", strings.IndexFunc(line, func(r rune) bool { return r != ' ' && (r < '0' || r > '9') }) < 0:
		return // how it ended, and not why
	case names(line):
		n.strict.add(named(line))
	case has(line, n.words...) && !counted(line):
		n.loose.add(named(line))
	}
	const edge = 3
	if len(n.edges) >= 2*edge {
		copy(n.edges[edge:], n.edges[edge+1:])
		n.edges = n.edges[:2*edge-1]
	}
	n.edges = append(n.edges, sum)
}

// best are the names that say most, and how many there are.
func (n *naming) best() (list []uint32, all int) {
	switch {
	case n.strict.all > 0:
		return n.strict.list, n.strict.all
	case n.loose.all > 0:
		return n.loose.list, n.loose.all
	}
	slices.Sort(n.edges)
	list = slices.Compact(n.edges)
	return list, len(list)
}

// names says whether a line names a test that fails.
func names(line string) bool {
	trimmed := strings.TrimLeft(line, " \t")
	for _, p := range []string{"--- FAIL: ", "FAIL: ", "FAILED ", "ERROR: test", "not ok ", "✗ ", "✕ ", "× ", "● "} {
		if strings.HasPrefix(trimmed, p) {
			return true
		}
	}
	return strings.HasPrefix(trimmed, "test ") && strings.HasSuffix(trimmed, "... FAILED")
}

// errs are parts of the words of errors, in small and in large letters.
var errs = []string{"rror", "ERR", "FAIL", "ail", "anic", "xception", "atal", "ndefined", "annot", "ot found", "efused", "enied", "o such", "nable to", "ould not"}

// counted says whether a line counts failures: "3 failed".
func counted(line string) bool {
	for _, word := range []string{" failed", " failure", " error"} {
		if i := strings.Index(line, word); i > 0 && digit(line[i-1]) {
			return true
		}
	}
	return false
}

// named is the sum of a line without what differs from run to run, and without the numbers of lines and columns.
func named(line string) uint32 {
	var s steadier
	if i := strings.Index(line, " - "); i > 0 && strings.HasPrefix(line, "FAILED ") { // pytest says why behind it
		line = line[:i]
	}
	s.places = true
	s.line(line)
	return uint32(s.hash >> 32)
}

// The hash is FNV-1a. An agent that makes two sums equal harms only itself.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// steadier hashes lines without what differs from run to run: times, durations, addresses, ids, temporary paths, and numbers of processes, ports and
// seeds. Other numbers stay: they are what a test says.
type steadier struct {
	hash uint64
	size int
	// places leaves out the numbers of lines and columns.
	places bool
	// text is what was hashed, where kept says so.
	kept bool
	text []byte
}

func (s *steadier) put(text string) {
	h := s.hash
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	s.hash, s.size = h, s.size+len(text)
	if s.kept {
		s.text = append(s.text, text...)
	}
}

// line is what is hashed next.
func (s *steadier) line(text string) {
	s.hash, s.size = fnvOffset, 0
	space, last := true, "" // the word before
	for i := 0; i < len(text); {
		c := text[i]
		if !wordy(c) {
			if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
				if !space {
					s.put(" ")
				}
				space = true
				i++
				continue
			}
			if c == '/' && temporary(text[i:]) > 0 {
				end := i + temporary(text[i:])
				s.put("/tmp/#")
				i, space, last = end, false, ""
				continue
			}
			s.put(text[i : i+1])
			space = false
			i++
			continue
		}
		word, digits := wordOf(text[i:])
		end := i + len(word)
		switch {
		case digits == 0: // most words
			s.put(word)
		case fleeting(word), number(word) && unit(text[end:]), fickle(last) && number(trimmed(word)), assigned(word):
			s.put("#")
		case s.places:
			s.put(placeless(word))
		default:
			s.put(word)
		}
		space, last, i = false, word, end
	}
}

// temporary is how long a path of a temporary file is that a text begins with; 0 for none. What stands below a folder that has no digits is as it is.
func temporary(text string) int {
	for _, dir := range []string{"/tmp/", "/var/tmp/", "/var/folders/"} {
		if !strings.HasPrefix(text, dir) {
			continue
		}
		end, odd := len(dir), dir == "/var/folders/"
		for end < len(text) && (wordy(text[end]) || text[end] == '/' && dir == "/var/folders/") {
			odd = odd || digit(text[end])
			end++
		}
		if odd || strings.HasPrefix(text, "/tmp/tmp") {
			return end
		}
	}
	return 0
}

// fickle says whether a number that stands behind the word differs each time.
func fickle(word string) bool {
	word = trimmed(word)
	if len(word) > len("goroutine") {
		return false
	}
	switch strings.ToLower(word) {
	case "pid", "ppid", "tid", "process", "goroutine", "thread", "worker", "port", "seed":
		return true
	}
	return false
}

// assigned says whether the word is a number of a process, a port or a seed with its name.
func assigned(word string) bool {
	name, digits, found := strings.Cut(word, ":")
	return found && digits != "" && fickle(name) && number(digits)
}

// placeless is the word without the numbers of lines and columns behind its colons.
func placeless(word string) string {
	for {
		i := strings.LastIndexByte(strings.TrimRight(word, ":"), ':')
		if i < 0 || strings.Trim(word[i:], ":0123456789") != "" {
			return word
		}
		word = word[:i]
	}
}

// steady is a text as it is compared.
func steady(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		s := steadier{kept: true}
		s.line(shown(line))
		b.Write(s.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// alike says whether a failure names the same as one that came before it: more than half of what the one names that names less. The same call is to name
// no less.
func alike(a, b step) bool {
	if a.Result == b.Result {
		return true
	}
	if a.Call == b.Call && better(a, b) {
		return false
	}
	same := common(a.Failing, b.Failing)
	return same > 0 && 2*same > min(len(a.Failing), len(b.Failing))
}

// common is how many sums two sorted lists both have.
func common(a, b []uint32) (n int) {
	for _, sum := range a {
		if _, is := slices.BinarySearch(b, sum); is {
			n++
		}
	}
	return n
}

// better says whether a failure names less than one that came before it.
func better(now, before step) bool {
	if now.Result == before.Result {
		return false
	}
	if len(now.Failing) == 0 || len(before.Failing) == 0 || now.Fails < before.Fails {
		return true
	}
	for _, n := range before.Failing {
		_, is := slices.BinarySearch(now.Failing, n)
		if !is && (now.Fails <= maxFailing || n < now.Failing[len(now.Failing)-1]) { // else it may be among the forgotten ones
			return true
		}
	}
	return false
}

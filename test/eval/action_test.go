// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// verb is what an agent does, whatever its client calls the tool.
type verb int

const (
	reads verb = iota
	writes
	edits
	runs
	searches
	finds
	plans
	fetches
	polls
	delegates
	asksTracker
	asksServer
)

// ending is how a call of a tool came out.
type ending int

const (
	fine ending = iota
	exited
	missing
	unmatched
	unread
	denied
	timedOut
	malformed
	broken
)

// action is one call of a tool, with what comes of it.
type action struct {
	verb verb
	// path of a file, or the text that is looked for, or the address that is fetched.
	path string
	// from and to are what an edit replaces; to is what is written, too.
	from, to string
	command  string
	ending   ending
	code     int
	output   string
	// silent says that a command has no output.
	silent bool
	took   time.Duration
	// cores that the command uses while it runs.
	cores float64
	// offset of what is read, in lines.
	offset int
	// steps are the work of an agent that is called; those of several agents take turns.
	steps []func(*agent)
	// server and tool are those of a Model Context Protocol server that is asked with arguments.
	server, tool, arguments string
	// image is a picture, in base64, that the result has in place of a text.
	image string
}

func read(path string) action { return action{verb: reads, path: path, took: 60 * time.Millisecond} }
func write(path, text string) action {
	return action{verb: writes, path: path, to: text, took: 80 * time.Millisecond}
}
func run(command string) action {
	return action{verb: runs, command: command, took: 900 * time.Millisecond, cores: 0.6}
}
func search(pattern string) action {
	return action{verb: searches, path: pattern, took: 150 * time.Millisecond, cores: 0.8}
}
func find(pattern string) action {
	return action{verb: finds, path: pattern, took: 100 * time.Millisecond, cores: 0.5}
}
func plan(items string) action { return action{verb: plans, to: items, took: 20 * time.Millisecond} }
func fetch(url string) action  { return action{verb: fetches, path: url, took: 2 * time.Second} }
func poll(job string) action   { return action{verb: polls, path: job, took: 200 * time.Millisecond} }
func ticket(number string) action {
	return action{verb: asksTracker, path: number, took: 700 * time.Millisecond}
}

// mcp calls a tool of a server, with names and values as arguments.
func mcp(server, tool string, arguments ...any) action {
	return action{verb: asksServer, server: server, tool: tool, arguments: object(arguments...), took: 600 * time.Millisecond}
}
func delegate(what string, steps ...func(*agent)) action {
	return action{verb: delegates, path: what, steps: steps}
}

func edit(path, from, to string) action {
	return action{verb: edits, path: path, from: from, to: to, took: 90 * time.Millisecond}
}

func (x action) at(line int) action { x.offset = line; return x }
func (x action) gives(format string, a ...any) action {
	x.output = fmt.Sprintf(format, a...)
	return x
}
func (x action) quiet() action                { x.silent = true; return x }
func (x action) takes(d time.Duration) action { x.took = d; return x }
func (x action) uses(cores float64) action    { x.cores = cores; return x }
func (x action) ends(e ending) action         { x.ending = e; return x }
func (x action) shows(image string) action    { x.image = image; return x }
func (x action) fails(code int, format string, a ...any) action {
	x.ending, x.code, x.output = exited, code, fmt.Sprintf(format, a...)
	return x
}

// folder is where agents work.
const folder = "/workspace/"

// number of a text, which is the same in every run.
func number(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

var nouns = strings.Fields("order invoice basket customer price stock parcel route ledger token session queue worker shard index page cache retry budget lease draft chart")

// contentOf gives lines of code of a file, as it stands after some edits; the same for the same path and state.
func contentOf(path, state string, from, lines int) []string {
	list := make([]string, lines)
	n := number(path + "\x00" + state)
	for i := range list {
		k := n + uint64(from+i)*2654435761
		a, b := nouns[k%uint64(len(nouns))], nouns[(k>>8)%uint64(len(nouns))]
		switch k >> 16 % 5 {
		case 0:
			list[i] = fmt.Sprintf("func (s *%s) %s%d(id string) error {", a, b, from+i)
		case 1:
			list[i] = fmt.Sprintf("\tif err := s.%s.check(%q); err != nil {", b, a)
		case 2:
			list[i] = fmt.Sprintf("\t\treturn fmt.Errorf(\"%s %s: %%w\", err)", a, b)
		case 3:
			list[i] = "}"
		default:
			list[i] = fmt.Sprintf("\ts.%s = append(s.%s, %s%d)", a, a, b, k%97)
		}
	}
	return list
}

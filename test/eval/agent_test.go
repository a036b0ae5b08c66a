// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// client is the program in which an agent runs: what it calls its tools, and how it speaks with its provider.
type client struct {
	name, dialect string
	// lead are the entries with which every conversation of an agent begins, before its task.
	lead func() []*entry
	// system is what an agent is told, by what it is for.
	system func(role string) string
	// body of a request, and an answer as a stream of events and as one document.
	body   func(w *world, t *talk) []byte
	stream func(w *world, s said) []byte
	whole  func(w *world, s said) []byte
	// tool gives the call of an action, and the result of it.
	tool func(w *world, x action) (name, arguments, result string, failed bool)
	// compact puts a summary in the place of what was said.
	compact func(a *agent, summary string)
	// prunes says that the client takes old results out of the conversation.
	prunes bool
}

// talk is a conversation as its client has it.
type talk struct {
	role, system string
	tools        bool
	// servers are tools that the client has from servers, beside its own.
	servers []string
	entries []*entry
	// reminder is what the client puts at the end of each request, behind all that is new; "" for nothing.
	reminder string
	// clock says that the client puts the time before what the user has said first.
	clock bool
}

// entry is one message, or what was said at once.
type entry struct {
	role    string // system, user or model
	text    string
	calls   []call
	results []result
	// drawn and marked are the entry as it is sent.
	drawn, marked string
}

type call struct{ id, name, arguments string }

type result struct {
	id, text string
	failed   bool
	// image stands in the place of the text.
	image string
}

// said is an answer of a model.
type said struct {
	text  string
	calls []call
	usage int64 // tokens of the request
	half  bool  // the stream breaks off
	// deltas are the text as it is streamed, where it comes in more than one event.
	deltas []string
}

// parts of the text, one for each event of the stream.
func (s said) parts() []string {
	if len(s.deltas) > 0 {
		return s.deltas
	}
	return []string{s.text}
}

// agent is one conversation of a run.
type agent struct {
	*talk

	w *world
	// thread for which the pipeline takes it.
	thread int
	// latency of the model.
	latency time.Duration
	// padding are tokens of the context that are not seen in the text, such as images and thoughts.
	padding int64
	// deltas are words with which the next answer streams, and pause is how long it takes after each.
	deltas []string
	pause  time.Duration
	// idle is what the client itself computes while it waits, in cores.
	idle float64
}

// defaultWindow is that of most models that work as agents.
const defaultWindow = 200_000

func (w *world) agent(role string) *agent {
	c := w.run.client
	return &agent{w: w, talk: &talk{role: role, system: c.system(role), tools: true, entries: c.lead()}, latency: 0, idle: 0.004}
}

// task tells the agent what to do.
func (a *agent) task(text string) {
	a.entries = append(a.entries, &entry{role: "user", text: text})
	a.w.idle = false
}

// tokens of the conversation, at some four bytes each.
func (a *agent) tokens() int64 {
	n := int64(14_000)
	for _, e := range a.entries {
		size := len(e.text)
		for _, c := range e.calls {
			size += len(c.arguments) + 40
		}
		for _, r := range e.results {
			size += len(r.text) + 40
			if r.image != "" {
				size += 6_000 // most cost some 1,500 tokens
			}
		}
		n += int64(size) / 4
	}
	return n + a.padding
}

// fill the context to a part of the window.
func (a *agent) fill(part float64) {
	window := a.w.run.window
	if window == 0 {
		window = defaultWindow
	}
	a.padding = 0
	a.padding = max(0, int64(part*float64(window))-a.tokens())
}

// ask the model.
func (a *agent) ask(again bool) {
	a.w.verdict.requests++
	if !again && a.tools {
		a.w.verdict.turns++
	}
	a.w.signal(false)
	sent := a.reminded()
	thread, told := a.w.pipeline.Request(a.w.request(&sent), a.w.now)
	if h := a.w.heard[thread]; h.entries != len(sent.entries) { // else it asks once more
		a.w.heard[thread] = heard{h.turns + 1, len(sent.entries)}
	}
	if len(told) > 0 {
		a.w.verdict.told = append(a.w.verdict.told, message{thread, a.w.heard[thread].turns, told})
	}
	a.w.look()
	if a.thread == 0 {
		a.thread = thread
	}
	if a.w.owners[thread] == nil {
		a.w.owners[thread] = a
	}
	if a.thread != thread || a.role == "sub" && a.w.owners[thread] != a {
		a.w.verdict.strays = append(a.w.verdict.strays, fmt.Sprintf("turn %d of %s: thread %d, want %d", a.w.verdict.turns, a.role, thread, a.thread))
	}
}

// reminded is the conversation as it is sent. A client that has results in messages with other things puts its reminder there, and the others
// behind them.
func (a *agent) reminded() talk {
	sent := *a.talk
	sent.entries = slices.Clone(sent.entries)
	if i := slices.IndexFunc(sent.entries, func(e *entry) bool { return e.role == "user" }); a.clock && i >= 0 {
		first := *sent.entries[i]
		first.drawn, first.marked, first.text = "", "", fmt.Sprintf("It is %s. %s", a.w.now.Format(time.TimeOnly), first.text)
		sent.entries[i] = &first
	}
	if a.reminder == "" {
		return sent
	}
	if last := len(sent.entries) - 1; len(sent.entries[last].results) > 0 && a.w.run.client.dialect == "anthropic" {
		sent.entries[last] = &entry{role: "user", text: a.reminder, results: sent.entries[last].results}
	} else {
		sent.entries = append(sent.entries, &entry{role: "user", text: a.reminder})
	}
	return sent
}

// answer of the model.
func (a *agent) answer(s said) {
	latency := a.latency
	if latency == 0 {
		latency = time.Duration(3000+a.w.random.IntN(11000)) * time.Millisecond
	}
	a.w.pass(latency, 0.02, 60)
	s.usage = a.tokens()
	s.deltas, a.deltas = a.deltas, nil
	if len(s.deltas) > 0 {
		s.text = strings.Join(s.deltas, "")
	}
	r := a.w.reply(s)
	if len(s.deltas) > 0 {
		pieces := events(r.body)
		r.body = pieces[len(pieces)-1]
		a.pieces(pieces[:len(pieces)-1], a.pause)
	}
	a.w.pipeline.Answer(r, a.w.now)
	a.w.look()
	if !s.half {
		a.entries = append(a.entries, &entry{role: "model", text: s.text, calls: s.calls})
	}
}

// slowly has the next answer stream, with a pause after each of some words.
func (a *agent) slowly(pause time.Duration, words ...string) { a.pause, a.deltas = pause, words }

// pieces of an answer that is not over, with a pause after each.
func (a *agent) pieces(list [][]byte, pause time.Duration) {
	for _, piece := range list {
		a.w.pipeline.Answer(reply{status: http.StatusOK, kind: "text/event-stream", body: piece, more: true}, a.w.now)
		a.w.look()
		a.w.pass(pause, 0.02, 20)
	}
}

// events of a stream, each with its end.
func events(stream []byte) [][]byte {
	list := bytes.SplitAfter(stream, []byte("\n\n"))
	return list[:len(list)-1] // nothing is behind the last one
}

var phrases = []string{
	"Let me look at that.", "I'll check how this is used.", "Now I see how it works. Next step.", "I need to look at one more thing.", "That makes sense.",
	"Let me go on.", "Next, the other part.", "", "", "", "I'll try this.", "Let me verify.",
}

// do some actions in one turn.
func (a *agent) do(actions ...action) { a.with(phrases[a.w.random.IntN(len(phrases))], actions...) }

// with some words does actions in one turn.
func (a *agent) with(words string, actions ...action) {
	if a.w.run.noise > 0 && a.w.random.Float64() < a.w.run.noise {
		a.distraction()
	}
	a.turn(words, actions...)
}

func (a *agent) turn(words string, actions ...action) {
	a.ask(false)
	s := said{text: words}
	e := &entry{role: "user"}
	for _, x := range actions {
		x = a.prepare(x)
		name, arguments, text, failed := a.w.run.client.tool(a.w, x)
		id := a.w.id("call")
		s.calls = append(s.calls, call{id, name, arguments})
		e.results = append(e.results, result{id, text, failed, x.image})
	}
	a.answer(s)
	var subs []*agent
	var steps [][]func(*agent)
	for _, x := range actions {
		if x.verb == delegates {
			sub := a.w.agent("sub")
			sub.task(x.path)
			subs, steps = append(subs, sub), append(steps, x.steps)
			continue
		}
		a.w.children++
		a.w.pass(x.took, a.idle+x.cores, 20)
		a.w.children--
		a.effect(x)
	}
	for i := 0; slices.ContainsFunc(steps, func(s []func(*agent)) bool { return i < len(s) }); i++ {
		for n, s := range steps {
			if i < len(s) {
				s[i](subs[n])
			}
		}
	}
	a.entries = append(a.entries, e)
	a.w.printed += int64(400 + len(words))
}

// prepare fills in what an action gives from the state of the files.
func (a *agent) prepare(x action) action {
	if x.verb == reads && x.ending == fine && x.output == "" && x.image == "" {
		x.output = strings.Join(contentOf(x.path, a.w.files[x.path], x.offset, 30), "\n")
	}
	return x
}

// effect of an action on the files.
func (a *agent) effect(x action) {
	if x.ending != fine {
		return
	}
	switch x.verb {
	case edits:
		// What is put back where it was gives the file that was there before.
		state := strings.TrimSuffix(a.w.files[x.path], "|"+x.to+">"+x.from)
		if state == a.w.files[x.path] {
			state += "|" + x.from + ">" + x.to
		}
		a.w.change(x.path, state)
	case writes:
		a.w.change(x.path, "="+x.to)
	case reads, runs, searches, finds, plans, fetches, polls, delegates, asksTracker, asksServer:
	}
}

// touches says that a command has changed a file.
func (a *agent) touches(path, state string) { a.w.change(path, state) }

// say something without any call: the end, unless somebody says something.
func (a *agent) say(text string) {
	a.ask(false)
	a.answer(said{text: text})
	a.w.printed += int64(len(text))
	a.w.idle = a.role == "main"
}

// person says that somebody who looks on sees now that something is wrong.
func (a *agent) person() {
	v := &a.w.verdict
	if v.turn == 0 {
		v.turn, v.at = v.turns+1, a.w.now
	}
}

// sick says that from now on something is wrong.
func (a *agent) sick() { a.w.verdict.onset = a.w.verdict.turns }

// hang for some time, in which a person sees it after a while.
func (a *agent) hang(all, person time.Duration, cores float64, children int) {
	a.w.verdict.hung = true
	a.sick()
	a.w.children += children
	a.w.pass(person, cores, 0)
	a.person()
	a.w.pass(all-person, cores, 0)
	a.w.children -= children
}

// hangs in a call of a tool that does not come back.
func (a *agent) hangs(x action, all, person time.Duration, cores float64) {
	a.ask(false)
	name, arguments, _, _ := a.w.run.client.tool(a.w, x)
	a.answer(said{text: "I'll run it.", calls: []call{{a.w.id("call"), name, arguments}}})
	a.hang(all, person, cores, 1)
}

// refused by the provider some times, with a pause after each.
func (a *agent) refused(status, times int, pause time.Duration, each func(n int)) {
	for n := range times {
		a.ask(n > 0)
		a.w.pass(400*time.Millisecond, a.idle, 0)
		a.w.pipeline.Answer(refusal(a.w.run.client, status), a.w.now)
		a.w.look()
		a.w.pass(pause, a.idle, 0)
		if each != nil {
			each(n + 1)
		}
	}
}

// cut off in an answer, so that the client asks once more.
func (a *agent) cut() {
	a.ask(false)
	a.answer(said{text: "I will look at the", half: true})
	a.ask(true)
	a.answer(said{text: "I will look at the tests.", calls: nil})
	a.task("Continue.")
}

// side asks something beside the conversation, as clients do for titles.
func (a *agent) side(about string) {
	role := "title"
	b := &agent{w: a.w, talk: &talk{role: role, system: a.w.run.client.system(role), entries: []*entry{{role: "user", text: about}}}, latency: 900 * time.Millisecond}
	if a.w.run.client.dialect == "openai-chat" {
		b.entries = slices.Insert(b.entries, 0, &entry{role: "system", text: b.system})
	}
	b.ask(true)
	b.answer(said{text: "Working on " + about[:min(len(about), 20)]})
}

// compact the conversation.
func (a *agent) compact(summary string) {
	a.padding = 0
	a.w.run.client.compact(a, summary)
}

// prune takes results out of the conversation but for the last ones, where the client does so.
func (a *agent) prune(keep int) {
	if !a.w.run.client.prunes {
		return
	}
	for i := len(a.entries) - 1; i >= 0; i-- {
		e := a.entries[i]
		if len(e.results) == 0 {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		list := slices.Clone(e.results)
		for n := range list {
			list[n].text, list[n].image = "[Old tool result content cleared]", ""
		}
		a.entries[i] = &entry{role: e.role, text: e.text, results: list}
	}
}

// distraction is something that is done between two steps and means nothing.
func (a *agent) distraction() {
	n := a.w.random.IntN(1000)
	switch {
	case n%5 == 0 && a.role == "main":
		a.side(fmt.Sprint("what now ", n))
	case n%5 == 1:
		a.turn("", plan(fmt.Sprint("step ", n)))
	case n%5 == 2:
		a.turn("Let me look at this too.", read(fmt.Sprintf("internal/%s/%s_%d.go", nouns[n%len(nouns)], nouns[n/7%len(nouns)], n)))
	case n%5 == 3:
		a.turn("", search(fmt.Sprintf("%s.*%d", nouns[n%len(nouns)], n)).gives("internal/%s.go:%d:  call", nouns[n%len(nouns)], n))
	case len(a.w.run.kinds) == 0:
		path := fmt.Sprintf("internal/%s/helper_%d.go", nouns[n%len(nouns)], n)
		a.turn("", read(path))
		a.turn("", edit(path, fmt.Sprint("old", n), fmt.Sprint("new", n)))
	default:
		a.turn("", run(fmt.Sprintf("git log --oneline -%d", 3+n%9)).gives("%07x Change %d\n%07x Change %d", n*77, n, n*91, n+1))
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"bytes"
	"cmp"
	"slices"
)

// Kind of a thread.
type Kind string

// Kinds of threads.
const (
	// KindMain is the conversation about the task.
	KindMain Kind = "Main"
	// KindSub is one of an agent that works for the main one, with tools.
	KindSub Kind = "Sub"
	// KindSide is a call without tools, such as for a title or a summary.
	KindSide Kind = "Side"
)

// Bounds of what a book remembers. A run has one main thread and some agents that work for it; the book forgets the threads that have been
// silent for longest.
const (
	// MaxThreads that are remembered.
	MaxThreads = 32
	// MaxMessages of a thread that are remembered. A session of 500 turns has some 1,500 entries in the dialect that has most.
	MaxMessages = 20_000
	// MaxHistory is how many bytes of requests the book remembers of all threads, so that it recognises earlier messages by comparing bytes.
	// It recognises messages beyond that by their digests.
	MaxHistory = 6 << 20
)

// Request to a model, as a dialect reads it.
type Request interface {
	// List of messages as it stands in the request, brackets included; nil if there is none.
	List() []byte
	// Next returns the entry of the list that begins after an offset, and where it ends; ok is false after the last one.
	Next(after int) (entry []byte, end int, ok bool)
	// Message reads an entry. An unreadable entry is an empty message.
	Message(entry []byte) Message
	// Setting is the digest of what a request says in addition to the messages, such as the system text, and whether the model may call tools.
	Setting() (system Digest, tools bool)
	// Known is the book's answer about its list; the zero value if nobody asked the book.
	Known() Known
}

// Known is what a list of messages has in common with the lists that a book has heard. It is valid until the book hears another request.
type Known struct {
	// Bytes at the beginning of the list that are its bracket and whole entries that a request has had before.
	Bytes int

	// thread that had those, and how many bytes its last request has in common with the list.
	thread *Thread
	equal  int
	// heard is how many requests the book had heard.
	heard int64
}

// Step is a tool call and its result.
type Step struct {
	Call    Call
	Result  Quote
	Failure Failure
}

// Turn is what is new in a request, compared with earlier requests.
type Turn struct {
	// Thread is the number of its thread, from 1, and Kind the purpose of the thread.
	Thread int
	Kind   Kind
	// Number of the turn in its thread, from 1.
	Number int
	// Again says that the request has nothing new: a client repeats it, because it got no usable answer.
	Again bool
	// Compacted says that the client has replaced earlier messages with something shorter.
	Compacted bool
	// Steps whose results have come.
	Steps []Step
	// Said by the model, and Told by users and clients, without results.
	Said, Told []Quote
	// Messages is their number. Aligned is how many of them, from the beginning, are at the positions of the thread's previous request,
	// whatever they say now.
	Messages, Aligned int
	// Fleeting says that what that request had behind those messages was only for that request, such as a reminder. In the new request they
	// are last, or the model's text follows them, or something new and then the same reminder.
	Fleeting bool
	// Tail is how many at the end are such reminders, which the client repeats in each request.
	Tail int
	// Ends are where the messages end in the request's list.
	Ends []int
}

// Thread is one conversation. Its fields are what a watchdog remembers after a restart.
type Thread struct {
	ID     int    `json:"id"`
	Kind   Kind   `json:"kind"`
	System Digest `json:"system"` // the newest one
	// Before is the digest of the system text before that one. A request about the whole conversation, such as the one for its summary, may
	// have a system text of its own.
	Before Digest `json:"before"`
	Turns  int    `json:"turns"`
	Last   int64  `json:"last"` // counts requests of all threads
	// Chain has the digests of its messages; the first Lead of them are the system's, which other threads may have too.
	Chain []Digest `json:"chain"`
	Lead  int      `json:"lead,omitempty"`
	// Results are which calls the last message has the results of, what stands behind it in each request apart.
	Results []Digest `json:"results,omitempty"`
	Heads   []Digest `json:"heads,omitempty"`
	// Open says that the model has called tools in its last answer, and no request has followed. Called are the digests of their IDs.
	Open   bool     `json:"open,omitempty"`
	Called []Digest `json:"called,omitempty"`
	// Summarized says that another request about the whole thread has come, as clients send before they compact it.
	Summarized bool `json:"summarized,omitempty"`
	// Of is the thread that its first request is about, and Asked the number of that request; 0 for none.
	Of    int   `json:"of,omitempty"`
	Asked int64 `json:"asked,omitempty"`

	// list and ends are the last request's messages, and where each ends.
	list []byte
	ends []int
}

// Book keeps the threads of a run apart and says what is new in each request. Its cost is one comparison of bytes and the work for what is
// new. The zero value has heard nothing.
type Book struct {
	Threads []*Thread `json:"threads,omitempty"`
	Made    int       `json:"made"`
	Heard   int64     `json:"heard"`

	classifier *classifier
}

// Known compares a list with earlier requests. The bytes may continue behind the list.
func (b *Book) Known(list []byte) Known {
	return b.known(list, func(*Thread) bool { return true })
}

func (b *Book) known(list []byte, may func(*Thread) bool) Known {
	k := Known{heard: b.Heard}
	for _, t := range b.Threads {
		if !may(t) {
			continue
		}
		equal := prefix(t.list, list)
		if equal > 0 && equal < max(len(t.list), len(list)) && '0' <= list[equal-1] && list[equal-1] <= '9' {
			equal-- // more of a number may follow
		}
		if n := t.has(equal); n > 0 && t.ends[n-1] > k.Bytes {
			k.Bytes, k.thread, k.equal = t.ends[n-1], t, equal
		}
	}
	return k
}

// has is how many entries of the last request end within the given bytes.
func (t *Thread) has(bytes int) int {
	n, _ := slices.BinarySearch(t.ends, bytes+1)
	return n
}

// Observe a request.
func (b *Book) Observe(r Request) Turn {
	if b.classifier == nil {
		b.classifier = newClassifier()
	}
	system, tools := r.Setting()
	said := b.read(r, tools)
	b.Heard++
	system = said.setting(system)
	t, same := b.find(said, tools)
	if t == nil || same <= fewMessages && !said.answers(t) {
		// Agents of one client begin alike. Whose calls have been answered says more than that.
		if other := b.answered(&said, system, tools); other != nil {
			t, same = other, other.shares(said)
		}
	}
	if t != nil {
		if main := b.resumed(t, said, same); main != nil {
			t, same = main, main.shares(said)
		}
	}
	like, known, turn, of := said.lead+same, 0, Turn{Messages: len(said.chain)}, 0
	if t != nil {
		said.tail = said.repeated(t, same)
		known = max(said.kept(t, same), said.altered(t, same))
		if b.asks(t, said, known, system, tools) {
			// The same messages in another setting: a client asks something about them, as it does before it compacts them.
			of, t.Summarized, t = t.ID, true, nil
		}
	}
	if t != nil && known == like && same < min(len(t.Chain)-t.Lead-said.tail, manyMessages) && (t.Open || t.Turns == 1) && !t.Summarized && !said.worked() && !said.answers(t) {
		t = nil // an agent that another one has called gets the same first text
	}
	if t == nil {
		if t = b.shortened(system, tools); t == nil {
			t = b.add(system, tools)
			t.Of, t.Asked = of, b.Heard
		}
		like, known, same, said.tail = 0, 0, 0, 0
	} else {
		turn.Aligned, turn.Fleeting = said.aligned(t, same)
	}
	turn.Tail, turn.Compacted = said.reminders(), said.compacts(t, same)
	turn.Again = t.Turns > 0 && like == len(said.chain)
	if !turn.Again {
		t.Turns++
		t.Summarized = false // what continues is not replaced, and what was replaced has been summarized
	}
	if t != said.like && said.like != nil && !said.parted { // each continues its own
		said.part()
	}
	t.Results, t.Heads = said.results(t)
	t.Chain, t.Lead, t.ends, t.Last = said.chain, said.lead, said.ends, b.Heard
	if t.System != system {
		t.System, t.Before = system, t.System
	}
	t.remember(said)
	t.Open = false
	var calls []Call
	for _, m := range said.after(known) {
		calls = turn.hear(m, calls, b.classifier)
	}
	turn.Thread, turn.Kind, turn.Number, turn.Ends = t.ID, t.Kind, t.Turns, t.ends
	b.forget()
	return turn
}

// asks says whether a request asks something about a thread rather than continuing it.
func (b *Book) asks(t *Thread, said reading, known int, system Digest, tools bool) bool {
	return t.Kind != KindSide && (!tools || t.System != system && !slices.ContainsFunc(said.after(known), Message.works))
}

// remember the bytes of a request. Of one that continues the thread's last one only what is new is copied; an eighth is left for what
// will be said next.
func (t *Thread) remember(said reading) {
	known, n := said.equal, len(said.list)
	if t != said.like || cap(t.list) < n || cap(t.list) > n+n/4 {
		t.list, known = make([]byte, 0, n+n/8), 0
	}
	t.list = append(t.list[:known], said.list[known:]...)
}

// prefix is how many bytes two lists have in common at their beginning.
func prefix(a, b []byte) int {
	n := min(len(a), len(b))
	const step = 1 << 10
	i := 0
	for i+step <= n && bytes.Equal(a[i:i+step], b[i:i+step]) {
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// find the thread that has most of a request's first messages, and how many of them, the system's apart; of several, one that has no others,
// and then the one that was heard last. A request with tools does not continue a thread without tools.
func (b *Book) find(said reading, tools bool) (found *Thread, same int) {
	better := func(t *Thread) bool {
		if whole := t.Lead+same == len(t.Chain); whole != (found.Lead+same == len(found.Chain)) {
			return whole
		}
		return t.Last > found.Last
	}
	for _, t := range b.Threads {
		if tools && t.Kind == KindSide {
			continue
		}
		n := t.shares(said)
		if n > same || n > 0 && n == same && better(t) {
			found, same = t, n
		}
	}
	return found, same
}

// shares is how many messages at the beginning a thread has in common with a request, the system's apart.
func (t *Thread) shares(said reading) (n int) {
	had, has := t.Chain[t.Lead:], said.chain[said.lead:]
	for n < len(has) && n < len(had) && has[n] == had[n] {
		n++
	}
	return n
}

// resumed is the main thread, if a request continues work in a thread that only seemed to ask something about it: a user has said something
// more in a session whose system text is another one by now, such as the date. The main thread has ended its turn before, and was not heard
// since; one that waits for an agent that works for it has called a tool. The other thread is a part of it then.
func (b *Book) resumed(t *Thread, said reading, same int) *Thread {
	i := slices.IndexFunc(b.Threads, func(m *Thread) bool {
		return t.Of == m.ID && m.Kind == KindMain && !m.Open && m.Last < t.Asked
	})
	if i < 0 || !slices.ContainsFunc(said.after(said.lead+same), Message.works) {
		return nil
	}
	b.Threads[i].Called = t.Called
	return b.Threads[i]
}

// shortened is the thread that continues with a request that repeats nothing of it: the main one, where it has been summarized, or where it
// is long and has called no tool: an agent that works for it begins with a call. Its system text may be another one where both are so.
func (b *Book) shortened(system Digest, tools bool) *Thread {
	for _, t := range b.Threads {
		if tools && t.Kind == KindMain && ((t.System == system || t.Before == system) && (t.Summarized || !t.Open && len(t.Chain) >= manyMessages) || t.Summarized && !t.Open) {
			return t
		}
	}
	return nil
}

// answered is the thread that a request continues which begins like none: the one whose last calls it has the results of; of several, the one
// that was heard last.
func (b *Book) answered(said *reading, system Digest, tools bool) (found *Thread) {
	better := func(t *Thread) bool {
		if told := t.System == system; told != (found.System == system) {
			return told
		}
		return t.Last > found.Last
	}
	for _, t := range b.Threads {
		if tools == (t.Kind != KindSide) && said.answers(t) && (found == nil || better(t)) {
			found = t
		}
	}
	return found
}

// fewMessages may stand otherwise in a continued conversation: clients alter what they have said, such as the time.
const fewMessages = 2

// manyMessages are more than what somebody compacts at the beginning of a task.
const manyMessages = 8

// add a thread. The first that has tools is the main one.
func (b *Book) add(system Digest, tools bool) *Thread {
	b.Made++
	t := &Thread{ID: b.Made, Kind: KindSide, System: system}
	if tools {
		t.Kind = KindSub
		if !slices.ContainsFunc(b.Threads, func(t *Thread) bool { return t.Kind == KindMain }) {
			t.Kind = KindMain
		}
	}
	b.Threads = append(b.Threads, t)
	return t
}

// works says that a message continues the work, rather than asking something.
func (m Message) works() bool { return m.Role == RoleModel || len(m.Results) > 0 }

// hear a message that is new, after calls whose results have not been heard.
func (turn *Turn) hear(m Message, calls []Call, c *classifier) []Call {
	for _, r := range m.Results {
		step := Step{Call: Call{ID: r.ID}, Result: r.Text, Failure: c.failure(r)}
		if i := r.of(calls); i >= 0 {
			step.Call = calls[i]
			calls = slices.Delete(calls, i, i+1)
		}
		if len(turn.Steps) < MaxParts {
			turn.Steps = append(turn.Steps, step)
		}
	}
	if calls = append(calls, m.Calls...); len(calls) > MaxParts {
		calls = calls[len(calls)-MaxParts:]
	}
	switch {
	case m.Text.Size == 0:
	case m.Role == RoleModel:
		turn.Said = capped(turn.Said, m.Text)
	case m.Role == RoleUser:
		turn.Told = capped(turn.Told, m.Text)
	}
	return calls
}

func capped(list []Quote, q Quote) []Quote {
	if len(list) < MaxParts {
		list = append(list, q)
	}
	return list
}

// Answered says what the model has answered to the last request of a thread.
func (b *Book) Answered(thread int, a *Answer) {
	for _, t := range b.Threads {
		if t.ID == thread {
			if t.Open = len(a.Tools) > 0; t.Open { // a client asks again after an answer that has none
				t.Called = nil
			}
			for _, tool := range a.Tools {
				t.Called = append(t.Called, Sum([]byte(tool.ID)))
			}
		}
	}
}

// forget the threads that have been silent for longest where there are too many, and the bytes of threads with too many. The main one is
// remembered.
func (b *Book) forget() {
	if len(b.Threads) > MaxThreads {
		oldest := -1
		for i, t := range b.Threads {
			if t.Kind != KindMain && (oldest < 0 || t.Last < b.Threads[oldest].Last) {
				oldest = i
			}
		}
		b.Threads = slices.Delete(b.Threads, oldest, oldest+1)
	}
	recent := slices.SortedFunc(slices.Values(b.Threads), func(x, y *Thread) int { return cmp.Compare(y.Last, x.Last) })
	room := MaxHistory
	for _, t := range recent {
		if room -= len(t.list); room < 0 {
			room += len(t.list)
			t.list, t.ends = nil, nil
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import "slices"

// reading is what a request says: the digests of all messages and where each ends, and the messages but for those at the beginning that are
// known byte by byte.
type reading struct {
	list     []byte
	chain    []Digest
	ends     []int
	skipped  int
	messages []Message
	// like is the thread whose last request begins with them, and equal is how many bytes it has in common with this one; nil and 0 for none.
	like  *Thread
	equal int
	// lead is how many messages at the beginning are the system's, and tail how many at the end the request before had at its end, too.
	lead, tail int
	// parted says that the chain is not in the memory of like's chain.
	parted bool
	// calls are the calls whose results the newest messages have; nil before somebody asks.
	calls map[Digest]bool
	// held is how many bytes of results the messages from the one at oldest on have in full.
	held, oldest int
}

// maxHeld is how much of the results of a request stays in memory in full, in bytes. A request that is heard for the first time may have far more.
const maxHeld = 8 << 20

// hold the newest results in full, and of the older ones what is quoted.
func (s *reading) hold(m Message) {
	for _, r := range m.Results {
		s.held += len(r.Text.Whole)
	}
	for ; s.held > maxHeld; s.oldest++ {
		for i := range s.messages[s.oldest].Results {
			q := &s.messages[s.oldest].Results[i].Text
			s.held, q.Whole = s.held-len(q.Whole), ""
		}
	}
}

// read a request.
func (b *Book) read(r Request, tools bool) reading {
	s := reading{list: r.List()}
	// As in find: what only a side call has had was not heard by the continuing thread.
	may := func(t *Thread) bool { return !tools || t.Kind != KindSide }
	k := r.Known()
	if k.heard != b.Heard || !slices.Contains(b.Threads, k.thread) || !may(k.thread) {
		k = b.known(s.list, may)
	}
	at := 0
	if k.thread != nil {
		const more = 16 // messages of a turn
		s.like, s.equal, s.skipped = k.thread, k.equal, k.thread.has(k.equal)
		s.chain = s.like.Chain[:s.skipped]
		s.ends = append(make([]int, 0, s.skipped+more), s.like.ends[:s.skipped]...)
		at, s.lead = s.ends[s.skipped-1], min(s.like.Lead, s.skipped)
	}
	for len(s.chain) < MaxMessages {
		entry, end, ok := r.Next(at)
		if !ok {
			break
		}
		m := r.Message(entry).bounded()
		if m.Role == RoleSystem && s.lead == len(s.chain) {
			s.lead++
		}
		s.add(m.digest())
		s.messages, s.ends, at = append(s.messages, m), append(s.ends, end), end
		s.hold(m)
	}
	return s
}

// add the digest of the next message. The chain is in the memory of the thread's own for as long as it says what that says: a session would
// copy all of it with each request otherwise.
func (s *reading) add(d Digest) {
	if n := len(s.chain); s.like != nil && n < len(s.like.Chain) && !s.parted {
		if s.like.Chain[n] == d {
			s.chain = s.like.Chain[:n+1]
			return
		}
		s.part()
	}
	s.chain = append(s.chain, d)
}

// part the chain from the thread's.
func (s *reading) part() {
	const more = 16 // messages of a turn
	s.chain, s.parted = append(make([]Digest, 0, len(s.chain)+more), s.chain...), true
}

// setting is what a request says in addition to the conversation: some dialects have that at the beginning of the list.
func (s reading) setting(system Digest) Digest {
	if s.lead == 0 {
		return system
	}
	all := [][]byte{system[:]}
	for i := range s.chain[:s.lead] {
		all = append(all, s.chain[i][:])
	}
	return Sum(all...)
}

// after are the messages after the given number, and before the tail. The reader has not read messages that it knows byte by byte.
func (s reading) after(known int) []Message {
	end := len(s.messages) - s.tail
	return s.messages[min(max(known-s.skipped, 0), end):end]
}

// repeated is how many messages at the end a thread's last request had at its end, too, where others have come before them. Some clients
// repeat there what the model is to bear in mind, or how its answer begins.
func (s reading) repeated(t *Thread, same int) (n int) {
	had, has := t.Chain[t.Lead+same:], s.chain[s.lead+same:]
	if len(has) <= len(had) || s.grown(t, same) {
		return 0
	}
	for n < min(len(had), len(s.messages)) && had[len(had)-1-n] == has[len(has)-1-n] {
		n++
	}
	return n
}

// worked says that there is work in the tail, and not only what a client repeats: an answer that has begun is the last message.
func (s reading) worked() bool {
	tail := s.messages[len(s.messages)-s.tail:]
	for i, m := range tail {
		if len(m.Calls)+len(m.Results) > 0 || m.Role == RoleModel && i+1 < len(tail) {
			return true
		}
	}
	return false
}

// grown says that the last message of a thread's last request stands where it stood: whatever stands otherwise before it, what is new comes behind it.
func (s reading) grown(t *Thread, same int) bool {
	had, has := t.Chain[t.Lead+same:], s.chain[s.lead+same:]
	n := len(had)
	return n > 0 && n <= len(has) && had[n-1] == has[n-1]
}

// altered is how many messages there are up to the last one of a thread's last request, where that stands otherwise now in the same place, and has
// the results that it had; 0 where it does not. Some clients put what the model is to bear in mind into the last message, and leave it out when
// another one follows, and take old results out. If nothing follows, a result that begins otherwise is another one.
func (s reading) altered(t *Thread, same int) int {
	had, end := len(t.Chain)-t.Lead-s.tail, len(s.chain)-s.tail
	at := s.lead + had - 1
	if len(t.Results) == 0 || had <= same || at < s.skipped || at >= end {
		return 0
	}
	m := s.messages[at-s.skipped]
	if !slices.Equal(m.resultsOf(), t.Results) || at == end-1 && !slices.Equal(m.heads(), t.Heads) {
		return 0
	}
	return at + 1
}

// aligned is how many messages at the beginning stand where a thread's last request had them, whatever they say now, if the given number is the same,
// the system's apart. What comes before a message that is the same in the same place stands where it stood, and so does what comes before the
// model's answer. Fleeting is as in Turn.
func (s reading) aligned(t *Thread, same int) (n int, fleeting bool) {
	had, has := t.Chain[t.Lead:], s.chain[s.lead:]
	if s.lead != t.Lead {
		return 0, false
	}
	tail := s.reminders()
	if n = same; len(has) >= len(had) { // else something was taken out
		n = max(n, len(had)-tail)
	}
	if n > same && s.answerAt(t) != s.lead+n && !s.resulted(t, s.lead+n) {
		for n > same && had[n-1] != has[n-1] {
			n--
		}
	}
	gone := len(had) - n
	return s.lead + n, gone == tail || gone <= fewMessages && (n == len(has) || s.modelAt(s.lead+n))
}

// reminders are the tail, where there is no work in it.
func (s reading) reminders() int {
	if s.worked() {
		return 0
	}
	return s.tail
}

// modelAt says whether the message behind the given number is the model's.
func (s reading) modelAt(n int) bool {
	at := n - s.skipped
	return at >= 0 && at < len(s.messages) && s.messages[at].Role == RoleModel
}

// resulted says whether the message with a number has the results that the last one of a thread's last request had.
func (s reading) resulted(t *Thread, n int) bool {
	at := n - 1 - s.skipped
	return len(t.Results) > 0 && at >= 0 && at < len(s.messages) && slices.Equal(s.messages[at].resultsOf(), t.Results)
}

// answerAt is how many messages come before the model's answer to a thread's last request, which is known by its calls; -1 where it has none, or
// they do not follow.
func (s reading) answerAt(t *Thread) int {
	calls := 0
	for i := len(s.messages) - 1; i >= 0 && calls < MaxParts; i-- {
		calls += len(s.messages[i].Calls)
		if !slices.ContainsFunc(s.messages[i].Calls, func(c Call) bool { return slices.Contains(t.Called, Sum([]byte(c.ID))) }) {
			continue
		}
		for i > 0 && s.messages[i-1].Role == RoleModel {
			i--
		}
		return s.skipped + i
	}
	return -1
}

// results of the last message before the tail; the known ones, if that has not been read.
func (s reading) results(t *Thread) (calls, heads []Digest) {
	last := len(s.messages) - s.tail - 1
	if last < 0 {
		return t.Results, t.Heads
	}
	return s.messages[last].resultsOf(), s.messages[last].heads()
}

// answers says whether the newest messages have the result of a call of a thread's last answer.
func (s *reading) answers(t *Thread) bool {
	if len(t.Called) == 0 {
		return false
	}
	if s.calls == nil {
		s.calls = map[Digest]bool{}
		for i := len(s.messages) - 1; i >= 0 && len(s.calls) < MaxParts; i-- {
			for _, call := range s.messages[i].resultsOf() {
				s.calls[call] = true
			}
		}
	}
	return slices.ContainsFunc(t.Called, func(call Digest) bool { return s.calls[call] })
}

// compacts says that something shorter replaces what a thread's last request had, or something else replaces much of it.
func (s reading) compacts(t *Thread, same int) bool {
	rest := t.Chain[t.Lead+same : len(t.Chain)-s.tail]
	if len(rest) == 0 {
		return false
	}
	has := make(map[Digest]bool, len(s.chain))
	for _, d := range s.chain[s.lead+same:] {
		has[d] = true
	}
	missing := 0
	for _, d := range rest {
		if !has[d] {
			missing++
		}
	}
	return missing > fewMessages || missing > 0 && len(s.chain) < len(t.Chain)
}

// kept is how many messages at the beginning are not new, if the given number is the same as in a thread, the system's apart. Clients take old
// results out of what they repeat: what comes before a message that the thread has had was said before, in whatever words it stands now.
func (s reading) kept(t *Thread, same int) int {
	rest := t.Chain[t.Lead+same : len(t.Chain)-s.tail]
	if len(rest) == 0 {
		return s.lead + same
	}
	if s.grown(t, same) {
		return s.lead + same + len(rest)
	}
	had := make(map[Digest]bool, len(rest))
	for _, d := range rest {
		had[d] = true
	}
	for i := len(s.chain) - s.tail; i > s.lead+same; i-- {
		if had[s.chain[i-1]] {
			return i
		}
	}
	return s.lead + same
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// reader is a pipeline that reads each request as it is sent on, and holds what it is told against what the request before was told.
type reader struct {
	*supervisor

	t        *rapid.T
	client   client
	exchange modelproxy.Exchange
	given    []protocol.Directive
	book     directives.Book
	// last request of each agent.
	last map[string]letter
}

// letter is a request as it came and as it is sent on.
type letter struct {
	came, sent [][]byte
	// notes are after how many entries of the request as it came each note stands.
	notes map[string]int
}

func newReader(t *rapid.T, c client) *reader {
	k := &reader{supervisor: &supervisor{now: began}, t: t, client: c, last: map[string]letter{}}
	p := policy.Merge(policy.Sources{})
	terms := session.NewTerms("form", &p, "", anomaly.Compaction{})
	k.Service = steer.New(steer.Options{
		Terms: func() session.Terms { return terms }, Cache: k, Recorder: unwritten{}, Directives: k, Now: k.clock, Log: slog.New(slog.DiscardHandler),
	})
	return k
}

// Given implements steer.Directives.
func (k *reader) Given() directives.List { return k.book.Given(k.given, 0) }

// Learn implements steer.Directives.
func (k *reader) Learn(directives.News) {}

// give a directive, which the model is told with its next request.
func (k *reader) give() {
	n := len(k.given)
	k.given = append(k.given, protocol.Directive{ID: fmt.Sprint("d", n), Source: protocol.SourcePerson, Description: fmt.Sprintf("Directive number %d.", n)})
	k.book = k.book.With(k.Given().Follow())
}

// Request implements Pipeline.
func (k *reader) Request(body []byte, now time.Time) (int, []string) {
	k.set(now)
	came := k.read(body)
	sent, exchange := k.Asked(context.Background(), came)
	k.exchange = exchange
	if !came.Tools { // a question beside the conversation
		return 1, nil
	}
	is := letter{came: entries(came), sent: entries(k.read(sent)), notes: map[string]int{}}
	k.place(&is)
	who := k.who(is.came)
	if was, ok := k.last[who]; ok {
		k.compare(was, is)
	}
	k.last[who] = is
	return 1, nil
}

// work that agents are called for, and what the main one is told.
const (
	task, errand, summary = "Add a form.", "Look for part ", "Some of it is done."
)

// who has sent a request, by the task with which it begins.
func (k *reader) who(came [][]byte) string {
	for _, entry := range came {
		switch at := bytes.Index(entry, []byte(errand)); {
		case bytes.Contains(entry, []byte(task)), bytes.Contains(entry, []byte(summary)):
			return task
		case at >= 0:
			return string(entry[at : at+len(errand)+2])
		}
	}
	k.t.Fatalf("a request without a task: %s", bytes.Join(came, []byte("\n")))
	return ""
}

func (k *reader) read(body []byte) dialect.Request {
	r, err := k.client.wire().ReadRequest(bytes.Clone(body))
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func entries(r dialect.Request) (all [][]byte) {
	c, at := r.Conversation(), 0
	for {
		entry, end, ok := c.Next(at)
		if !ok {
			return all
		}
		all, at = append(all, entry), end
	}
}

// message reads an entry.
func (k *reader) message(entry []byte) conversation.Message {
	return k.read([]byte(`{"model":"m"}`)).Conversation().Message(entry)
}

// own says whether an entry is a note, and nothing else.
func (k *reader) own(entry []byte) bool {
	m := k.message(entry)
	return len(m.Results) == 0 && strings.HasPrefix(m.Text.Text, steering.Tag)
}

// place the notes of a request. None may stand between a call and its result.
func (k *reader) place(l *letter) {
	n := 0
	for i, entry := range l.sent {
		own := k.own(entry)
		if !own {
			n++
		}
		if own && i+1 < len(l.sent) && len(k.message(l.sent[i+1]).Results) > 0 {
			k.t.Fatalf("told between a call and its result: %s", bytes.Join(l.sent[:i+2], []byte("\n")))
		}
		for _, said := range notes(entry) {
			for i, note := range strings.Split(said, "\n\n"+steering.Tag) { // what is said in one place
				if i > 0 {
					note = steering.Tag + note
				}
				if _, twice := l.notes[note]; twice {
					k.t.Fatalf("told twice: %q", note)
				}
				l.notes[note] = n
			}
		}
	}
	if n != len(l.came) {
		k.t.Fatalf("%d entries came, and %d are sent on", len(l.came), n)
	}
}

// compare a request with the one before it: what was said there is said behind the same entry, unless that was one that the client repeats at the end
// of each request; and what both requests begin with, both begin with as they are sent on.
func (k *reader) compare(was, is letter) {
	common := 0
	for common < min(len(was.came), len(is.came)) && bytes.Equal(was.came[common], is.came[common]) {
		common++
	}
	for note, before := range was.notes {
		after, ok := is.notes[note]
		if !ok {
			k.t.Fatalf("said behind entry %d of %d, and gone from a request of %d: %.30q", before, len(was.came), len(is.came), note)
		}
		if before != after && !(before == len(was.came) && after == before-1 && bytes.Contains(was.came[after], []byte(reminder))) {
			k.t.Fatalf("said behind entry %d of %d, and then behind entry %d of %d: %q", before, len(was.came), after, len(is.came), note)
		}
		if before != after {
			common = min(common, after-1)
		}
	}
	if head := k.head(was, common); !bytes.Equal(head, k.head(is, common)) {
		k.t.Fatalf("both requests begin with %d entries, and are sent on with\n%s\nand\n%s", common, head, k.head(is, common))
	}
}

// head of a request as it is sent on: so many entries, with all that is said before the next one.
func (k *reader) head(l letter, entries int) []byte {
	var head []byte
	for _, entry := range l.sent {
		if !k.own(entry) {
			if entries--; entries < 0 {
				break
			}
		}
		head = append(append(head, entry...), '\n')
	}
	return head
}

// Answer implements Pipeline.
func (k *reader) Answer(r reply, now time.Time) {
	k.set(now)
	in := conversation.NewReader(k.client.wire().Answer(), strings.HasPrefix(r.kind, "text/event-stream"))
	in.Write(r.body)
	k.exchange.Answered(in.Close(), defaultWindow)
}

// Signals implements Pipeline.
func (k *reader) Signals(Signals, time.Time) {}

// Findings implements Pipeline.
func (k *reader) Findings(time.Time) []Finding { return nil }

// Close implements Pipeline.
func (k *reader) Close() {}

const reminder = "Keep to the plan, and answer briefly."

// TestNotesStay: whatever of the conversation a client says otherwise in the next request, what was said to the model stands behind the same entry in
// all later ones, until the client compacts the conversation.
func TestNotesStay(t *testing.T) {
	ways := map[string]func(t *rapid.T, a *agent){
		"plain":    func(*rapid.T, *agent) {},
		"clears":   func(t *rapid.T, a *agent) { a.prune(rapid.IntRange(1, 6).Draw(t, "kept")) },
		"reminds":  func(_ *rapid.T, a *agent) { a.reminder = strings.TrimPrefix(reminder, a.reminder) },
		"the time": func(_ *rapid.T, a *agent) { a.clock = true },
	}
	for way, alters := range ways {
		t.Run(way, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := clients()[rapid.IntRange(0, len(clients())-1).Draw(t, "client")]
				c.prunes = true
				k := newReader(t, c)
				play(Run{Name: way + " " + c.name, client: c, seed: rapid.Uint64().Draw(t, "seed"), play: func(a *agent) {
					a.task(task)
					a.do(read(file(0)))
					a.do(read(file(1)))
					for i := range rapid.IntRange(4, 20).Draw(t, "turns") {
						if rapid.IntRange(0, 3).Draw(t, "alters") == 0 {
							alters(t, a)
						}
						k.turn(t, a, i)
					}
				}}, k)
			})
		})
	}
}

// turn of an agent, drawn.
func (k *reader) turn(t *rapid.T, a *agent, i int) {
	if rapid.IntRange(0, 3).Draw(t, "directive") == 0 {
		k.give()
	}
	switch rapid.IntRange(0, 15).Draw(t, "turn") {
	case 0, 1:
		a.do(read(file(i)), read(file(i+1)), search("form"))
	case 2, 3:
		a.do(edit(file(i), fmt.Sprint("a", i), fmt.Sprint("b", i)))
	case 4:
		a.side("What now?")
		a.do(run("make test").gives("ok"))
	case 5:
		a.say("Done.")
		a.task("Go on.")
	case 6:
		a.ask(false)
		a.answer(said{text: "I will", half: true})
	case 7:
		a.do(action{verb: delegates, path: fmt.Sprintf("%s%02d", errand, i), steps: []func(*agent){func(b *agent) { b.do(read(file(i))) }, func(b *agent) { b.say("Found.") }}})
	case 8:
		a.compact(fmt.Sprintf("%s The rest is in file %d.", summary, i))
		k.last = map[string]letter{}
		a.do(run("make test").gives("ok"))
	default:
		a.do(run("make build").fails(2, "main.go:3:8: package shop/internal/gone is not in std"))
	}
}

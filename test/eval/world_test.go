// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Run is one labelled run.
type Run struct {
	Name, Family string
	client       client
	// kinds that may be reported, the one that says best what is wrong first; none for a healthy run.
	kinds []kind
	// window of the model in tokens; 0 for what most have.
	window int64
	// seed of what is drawn, and noise how often something else is done between two steps.
	seed  uint64
	noise float64
	// streams says that what the run is about can be seen in a stream alone.
	streams bool
	play    func(*agent)
}

// whole says that the client of a run wants its answers as documents rather than streams, as those of every fourth run do.
func (r Run) whole() bool { return !r.streams && number(r.Name)%4 == 0 }

// report of a kind, when it was first made.
type report struct {
	kind     kind
	turn     int
	at       time.Time
	evidence string
}

// message to an agent, at the end of a request.
type message struct {
	thread, turn int
	texts        []string
}

// heard are the turns of a conversation, and the entries of its last request.
type heard struct{ turns, entries int }

// verdict is what came out of a run.
type verdict struct {
	run     Run
	reports []report
	// turn and time at which somebody looking on would have seen that something is wrong; turn 0 for a healthy run.
	turn int
	at   time.Time
	// onset is the turn after which it is wrong.
	onset int
	// hung says that it is seen by the time that passes, without turns.
	hung bool
	// turns and requests of the run.
	turns, requests int
	// told is what the agent was told, by request.
	told []message
	// strays are requests that the pipeline took for those of another conversation.
	strays []string
}

// world is where a run happens: the clock, the files and what the watchdog sees.
type world struct {
	run      Run
	pipeline Pipeline
	now      time.Time
	random   *rand.Rand
	files    map[string]string
	// tree is the state of the files, captured that of the last checkpoint, and told the one that the watchdog has heard of.
	tree, captured, told uint64
	cpu                  time.Duration
	printed              int64
	children             int
	verdict              verdict
	seen                 map[kind]bool
	made                 int
	// owners are the agents by the number of their conversation.
	owners map[int]*agent
	// heard is what has come of each conversation.
	heard map[int]heard
	// invalid says that checkpoints are refused.
	invalid bool
	// beat is when the watchdog looked at the processes last.
	beat time.Time
	// idle says that the agent has ended its turn, and that nobody has told it anything since.
	idle bool
}

// began is when every run begins.
var began = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// step is how often the watchdog looks at processes and files.
const step = 30 * time.Second

func play(r Run, p Pipeline) verdict {
	w := &world{
		run: r, pipeline: p, now: began, random: rand.New(rand.NewPCG(r.seed, number(r.Name))),
		files: map[string]string{}, seen: map[kind]bool{}, owners: map[int]*agent{}, heard: map[int]heard{}, verdict: verdict{run: r},
	}
	w.beat = w.now
	a := w.agent("main")
	w.signal(true)
	r.play(a)
	return w.verdict
}

// signal tells the watchdog of files and, where it is due, of processes, and asks what it has found. Files are captured when it is due.
func (w *world) signal(due bool) {
	if due {
		w.captured, w.beat = w.tree, w.now
	}
	s := Signals{Tree: fmt.Sprintf("%016x", w.captured), Changed: w.tree != w.told, Verdict: "Valid", Pulse: due, CPU: w.cpu, Processes: 1 + w.children, Output: w.printed, Idle: w.idle}
	if w.invalid {
		s.Verdict = "Invalid"
	}
	w.told = w.tree
	w.pipeline.Signals(s, w.now)
	w.look()
}

// pass some time in which processes use so many cores and print so many bytes a second.
func (w *world) pass(d time.Duration, cores float64, printing int64) {
	for d > 0 {
		part := min(d, step-w.now.Sub(w.beat))
		w.now = w.now.Add(part)
		w.cpu += time.Duration(float64(part) * cores)
		w.printed += int64(part.Seconds() * float64(printing))
		if d -= part; w.now.Sub(w.beat) >= step {
			w.signal(true)
		}
	}
}

// look at what is found.
func (w *world) look() {
	for _, f := range w.pipeline.Findings(w.now) {
		if w.seen[f.Kind] {
			continue
		}
		w.seen[f.Kind] = true
		w.verdict.reports = append(w.verdict.reports, report{f.Kind, w.verdict.turns, w.now, f.Evidence})
	}
}

// request of a conversation, as its client sends it.
func (w *world) request(t *talk) []byte {
	body := w.run.client.body(w, t)
	if w.run.whole() { // what stands in a text has its quotes escaped
		body = bytes.Replace(body, []byte(`"stream":true`), []byte(`"stream":false`), 1)
	}
	return body
}

// reply of the model.
func (w *world) reply(s said) reply {
	r := reply{status: http.StatusOK, kind: "text/event-stream", half: s.half}
	if !w.run.whole() {
		r.body = w.run.client.stream(w, s)
		return r
	}
	r.kind, r.body = "application/json", w.run.client.whole(w, s)
	if s.half {
		r.body = r.body[:len(r.body)/2]
	}
	return r
}

// change a file.
func (w *world) change(path, state string) {
	w.files[path] = state
	names := make([]string, 0, len(w.files))
	for p, s := range w.files {
		if s != "" {
			names = append(names, p+"\x00"+s)
		}
	}
	slices.Sort(names)
	w.tree = 0
	for _, n := range names {
		w.tree = w.tree*1099511628211 + number(n)
	}
}

// id of something, which no other has.
func (w *world) id(prefix string) string {
	w.made++
	return fmt.Sprintf("%s_%012x", prefix, number(fmt.Sprint(w.run.Name, w.run.seed, w.made))>>16)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// spent is how many bytes and objects something allocates. Time would depend on what else the machine does.
func spent(f func()) (size, objects float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc), float64(after.Mallocs - before.Mallocs)
}

// conversationOf gives a body with so many messages, each with so much text.
func conversationOf(c client, messages, text int) (body []byte, t *talk, w *world) {
	w = &world{run: Run{Name: "hostile", client: c}, random: rand.New(rand.NewPCG(1, 1))}
	t = &talk{role: "main", system: c.system("main"), tools: true, entries: append(c.lead(), &entry{role: "user", text: "Go."})}
	for i := len(t.entries); i < messages; i += 2 {
		grow(c, w, t, i, text)
	}
	return c.body(w, t), t, w
}

func grow(c client, w *world, t *talk, i, text int) {
	name, arguments, output, _ := c.tool(w, run(fmt.Sprint("make ", i)).gives("%s", strings.Repeat("x", text)))
	id := w.id("call")
	t.entries = append(t.entries, &entry{role: "model", calls: []call{{id, name, arguments}}}, &entry{role: "user", results: []result{{id: id, text: output}}})
}

// hear all of it, as the watchdog's proxy does: the request, an answer and what is found. A proxy hears no request as large as those here.
func hear(s *supervisor, c client, w *world, body []byte) {
	r, err := c.wire().ReadFurther(body, nil, nil, s.Known)
	if err != nil {
		panic(err)
	}
	_, exchange := s.Asked(context.Background(), r)
	in := conversation.NewReader(c.wire().Answer(), true)
	in.Write(c.stream(w, said{text: "Well.", usage: 100}))
	exchange.Answered(in.Close(), defaultWindow)
	s.Pulse(protocol.RunnerPulse{})
	s.Conversation()
}

// TestHostileConversations: what supervision costs grows with what is said and no faster, and one more turn of a long conversation costs
// what one of a short one does.
func TestHostileConversations(t *testing.T) {
	const few, times = 2_500, 4
	for _, c := range clients() {
		all := map[int][2]float64{}
		turn := map[int]float64{}
		for _, n := range []int{few, times * few} {
			body, talk, w := conversationOf(c, n, 100)
			p := newSupervisor(configuration{}, c)
			size, objects := spent(func() { hear(p, c, w, body) })
			all[n] = [2]float64{size, objects}
			grow(c, w, talk, n, 100)
			body = c.body(w, talk)
			_, turn[n] = spent(func() { hear(p, c, w, body) })
		}
		atMost(t, c.name+", bytes by messages", all[times*few][0]/all[few][0], times*1.5)
		atMost(t, c.name+", objects by messages", all[times*few][1]/all[few][1], times*1.5)
		atMost(t, c.name+", objects of one more turn", turn[times*few]/turn[few], 1.5)

		var sizes, depths, changes [2]float64
		for i, n := range []int{1, times} {
			body, _, w := conversationOf(c, 8, n<<21)
			sizes[i], _ = spent(func() { hear(newSupervisor(configuration{}, c), c, w, body) })
			deep := strings.Repeat("[", 2_000*n) + strings.Repeat("]", 2_000*n)
			body = []byte(`{"model":"m","tools":[1],"messages":[{"role":"user","content":` + deep + `}],"input":[{"role":"user","content":` + deep + `}]}`)
			depths[i], _ = spent(func() { hear(newSupervisor(configuration{}, c), c, w, body) })
			// Each request says something else in its second message, so that all that follows it is another history.
			body, talk, w := conversationOf(c, few*n, 100)
			p := newSupervisor(configuration{}, c)
			hear(p, c, w, body)
			talk.entries[len(c.lead())] = &entry{role: "user", text: "Go on."}
			body = c.body(w, talk)
			changes[i], _ = spent(func() { hear(p, c, w, body) })
		}
		atMost(t, c.name+", bytes by the size of a message", sizes[1]/sizes[0], times*1.5)
		atMost(t, c.name+", bytes by the depth of JSON", depths[1]/depths[0], times*1.5)
		atMost(t, c.name+", bytes of another history", changes[1]/changes[0], times*1.5)
	}
}

func atMost(t *testing.T, what string, ratio, most float64) {
	t.Helper()
	t.Logf("%s: %.2f times as many", what, ratio)
	if ratio > most {
		t.Errorf("%s: %.2f times as many, want at most %.1f", what, ratio, most)
	}
}

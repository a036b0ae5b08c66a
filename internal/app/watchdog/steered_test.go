// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// model answers every request with the same words, and keeps what it was asked.
type model struct {
	mu    sync.Mutex
	asked []string
}

// ServeHTTP is a gateway's.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
	case r.URL.Path == protocol.AllowancePath:
		http.NotFound(w, r)
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		m.mu.Lock()
		m.asked = append(m.asked, string(body))
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","model":"large","content":[{"type":"tool_use","id":"x","name":"Read","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}`)
	}
}

// told is the newest request, where that tells the agent something; else "".
func (m *model) told() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.asked); n > 0 && strings.Contains(m.asked[n-1], "[SUPERVISOR]") {
		return m.asked[n-1]
	}
	return ""
}

// circling is an agent that reads the same file again and again, until it is told so. The test asks models in its place.
type circling struct {
	*world

	model   *model
	run     *pod
	entries []string
	// file that it reads, and the tool for that.
	file, tool string
	// fails says that the tool does: a success that repeats takes no tools away.
	fails bool
}

// newCircling starts it.
func newCircling(t *testing.T, probe func(string) error) *circling {
	c := &circling{world: newWorld(t, "", seldom), model: &model{}, entries: []string{`{"role":"user","content":"Add a login page."}`}, file: "web/index.html", tool: "Read"}
	c.models = addresses.Free()
	c.run, _ = c.withModels(c.model, probe)
	return c
}

// ask once, and read the file. Without an answer, the next request is the same.
func (c *circling) ask() error {
	body := `{"model":"m","max_tokens":9,"messages":[` + strings.Join(c.entries, ",") + `],"tools":[{"name":"` + c.tool + `"}]}`
	answer, err := http.Post("http://"+c.models+"/anthropic/v1/messages", "application/json", strings.NewReader(body)) //nolint:noctx // it ends with the watchdog
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %w", answer.StatusCode, err)
	}
	id := fmt.Sprint("call_", len(c.entries))
	c.entries = append(c.entries,
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":{"file_path":%q}}]}`, id, c.tool, c.file),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"<h1>Shop</h1>","is_error":%t}]}`, id, c.fails))
	return nil
}

// untilTold asks until it was told, or there is no answer.
func (c *circling) untilTold() error {
	for range 12 {
		if err := c.ask(); err != nil || c.model.told() != "" {
			return err
		}
	}
	return errors.New("it was not told")
}

// steered are the steps of steering in the journal.
func (w *world) steered() (steps []protocol.SteeringStep) {
	w.t.Helper()
	records, _ := w.recorded()
	for _, r := range records {
		if r.Steered != nil {
			steps = append(steps, *r.Steered)
		}
	}
	return steps
}

// TestSteeringIsHandedOver: what the agent was told, in which request, and that it is over are in the journal, and each is handed over to the
// gateway's ledger, though the watchdog ends between the two.
func TestSteeringIsHandedOver(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"handed over", "handover noted"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			c := newCircling(t, pullAt(step, 1))
			asked := c.untilTold() // the plug may be pulled before there is an answer
			if err := c.run.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("watchdog: %v; %v", err, asked)
			}
			c.run.resume(false)
			c.eventually("it has an answer", func() bool { return asked == nil || c.ask() == nil })
			told := sha256.Sum256([]byte(c.model.told()))
			c.signal("end")
			wantFinal(t, c.run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			steps := c.steered()
			if len(steps) != 1 || steps[0].Sequence != 1 || steps[0].Task != "login" || steps[0].Attempt != 1 || steps[0].Request != hex.EncodeToString(told[:]) ||
				steps[0].Anomaly != "AgentLooping" || steps[0].Rung != "Nudge" || steps[0].Channel != protocol.ChannelRequest || !strings.HasPrefix(steps[0].Message, "[SUPERVISOR]") {
				t.Fatalf("%+v", steps)
			}
			if diff := cmp.Diff(map[int64]protocol.SteeringStep{1: steps[0]}, c.ledger.steered()); diff != "" {
				t.Errorf("the ledger has something else than the journal (-journal +ledger):\n%s", diff)
			}
			c.wantHandedOver()
			if lines := c.lines("steering"); len(lines) > 0 { // it was told in its request
				t.Errorf("told twice: %q", lines)
			}
		})
	}
}

// TestAnAgentThatWasToldIsRecovering, until its anomaly is over or it ends.
func TestAnAgentThatWasToldIsRecovering(t *testing.T) {
	t.Parallel()
	c := newCircling(t, nil)
	if err := c.untilTold(); err != nil {
		t.Fatal(err)
	}
	state := func(want string) func() bool {
		return func() bool { s := c.intake.Status(); return s.State == want }
	}
	c.eventually("it is recovering", state(protocol.StateRecovering))
	c.signal("end")
	wantFinal(t, c.run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	c.eventually("it is complete", state(protocol.StateComplete))
}

// lines of a type that the agent was sent, by the journal.
func (w *world) lines(kind string) (lines []string) {
	w.t.Helper()
	records, _ := w.recorded()
	for _, r := range records {
		if r.Told != nil && strings.Contains(r.Told.Text, fmt.Sprintf(`"type":%q`, kind)) {
			lines = append(lines, r.Told.Text)
		}
	}
	return lines
}

// wantToldBy: the agent was told of a workspace that goes back and forth by a channel, as the ledger has it, too.
func (w *world) wantToldBy(channel string) {
	w.t.Helper()
	steps := w.steered()
	if len(steps) == 0 || steps[0].Channel != channel || steps[0].Anomaly != "AgentLooping" || steps[0].Detector != "reversal" || steps[0].Rung != "Nudge" || steps[0].Request != "" {
		w.t.Fatalf("%+v", steps)
	}
	want := map[int64]protocol.SteeringStep{}
	for _, x := range steps {
		want[x.Sequence] = x
	}
	if diff := cmp.Diff(want, w.ledger.steered()); diff != "" {
		w.t.Errorf("the ledger has something else than the journal (-journal +ledger):\n%s", diff)
	}
}

// TestAnAgentWithoutModelsIsToldByALine: one that asks no model, and whose files go back and forth, is told on its standard input, once; and a
// watchdog that ends before it has done so does it when it begins anew.
func TestAnAgentWithoutModelsIsToldByALine(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"", "handed over"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `exec 3<&0; cat <&3 > "$HOME/lines" & n=0
				until grep -q '"type":"steering"' "$HOME/lines"; do echo $((n % 2)) > web/a.html; n=$((n + 1)); sleep 0.2; done
				echo done > web/a.html; kill $!`, keen)
			p := w.crashesAt(step, 3)
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantToldBy(protocol.ChannelInput)
			if lines := w.lines("steering"); len(lines) != 1 || !strings.Contains(lines[0], `"step":1,"anomaly":"AgentLooping"`) || !strings.Contains(lines[0], "[SUPERVISOR] the workspace went back to an earlier state") {
				t.Errorf("%q", lines)
			}
			w.wantHandedOver()
		})
	}
}

// TestAnAgentWithoutModelsIsToldByItsTools: in Deterministic mode, it is told beside the result of a tool, once.
func TestAnAgentWithoutModelsIsToldByItsTools(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()
	told := 0
	now := ""
	for n := range 8 {
		patch, next := newFile("web/a.html", "0"), fmt.Sprint(n%2)
		if now != "" {
			patch = fmt.Sprintf("diff --git a/web/a.html b/web/a.html\n--- a/web/a.html\n+++ b/web/a.html\n@@ -1 +1 @@\n-%s\n+%s\n", now, next)
		}
		now = next
		text, ok := c.try("repo_apply_patch", map[string]any{"operation_id": fmt.Sprint("op", n), "patch": patch})
		if !ok || !strings.Contains(text, `"status":"applied"`) {
			t.Fatal(text)
		}
		if strings.Contains(text, "[SUPERVISOR] the workspace went back to an earlier state") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantToldBy(protocol.ChannelTools)
	if lines := w.lines("steering"); len(lines) > 0 {
		t.Errorf("told twice: %q", lines)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Script has a model's answers, turn by turn. It stands in the first message that has one, between a line ```script and
// a line ```; so a Feature's prompt brings its own. After the last turn the model says that it is done. A conversation that has one tool, which
// it has to call, plays the script between a line ```script TOOL and a line ```.
type Script struct {
	Turns []Turn `json:"turns"`
	// Plain turns have only the manners that they name.
	Plain bool `json:"plain,omitempty"`
}

// Turn is one answer.
type Turn struct {
	// Text that the model says; before a tool call as well.
	Text string `json:"text,omitempty"`
	// Thinking before that, in the form of the dialect. The provider takes it back only as it was.
	Thinking string `json:"thinking,omitempty"`
	// Run calls the agent's shell with a command, whatever that tool is called.
	Run string `json:"run,omitempty"`
	// Yield is how long Codex waits for that command before it continues without it; 0 means 10 seconds.
	Yield Duration `json:"yield,omitempty"`
	// Tool calls a tool by its name; the offered name may begin with the name of its server.
	Tool *Call `json:"tool,omitempty"`
	// Tools calls several in one answer.
	Tools []Call `json:"tools,omitempty"`
	// Until the conversation holds this text, the model waits: it runs a sleep, or While again and again. The sleep is long enough to be taken for
	// one by the supervisor.
	Until string `json:"until,omitempty"`
	While string `json:"while,omitempty"`
	// Fail instead, the first times.
	Fail *Failure `json:"fail,omitempty"`
	// Cut breaks the stream off in the middle, the first time.
	Cut Cut `json:"cut,omitempty"`
	// Delay before the first byte of the answer, Silence after the first event, and Pause between two parts. Slow is how often there is a delay; always
	// where it is 0.
	Delay   Duration `json:"delay,omitempty"`
	Slow    int      `json:"slow,omitempty"`
	Silence Duration `json:"silence,omitempty"`
	Pause   Duration `json:"pause,omitempty"`
	// Stop is why the answer ends, in the words of the dialect: pause_turn, max_tokens, refusal, length, content_filter, max_output_tokens.
	Stop string `json:"stop,omitempty"`
	// Output is how many tokens the answer reports; 0 means 10. Cache is how many of the request come from a cache and go to one.
	Output int    `json:"output,omitempty"`
	Cache  *Cache `json:"cache,omitempty"`
	// Manners of the provider in this turn; an empty list is for none.
	Manners []Manner `json:"manners,omitempty"`
}

// Cache of prompts, in tokens of a request: read from it, and written to it for five minutes and for an hour.
type Cache struct {
	Read      int `json:"read,omitempty"`
	Write     int `json:"write,omitempty"`
	WriteHour int `json:"writeHour,omitempty"`
}

// Cut is the place at which a stream breaks off.
type Cut string

// Places in the third event: before it, in the middle of it, and in the middle of a character. End is the same as before it, but the
// connection ends cleanly.
const (
	CutBefore    Cut = "before"
	CutEvent     Cut = "event"
	CutCharacter Cut = "character"
	CutEnd       Cut = "end"
)

// UnmarshalJSON reads it; true is the same as before.
func (c *Cut) UnmarshalJSON(text []byte) error {
	switch Cut(strings.Trim(string(text), `"`)) {
	case "true":
		*c = CutBefore
	case "false":
		*c = ""
	case CutBefore, CutEvent, CutCharacter, CutEnd:
		*c = Cut(strings.Trim(string(text), `"`))
	default:
		return fmt.Errorf("cut: %s is none of true, before, event, character and end", text)
	}
	return nil
}

// Call of a tool.
type Call struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Failure of a provider.
type Failure struct {
	Status int `json:"status"`
	// Times that it fails; 0 means 1.
	Times int `json:"times,omitempty"`
	// RetryAfter in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
}

// Duration such as 1.5s.
type Duration time.Duration

// UnmarshalJSON reads it.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	*d = Duration(parsed)
	return err
}

const (
	// waiting marks the command of a turn that waits, and without begins the answer to a request that lets no tool be called. Neither of
	// these turns is counted.
	waiting = " # the script waits"
	without = "I have no tools in this turn and go on when I have them."
	// none is the tool_choice of such a request.
	none = "none"
)

const (
	fence  = "```script"
	finish = "\n```"
)

// opening is the line before the script of a conversation.
func (c *conversation) opening() string {
	if c.forced && len(c.tools) == 1 {
		return fence + " " + c.tools[0] + "\n"
	}
	return fence + "\n"
}

// names says whether a tool_choice of OpenAI's dialects names a tool.
func names(choice any) bool {
	_, is := choice.(map[string]any)
	return is
}

// find the script of a conversation, and an ID of it.
func find(c *conversation) (Script, string, error) {
	for _, text := range c.texts {
		_, rest, found := strings.Cut(text, c.opening())
		if !found {
			continue
		}
		body, _, _ := strings.Cut(rest, finish)
		var s Script
		if err := yaml.UnmarshalStrict([]byte(body), &s); err != nil {
			return s, "", fmt.Errorf("script: %w", err)
		}
		for _, t := range s.Turns {
			for _, m := range t.Manners {
				if !known(m) {
					return s, "", fmt.Errorf("script: no manner is called %q", m)
				}
			}
		}
		sum := sha256.Sum256([]byte(body))
		return s, hex.EncodeToString(sum[:8]), nil
	}
	return Script{}, noScript, nil
}

// noScript is the ID of conversations without one.
const noScript = "none"

// turn that a conversation has come to. A side call without tools gets a title. Where no tool may be called, a turn that calls some is left for
// the next request.
func (s Script) turn(c *conversation) Turn {
	if len(c.tools) == 0 {
		return Turn{Text: "Work on a task"}
	}
	t := s.next(c)
	if c.bare && len(t.calls(c)) > 0 {
		t.Text, t.Run, t.Tool, t.Tools, t.Until = strings.TrimSpace(without+" "+t.Text), "", nil, nil, ""
	}
	return t
}

// next turn, whatever may be called.
func (s Script) next(c *conversation) Turn {
	waited := 0
	for _, text := range c.texts {
		if !strings.Contains(text, "[SUPERVISOR]") { // which may quote a command
			waited += strings.Count(text, waiting+`"`) + strings.Count(text, without) // with what follows in a call: some clients quote it in the result
		}
	}
	i := c.turns - waited
	if i < 0 || i >= len(s.Turns) {
		return Turn{Text: "Done."}
	}
	t := s.Turns[i]
	if t.Until != "" && !slices.ContainsFunc(c.texts[1:], func(text string) bool {
		return strings.Contains(text, t.Until) && !strings.Contains(text, fence+"\n")
	}) {
		// Some clients end themselves where a call is the same five times: a sleep says how often the script has waited.
		return Turn{Run: cmp.Or(t.While, fmt.Sprintf("sleep 5; : %d", waited)) + waiting, Until: t.Until}
	}
	return t
}

// namespaced is between the name of a group of tools, in dialects that have such groups, and that of one of them.
const namespaced = "/"

// calls of tools in a turn.
func (t Turn) calls(c *conversation) []Call {
	if t.Run != "" {
		call, _ := t.shell(c)
		return []Call{call}
	}
	calls := slices.Clone(t.Tools)
	if t.Tool != nil {
		calls = append(calls, *t.Tool)
	}
	for i := range calls {
		for _, tool := range c.tools {
			if strings.HasSuffix(tool, "_"+calls[i].Name) || strings.HasSuffix(tool, namespaced+calls[i].Name) {
				calls[i].Name = tool
			}
		}
	}
	return calls
}

// shell calls the agent's shell, and says whether it is offered.
func (t Turn) shell(c *conversation) (call Call, offered bool) {
	name := "Bash"
	for _, tool := range c.tools {
		if slices.Contains([]string{"bash", "shell", "exec_command", "run_shell_command"}, strings.ToLower(tool)) {
			name, offered = tool, true
		}
	}
	input := object{"command": t.Run, "description": "Run a command"}
	if name == "exec_command" {
		input = object{"cmd": t.Run}
		if t.Yield > 0 {
			input["yield_time_ms"] = time.Duration(t.Yield).Milliseconds()
		}
	}
	return Call{Name: name, Input: encode(input)}, offered
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/core/worker"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelclient"
)

// Run works on a task until it is complete. The error says why it is not.
func Run(ctx context.Context, o Options) error {
	t := &toolbox{options: o}
	defer t.close()
	w := &work{options: o, models: newModels(o), tools: t}
	if err := w.begin(ctx); err != nil {
		return err
	}
	for {
		done, err := w.turn(ctx)
		if done || err != nil {
			return err
		}
	}
}

// newModels asks on the pod's loopback: no proxy is between.
func newModels(o Options) *modelclient.Client {
	return modelclient.New(modelclient.Options{
		URL: o.Models, Speech: o.Speech, Transport: &http.Transport{DisableCompression: true}, Agent: "tidewaiter-worker", Call: o.Call, Sleep: o.Sleep, Log: o.Log,
	})
}

// work on a task.
type work struct {
	options Options
	models  *modelclient.Client
	tools   *toolbox
	loop    *worker.Loop
	request speech.Request
	turns   int
}

// begin tells the model what there is to do, and by which tools.
func (w *work) begin(ctx context.Context) error {
	list, instructions, err := w.tools.list(ctx)
	if err != nil {
		return err
	}
	text, failed, err := w.tools.call(ctx, worker.ToolContext, json.RawMessage("{}"))
	if err == nil && failed {
		err = errors.New(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", worker.ToolContext, err)
	}
	w.request = speech.Request{System: worker.Instructions + "\n\n" + instructions, Tools: list, MaxOutput: w.options.Bounds.MaxOutput}
	w.loop = worker.NewLoop(w.options.Bounds, strings.TrimSpace(w.options.Task)+"\n\n"+worker.ToolContext+" says:\n"+circumstances(text))
	w.options.Log.InfoContext(ctx, "The task begins", "dialect", w.options.Speech.Dialect.Name, "tools", len(list), "window", w.options.Bounds.Window)
	return nil
}

// circumstances are what feature_get_context says in addition to the task itself, which the model has got.
func circumstances(text string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return text
	}
	delete(all, "prompt")
	delete(all, "instructions")
	delete(all, "directives") // the model gets them in its conversation
	rest, err := json.Marshal(all)
	if err != nil {
		return text
	}
	return string(rest)
}

// turn asks the model once and does what it says. Done says that the task is complete.
func (w *work) turn(ctx context.Context) (done bool, err error) {
	w.turns++
	answer, sent, err := w.ask(ctx)
	if err != nil {
		return false, err
	}
	w.options.Log.InfoContext(ctx, "The model has answered", "turn", w.turns, "sent", sent, "stop", string(answer.Stop), "calls", len(answer.Message.Calls),
		"input", answer.Usage.Input, "cached", answer.Usage.Cached, "output", answer.Usage.Output)
	next := w.loop.Hear(answer, sent)
	switch {
	case next.Fail != "":
		return false, errors.New(next.Fail)
	case next.Say != "":
		w.loop.History.Add(speech.Message{Text: next.Say})
		return false, nil
	}
	return w.calls(ctx, next.Calls)
}

// ask the model with as much of the conversation as fits.
func (w *work) ask(ctx context.Context) (answer speech.Answer, sent int, err error) {
	body, err := w.fit(ctx, w.loop.Room())
	if err != nil {
		return answer, 0, err
	}
	answer, err = w.models.Ask(ctx, body)
	var failed *modelclient.Trouble
	if errors.As(err, &failed) && failed.Speaks != nil && failed.Speaks.Dialect.Name != w.models.Speech().Dialect.Name {
		// The policy names another backend than when this agent was started.
		w.options.Log.WarnContext(ctx, "The backend speaks another dialect: continuing in that", "dialect", failed.Speaks.Dialect.Name, "error", failed.Error())
		w.models.Speak(*failed.Speaks)
		w.loop.History.Plain() // what was said in another dialect's own words is said in plain ones
		if body, err = w.fit(ctx, w.loop.Room()); err != nil {
			return answer, 0, err
		}
		answer, err = w.models.Ask(ctx, body)
	}
	if !errors.As(err, &failed) || !failed.TooLarge() {
		return answer, len(body), err
	}
	gone, plain := w.loop.History.Drop(len(body)/2), false
	if gone == 0 {
		if plain = w.loop.History.Plain(); !plain {
			return answer, 0, err
		}
	}
	w.options.Log.WarnContext(ctx, "The model does not take the conversation: asking once more with less", "bytes", len(body), "dropped", gone, "plain", plain, "error", err.Error())
	w.request.Messages = w.loop.History.Messages()
	if body, err = w.models.Speech().Body(w.request); err != nil {
		return answer, 0, err
	}
	answer, err = w.models.Ask(ctx, body)
	return answer, len(body), err
}

// fit gives the body of a request that has room. If it has not, a third is dropped at once, because what the provider has
// kept of the conversation is of no use after it.
func (w *work) fit(ctx context.Context, room int) ([]byte, error) {
	w.request.Messages = w.loop.History.Messages()
	body, err := w.models.Speech().Body(w.request)
	if err != nil || len(body) <= room {
		return body, err
	}
	gone := w.loop.History.Drop(len(body) - room*2/3)
	w.options.Log.WarnContext(ctx, "The conversation is too long: dropping old answers of tools", "bytes", len(body), "room", room, "dropped", gone)
	if body, err = w.models.Speech().Body(w.request); err == nil && len(body) > room {
		err = fmt.Errorf("the conversation has %d bytes, and the model takes about %d (its context window has %d tokens). Split the task, or choose a model with a larger window",
			len(body), room, w.options.Bounds.Window)
	}
	return body, err
}

// calls tools, one after the other: a later one may need what an earlier one has done.
func (w *work) calls(ctx context.Context, calls []speech.Call) (done bool, err error) {
	message := speech.Message{}
	for _, c := range calls {
		result, refused := worker.Refuse(c)
		if !refused && c.Name == worker.ToolComplete {
			var complete bool
			result, complete = worker.Complete(c, message.Results)
			refused = !complete
		}
		if !refused {
			if result, err = w.call(ctx, c, w.loop.Share(len(calls))); err != nil {
				return false, err
			}
		}
		w.options.Log.InfoContext(ctx, "Called a tool", "turn", w.turns, "tool", c.Name, "failed", result.Failed, "bytes", len(result.Text))
		if c.Name == worker.ToolComplete && !result.Failed {
			return true, nil
		}
		message.Results = append(message.Results, result)
	}
	w.loop.History.Add(message)
	return false, nil
}

func (w *work) call(ctx context.Context, c speech.Call, most int) (speech.Result, error) {
	call := func() (string, bool, error) { return w.tools.call(ctx, c.Name, c.Arguments) }
	if c.Name == worker.ToolQuestion {
		call = func() (string, bool, error) { return w.tools.asked(ctx, c.Arguments) }
	}
	text, failed, err := call()
	if err != nil {
		return speech.Result{}, err
	}
	return worker.Answered(c, text, failed, most), nil
}

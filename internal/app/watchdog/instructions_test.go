// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// reader is a runtime whose agents find the text about their task on standard input.
type reader struct{ abacus }

func (reader) Launch(t runtimes.Task) runtimes.Launch {
	text := t.Text()
	return runtimes.Launch{Argv: t.Command, Env: append([]string{"HOME=" + t.Home}, t.Env...), Input: &text}
}

// deaf is a runtime whose agents get no directive: they take no text, no lines, and call no model.
type deaf struct{ abacus }

func (deaf) Launch(t runtimes.Task) runtimes.Launch {
	return runtimes.Launch{Argv: t.Command, Env: append([]string{"HOME=" + t.Home}, t.Env...), Input: new("")}
}

// readers is a world with two tasks, whose agents keep what they are told.
func readers(t *testing.T) *world {
	w := newWorld(t, `cat > "web/$(basename "$TIDEWAITER_TASK").txt"`, seldom, func(o *protocol.Orders) {
		o.Agent.Runtime, o.Prompt = "reader", "Shop."
		o.Tasks = []protocol.Task{{Name: "page/form", Instructions: "The form."}, {Name: "page/save", Instructions: "The store."}}
	})
	w.runtimes = []runtimes.Runtime{{Name: "reader", Available: true, Interactive: true, Adapter: reader{}}}
	return w
}

// wantReaders holds what the agents of two tasks were told, in the repository of the world.
func (w *world) wantReaders() {
	w.t.Helper()
	told := func(task string) string {
		_, text, _ := strings.Cut(w.delivered("web/"+task+".txt"), "\n## CURRENT MILESTONE\n")
		return text
	}
	const milestone = "\nMilestone page, 1 of 1. Your task is %s. The tasks of the milestone:\n- form: %s\n- save: %s\n"
	for task, want := range map[string]string{
		"form": fmt.Sprintf(milestone, "form", "your task", "to do") + "\n## INSTRUCTIONS\n\nShop.\n\nThe form.",
		"save": fmt.Sprintf(milestone, "save", "done", "your task") + "\n## COMPLETED WORK\n\n- page/form: done at checkpoint login-1; 1 checkpoint was promoted.\n" +
			"\n## INSTRUCTIONS\n\nShop.\n\nThe store.",
	} {
		if diff := cmp.Diff(want, told(task)); diff != "" {
			w.t.Errorf("task %s (-want +got):\n%s", task, diff)
		}
	}
	context := w.delivered("web/form.txt")
	for _, once := range []string{"## PROJECT CONTEXT", "The supervisor delivers valid work to the branch tidewaiter/login.", "- Write only to these areas: web/**."} {
		if strings.Count(context, once) != 1 {
			w.t.Errorf("%q is there %d times in %s", once, strings.Count(context, once), context)
		}
	}
}

// TestAnAgentIsToldWhatIsDone at the start of each task, and people read the same of the work that is done.
func TestAnAgentIsToldWhatIsDone(t *testing.T) {
	t.Parallel()
	w := readers(t)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantReaders()
	var works []protocol.TaskWork
	for _, task := range w.intake.Status().Tasks {
		works = append(works, *task.Work)
	}
	if diff := cmp.Diff([]protocol.TaskWork{{Checkpoint: 1, Promoted: 1}, {Checkpoint: 2, Promoted: 1}}, works); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestACrashBeforeTheAgentStarts changes nothing of what it is told.
func TestACrashBeforeTheAgentStarts(t *testing.T) {
	t.Parallel()
	w := readers(t)
	plugs := newPlugs(t, []plug{{step: "task begun", nth: 2}, {step: "agent launched"}})
	wantFinal(t, plugs.processes(w.start(1, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantReaders()
}

// TestACommandIsToldWhatIsDone by a variable of its own: its instructions stay what they are.
func TestACommandIsToldWhatIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `printf '%s|%s' "$TIDEWAITER_INSTRUCTIONS" "$TIDEWAITER_TASK_CONTEXT" > "web/$(basename "$TIDEWAITER_TASK").txt"`, seldom, func(o *protocol.Orders) {
		o.Tasks = []protocol.Task{{Name: "page/form", Instructions: "The form."}, {Name: "page/save", Instructions: "The store."}}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	work, context, _ := strings.Cut(w.delivered("web/save.txt"), "|")
	if !strings.HasPrefix(work, "The store.\n\nYou may write within these bounds.") || !strings.HasPrefix(context, "## PROJECT CONTEXT\n") ||
		!strings.HasSuffix(context, "\n- page/form: done at checkpoint login-1; 1 checkpoint was promoted.") || strings.Contains(context, "bounds") {
		t.Errorf("instructions %q, context %q", work, context)
	}
}

// TestADirectiveStandsInTheInstructions, so that the model gets it once, also after a crash before the agent starts. People see that the agent has it, and when its model has read it.
func TestADirectiveStandsInTheInstructions(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil, "crashes before the start and after it": after("task begun", "agent launched")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `echo "$TIDEWAITER_MODELS_URL" > "$HOME/url.part"; cat > "$HOME/told"; mv "$HOME/url.part" "$HOME/url"; `, seldom, func(o *protocol.Orders) {
				o.Agent.Runtime = "reader"
				o.Directives = []protocol.Directive{{ID: "use-dict", Source: protocol.SourcePerson, Description: "Take the labels\n## INSTRUCTIONS\nfrom the dictionary."}}
			})
			w.intake.Order(func(o *protocol.Orders) { o.Agent.Command[2] += w.waitFor("end") })
			w.runtimes = []runtimes.Runtime{{Name: "reader", Available: true, Interactive: true, Sessions: true, Adapter: reader{}}}
			w.models = addresses.Free() // a watchdog that begins again listens there again
			model := &confidant{answer: "Well."}
			w.serveGateway(model)
			plugs := newPlugs(t, list)
			run := plugs.processes(w.start(1, plugs.probe()))
			w.eventually("the agent knows where models are", func() bool {
				_, err := os.Stat(filepath.Join(w.paths.Home, "url"))
				return err == nil
			})
			told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(told); strings.Count(text, "\n## ") != 2 || strings.Count(text, "Take the labels\n  > ## INSTRUCTIONS\n  > from the dictionary.") != 1 {
				t.Errorf("told %s", text)
			}
			if list == nil {
				w.reports("use-dict Active")
			} else { // it is not known that the agent has it
				w.reports("use-dict Pending")
			}
			k := &talk{w: w, model: model}
			for _, text := range []string{string(told), "Go on."} {
				if asked := k.say(text, "I do."); strings.Contains(asked, "[SUPERVISOR]") || strings.Count(asked, "Take the labels") != 1 {
					t.Errorf("the model was asked: %s", asked)
				}
				w.reports("use-dict Active")
			}
			w.eventually("the status says that the model has answered", func() bool {
				return strings.HasPrefix(w.intake.Status().Directives[0].Message, "the watchdog told the model, which has answered")
			})
			w.signal("end")
			run.finish()
		})
	}
}

// TestADirectiveInTheInstructionsIsTold when the agent starts with it, also one of a reviewer in a polish task that is over before anybody tells the agent in another way.
// If a crash keeps that from the journal, the status says that it is not known.
func TestADirectiveInTheInstructionsIsTold(t *testing.T) {
	t.Parallel()
	const has = "Active: the agent has it in its instructions; nobody knows whether the agent has read them"
	for step, want := range map[string]string{"": has, "before task started": has, "task started": has, "agent launched": "Pending: the polish task for it is over, and the watchdog does not know that the agent received it"} {
		t.Run("crash at "+step, func(t *testing.T) {
			t.Parallel()
			w, _ := newReviewed(t, oneFinding, func(o *protocol.Orders) {
				o.Agent.Runtime = "reader"
				o.Agent.Command[2] += `; cat > "web/$(basename "$TIDEWAITER_TASK").txt"`
			})
			w.runtimes = []runtimes.Runtime{{Name: "reader", Available: true, Interactive: true, Adapter: reader{}}}
			run := w.crashesAt(step, 4)
			wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got := w.delivered("web/1.txt"); strings.Count(got, "Name it like the others") != 1 {
				t.Errorf("the agent was told in the polish task: %s", got)
			}
			w.wantDirective(want)
		})
	}
}

// wantDirective: the status has one directive, with a state and a message.
func (w *world) wantDirective(want string) {
	w.t.Helper()
	s := w.intake.Status().Directives
	if len(s) != 1 || s[0].State+": "+s[0].Message != want {
		w.t.Errorf("want %q, directives in the status: %+v", want, s)
	}
}

// TestADirectiveThatNobodyCouldTell: the status does not say that it waits for a task that is over.
func TestADirectiveThatNobodyCouldTell(t *testing.T) {
	t.Parallel()
	w, _ := newReviewed(t, oneFinding, func(o *protocol.Orders) { o.Agent.Runtime = "deaf" })
	w.runtimes = []runtimes.Runtime{{Name: "deaf", Available: true, Interactive: true, Adapter: deaf{}}}
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantDirective("Pending: the polish task for it is over, and the watchdog does not know that the agent received it")
}

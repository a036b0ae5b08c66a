// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// writer is the story of a real agent. What its model says is scripted: the demo needs no key and no way to the world.
var writer = story{
	name:    "writer",
	about:   "is Claude Code: it asks a model through watchdog and gateway, and holds no key",
	allowed: []string{"docs/tour/models.md"},
	script: `turns:
- text: I look at what there is.
  run: ls docs; head -3 README.md
- text: Now I write the page.
  run: mkdir -p docs/tour && printf '# Models\n\nWritten by an agent that has no key.\n' > docs/tour/models.md
  fail: {status: 529}
- text: The page is written.`,
	check: answered,
}

// circler is one whose model goes round in circles.
var circler = story{
	name:    "circler",
	about:   "is Claude Code, too: its model reads a missing file again and again, until the watchdog tells it so",
	allowed: []string{"docs/tour/circles.md"},
	script: `turns:
- until: "` + repeats + `"
  while: cat docs/tour/plan.md
  text: There is no plan. I write the page without one.
  run: mkdir -p docs/tour && printf '# Circles\n\nThis page was written when its author had stopped to look for a plan.\n' > docs/tour/circles.md
- text: The page is written.`,
	check: steered,
}

// planner is one whose work a model divides. A gate refuses the first version of its first task.
var planner = story{
	name:    "planner",
	about:   "is Claude Code, whose work a model divides into two tasks; a gate fails after the first one, and the agent mends it",
	allowed: []string{"docs/tour/stops.md", "docs/tour/map.md"},
	plan: []plannedTask{
		{name: "stops", gates: []string{"stops"}, about: "List the stops of the tour.", script: `turns:
- text: I list them.
  run: mkdir -p docs/tour && echo Gateway > docs/tour/stops.md
- text: They are listed.
- text: I add one.
  run: echo Watchdog >> docs/tour/stops.md
- text: Now there are two.`},
		{name: "map", about: "Draw the map of the tour.", script: `turns:
- text: I draw it.
  run: echo 'Gateway - Watchdog' > docs/tour/map.md
- text: The map is drawn.`},
	},
	gates: []v1alpha1.Gate{{Name: "stops", Command: []string{"sh", "-c", "[ $(wc -l < docs/tour/stops.md) -ge 2 ] || { echo " + fault + "; exit 1; }"}}},
	check: planned,
}

// What the agent of planner hears of its gate begins with correction, and has fault, which the gate prints.
const (
	correction = "Your task is not done yet: 1 of 1 gates failed."
	fault      = "a tour has at least two stops"
)

// house is what every agent of the demo's project is told first.
const house = "Write in plain English, and only below docs/tour."

// agents are the stories of real agents.
var agents = []story{writer, circler, planner, apprentice}

// stories of this run: a real agent where there is an image of one.
func (d *demo) stories() []story {
	if d.agent == "" {
		return stories
	}
	return append(agents, stories...)
}

// provideModels starts the scripted provider, and makes the template of the project.
func (d *demo) provideModels(ctx context.Context) error {
	if d.agent == "" {
		return nil
	}
	if err := d.DeleteProject(ctx, modelsProject); err != nil {
		return err
	}
	var err error
	if d.provider, err = d.StartProvider(ctx, modelsProject); err != nil {
		return err
	}
	d.progress.say("serving a scripted model instead of a provider; only the gateway has its key")
	template := &v1alpha1.Template{Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To(house)}}
	template.Namespace, template.Name = project, "house"
	if err := d.Create(ctx, template); err != nil {
		return err
	}
	for _, s := range agents {
		if s.reviewers != nil {
			if err := d.review(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// withAgent makes a story's Feature that of the real agent.
func (s story) withAgent(d *demo, f *v1alpha1.Feature) *v1alpha1.Feature {
	if s.reviewers != nil {
		f.Labels = map[string]string{storyLabel: s.name}
	}
	f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: d.agent}
	f.Spec.Workspace = &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("1Gi"))}
	f.Spec.Prompt = "Write the page of the " + s.name + "." + fenced("", s.script)
	if len(s.plan) > 0 {
		f.Spec.Prompt = "Write the pages of the " + s.name + "." + fenced(" propose_plan", proposing(s.plan))
		f.Spec.Planning, f.Spec.Gates = v1alpha1.PlanningAuto, s.gates
	}
	return f
}

// fenced is a script as it stands in a prompt or in instructions. The provider plays it for whom the fence names.
func fenced(whom, script string) string { return "\n\n```script" + whom + "\n" + script + "\n```\n" }

// proposing is the script of a model that proposes tasks. The scripts of the tasks are quoted in it, so that no agent takes the prompt for its own script.
func proposing(tasks []plannedTask) string {
	listed := make([]string, len(tasks))
	for i, t := range tasks {
		listed[i] = fmt.Sprintf("{name: %s, gates: [%s], instructions: %q}", t.name, strings.Join(t.gates, ", "), t.about+fenced("", t.script))
	}
	return "turns:\n- tool: {name: propose_plan, input: {milestones: [{name: tour, tasks: [" + strings.Join(listed, ", ") + "]}]}}"
}

// planned checks that a model has divided the work, that the gate has failed once and passed then, and that the work is delivered.
func planned(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	if plan := f.Status.Run.Plan; plan == nil || len(plan.Milestones) != 1 || len(f.Status.Run.Tasks) != 2 {
		return fmt.Errorf("want a plan with one milestone of two tasks: %s", cluster.Message(f, v1alpha1.ConditionPlanned))
	}
	d.progress.say("condition Planned: %s", cluster.Message(f, v1alpha1.ConditionPlanned))
	for _, t := range f.Status.Run.Tasks {
		d.progress.verbatim(fmt.Sprintf("task %-12s %s\n", t.Name, t.State))
	}
	gates, err := d.raw(ctx, f, "gates")
	if err != nil {
		return err
	}
	if failed, passed := strings.Index(gates, "Failed"), strings.Index(gates, "Passed"); failed < 0 || passed < failed {
		return fmt.Errorf("want a gate that fails and passes then:\n%s", gates)
	}
	d.progress.say("the results of its gate, and what the watchdog told the agent after the first:")
	d.progress.verbatim(gates)
	asked, err := d.provider.Asked(ctx, correction)
	if err != nil {
		return err
	}
	told := ""
	for _, a := range asked {
		if _, rest, is := strings.Cut(a.Body, correction); is {
			told = correction + rest
		}
	}
	if told, err = jsonText(told); err != nil {
		return err
	}
	if !strings.Contains(told, fault) {
		return fmt.Errorf("the agent did not hear what its gate said: %q", told)
	}
	d.progress.verbatim(told)
	return delivered(ctx, d, f, mirror)
}

// jsonText is a text up to the quotation mark that ends it in JSON.
func jsonText(escaped string) (text string, err error) {
	for end := 0; end < len(escaped); end++ {
		switch escaped[end] {
		case '\\':
			end++
		case '"':
			err = json.Unmarshal([]byte(`"`+escaped[:end]+`"`), &text)
			return text, err
		}
	}
	return "", fmt.Errorf("no quotation mark ends %q in JSON", escaped)
}

// raw is what the aggregated API says of a Feature.
func (d *demo) raw(ctx context.Context, f *v1alpha1.Feature, path string) (string, error) {
	kubectl := append(strings.Fields(d.kubectl), "get", "--raw", "/apis/view.tidewaiter.dev/v1alpha1/namespaces/"+project+"/features/"+f.Name+"/"+path)
	out, err := exec.CommandContext(ctx, kubectl[0], kubectl[1:]...).Output() //nolint:gosec // the caller's own command
	if err != nil {
		return "", fmt.Errorf("run kubectl get --raw …/%s: %w", path, err)
	}
	return string(out), nil
}

// steered checks that the model was told that it repeats itself, and that its work is delivered.
func steered(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	asked, err := d.provider.Asked(ctx, "Write the page of the "+f.Name)
	if err != nil {
		return err
	}
	said := ""
	for _, a := range asked {
		for _, text := range strings.Split(a.Body, supervisor)[1:] {
			text, _, _ = strings.Cut(text, `\n`) // the body is JSON
			text, _, _ = strings.Cut(text, `"`)
			if strings.Contains(text, repeats) {
				said = text
			}
		}
	}
	if said == "" {
		return errors.New("the watchdog did not tell the model that it repeats itself")
	}
	d.progress.say("after %d model calls, most of them the same, the watchdog told its model:", f.Status.Run.Usage.Calls)
	d.progress.verbatim(supervisor + said + "\n")
	return delivered(ctx, d, f, mirror)
}

// supervisor begins what the supervisor tells a model, and repeats is in it if the model repeats itself.
const (
	supervisor = "[SUPERVISOR] "
	repeats    = "the same call of"
)

// answered checks that the agent was told the template, that every turn is in the ledger, and that its work is delivered.
func answered(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	prompt, err := d.raw(ctx, f, "prompt")
	if err != nil {
		return err
	}
	if !strings.Contains(prompt, house) {
		return fmt.Errorf("the template is not in the prompt:\n%s", prompt)
	}
	before, _, _ := strings.Cut(prompt, "```script")
	d.progress.say("its prompt begins with the project's template:")
	d.progress.verbatim(strings.TrimSpace(before) + "\n")
	turns, err := d.raw(ctx, f, "turns?output=text")
	if err != nil {
		return err
	}
	if n := strings.Count(turns, "Answered"); n < 3 || !strings.Contains(turns, cluster.Model) {
		return fmt.Errorf("want three turns in the ledger, have %d:\n%s", n, turns)
	}
	d.progress.say("its turns in the ledger:")
	d.progress.verbatim(turns)
	return delivered(ctx, d, f, mirror)
}

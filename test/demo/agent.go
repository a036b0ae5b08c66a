// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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
	allowed: []string{"docs/tour/**"},
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
	allowed: []string{"docs/tour/**"},
	script: `turns:
- until: "[SUPERVISOR]"
  while: cat docs/tour/plan.md
  text: There is no plan. I write the page without one.
  run: mkdir -p docs/tour && printf '# Circles\n\nThis page was written when its author had stopped to look for a plan.\n' > docs/tour/circles.md
- text: The page is written.`,
	check: steered,
}

// house is what every agent of the demo's project is told first.
const house = "Write in plain English, and only below docs/tour."

// stories of this run: a real agent where there is an image of one.
func (d *demo) stories() []story {
	if d.agent == "" {
		return stories
	}
	return append([]story{writer, circler}, stories...)
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
	return d.Create(ctx, template)
}

// withAgent makes a story's Feature that of the real agent.
func (s story) withAgent(d *demo, f *v1alpha1.Feature) *v1alpha1.Feature {
	f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: d.agent}
	f.Spec.Workspace = &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("1Gi"))}
	f.Spec.Prompt = "Write the page of the " + s.name + ".\n\n```script\n" + s.script + "\n```\n"
	return f
}

// steered checks that the model was told that it repeats itself, and that its work is delivered.
func steered(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	asked, err := d.provider.Asked(ctx)
	if err != nil {
		return err
	}
	said := ""
	for _, a := range asked {
		if _, text, found := strings.Cut(a.Body, supervisor); found && strings.Contains(a.Body, "Write the page of the "+f.Name) {
			said, _, _ = strings.Cut(text, `\n`) // the body is JSON
			said, _, _ = strings.Cut(said, `"`)
		}
	}
	if said == "" {
		return errors.New("the watchdog did not tell the model that it repeats itself")
	}
	d.progress.say("after %d model calls, most of them the same, the watchdog told its model:", f.Status.Run.Usage.Calls)
	d.progress.verbatim(supervisor + said + "\n")
	return delivered(ctx, d, f, mirror)
}

// supervisor begins what a model is told by its supervisor.
const supervisor = "[SUPERVISOR] "

// answered checks that the agent was told the template, that every turn is in the ledger, and that its work is delivered.
func answered(ctx context.Context, d *demo, f *v1alpha1.Feature, mirror string) error {
	raw := func(path string) (string, error) {
		kubectl := append(strings.Fields(d.kubectl), "get", "--raw", "/apis/view.tidewaiter.dev/v1alpha1/namespaces/"+project+"/features/"+f.Name+"/"+path)
		out, err := exec.CommandContext(ctx, kubectl[0], kubectl[1:]...).Output() //nolint:gosec // the caller's own command
		if err != nil {
			return "", fmt.Errorf("run kubectl get --raw …/%s: %w", path, err)
		}
		return string(out), nil
	}
	prompt, err := raw("prompt")
	if err != nil {
		return err
	}
	if !strings.Contains(prompt, house) {
		return fmt.Errorf("the template is not in the prompt:\n%s", prompt)
	}
	before, _, _ := strings.Cut(prompt, "```script")
	d.progress.say("its prompt begins with the project's template:")
	d.progress.verbatim(strings.TrimSpace(before) + "\n")
	turns, err := raw("turns?output=text")
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

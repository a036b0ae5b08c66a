// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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

// house is what every agent of the demo's project is told first.
const house = "Write in plain English, and only below docs/tour."

// stories of this run: a real agent where there is an image of one.
func (d *demo) stories() []story {
	if d.agent == "" {
		return stories
	}
	return append([]story{writer}, stories...)
}

// provideModels starts the scripted provider, and makes the template of the project.
func (d *demo) provideModels(ctx context.Context) error {
	if d.agent == "" {
		return nil
	}
	if err := d.DeleteProject(ctx, modelsProject); err != nil {
		return err
	}
	if _, err := d.StartProvider(ctx, modelsProject); err != nil {
		return err
	}
	d.progress.say("serving a scripted model in the place of a provider; the gateway alone has its key")
	template := &v1alpha1.Template{Spec: v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Text: ptr.To(house)}}
	template.Namespace, template.Name = project, "house"
	return d.Create(ctx, template)
}

// withAgent makes a story's Feature that of the real agent.
func (s story) withAgent(d *demo, f *v1alpha1.Feature) *v1alpha1.Feature {
	f.Spec.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: d.agent}
	f.Spec.Workspace = &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("1Gi"))}
	f.Spec.Prompt = "Write a page about models.\n\n```script\n" + s.script + "\n```\n"
	return f
}

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
	d.progress.say("what it was told begins with the project's template:")
	d.progress.verbatim(strings.TrimSpace(before) + "\n")
	turns, err := raw("turns?output=text")
	if err != nil {
		return err
	}
	if n := strings.Count(turns, "Answered"); n < 3 || !strings.Contains(turns, cluster.Model) {
		return fmt.Errorf("want three turns in the ledger, have %d:\n%s", n, turns)
	}
	d.progress.say("its turns, as the ledger has them:")
	d.progress.verbatim(turns)
	return delivered(ctx, d, f, mirror)
}

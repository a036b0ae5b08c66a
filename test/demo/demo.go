// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	project    = "tidewaiter-demo"
	gitProject = "tidewaiter-demo-git"
	// modelsProject has the scripted model of the real agent.
	modelsProject = "tidewaiter-demo-models"
	repository    = "project"
)

// Files of a record, from which go test ./test/demo renders docs/get-started/demo.md.
const (
	runFile      = "run.txt"
	describeFile = "describe.txt"
	explainFile  = "explain.txt"
)

type options struct {
	kubeconfig, kubectl, image, agent, repository, record string
	timeout                                               time.Duration
}

type demo struct {
	options
	*cluster.Cluster
	git      *cluster.GitServer
	provider *cluster.Provider // nil without a real agent
	progress *progress
}

func run(ctx context.Context, o options) error {
	k8s, err := cluster.Connect(o.kubeconfig, o.image)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidewaiter-demo-*")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	out := io.Writer(os.Stdout)
	if o.record != "" {
		if err := os.MkdirAll(o.record, 0o755); err != nil {
			return fmt.Errorf("make the folder for the record: %w", err)
		}
		file, err := os.Create(filepath.Join(o.record, runFile))
		if err != nil {
			return fmt.Errorf("record the run: %w", err)
		}
		defer file.Close()
		out = io.MultiWriter(out, file)
	}
	d := &demo{options: o, Cluster: k8s, progress: newProgress(out)}
	for _, step := range d.steps() {
		d.progress.title("%s", step.title)
		if err := step.do(ctx, dir); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	d.progress.farewell(o.kubectl, o.agent != "")
	return nil
}

// step of a run, below a title.
type step struct {
	title string
	do    func(context.Context, string) error
}

func (d *demo) steps() []step {
	return []step{
		{"Preparing the project " + project + " (Pod Security restricted) and a Git server that serves this repository", d.prepare},
		{"Applying the Features", d.apply},
		{"Following them", d.follow},
		{"The results", d.check},
		{"The objects", d.show},
	}
}

func (d *demo) prepare(ctx context.Context, dir string) error {
	for _, ns := range []string{project, gitProject} {
		if err := d.DeleteProject(ctx, ns); err != nil {
			return err
		}
	}
	if err := d.Project(ctx, project); err != nil {
		return err
	}
	git, err := d.StartGitServer(ctx, gitProject, dir)
	if err != nil {
		return err
	}
	d.git = git
	if err := d.AllowGit(ctx, project, git.Host); err != nil {
		return err
	}
	if err := git.Publish(ctx, d.repository, repository); err != nil {
		return err
	}
	commits, err := git.Git(ctx, d.repository, repository, "rev-list", "--count", "HEAD")
	if err != nil {
		return err
	}
	if err := d.provideModels(ctx); err != nil {
		return err
	}
	d.progress.say("serving %s with its whole history (%s commits)", git.URL(repository), strings.TrimSpace(commits))
	return d.Create(ctx, git.Secret(project, cluster.GitSecret))
}

func (d *demo) apply(ctx context.Context, _ string) error {
	for _, s := range d.stories() {
		f := s.feature(d)
		if err := d.Create(ctx, f); err != nil {
			return fmt.Errorf("apply Feature %s: %w", f.Name, err)
		}
		d.progress.say("%s", s.line())
	}
	return nil
}

// follow watches the Features until each has come to its end, and plays what happens to them meanwhile.
func (d *demo) follow(ctx context.Context, _ string) error {
	happened := map[string]bool{}
	return cluster.Until(ctx, "the Features to end", func(ctx context.Context) (bool, error) {
		ended := 0
		for _, s := range d.stories() {
			f, err := d.Feature(ctx, project, s.name)
			if err != nil {
				return false, err
			}
			checkpoints, err := d.Checkpoints(ctx, project, s.name)
			if err != nil {
				return false, err
			}
			d.progress.feature(f, checkpoints)
			if s.meanwhile != nil && !happened[s.name] && f.Status.Phase == v1alpha1.PhaseRunning {
				if happened[s.name], err = s.meanwhile(ctx, d, f); err != nil {
					return false, err
				}
			}
			switch f.Status.Phase {
			case v1alpha1.PhaseDelivered, v1alpha1.PhaseBlocked, v1alpha1.PhaseFailed:
				ended++
			}
		}
		return ended == len(d.stories()), nil
	})
}

// losePod deletes the pod of a Feature that has a valid checkpoint.
func losePod(ctx context.Context, d *demo, f *v1alpha1.Feature) (bool, error) {
	if f.Status.Checkpoints.Valid == 0 || f.Status.Job == nil || f.Status.Job.PodName == "" {
		return false, nil
	}
	d.progress.say("%-12s deleting its pod %s in the middle of the work", f.Name, f.Status.Job.PodName)
	err := d.Clientset.CoreV1().Pods(project).Delete(ctx, f.Status.Job.PodName, deleteNow)
	return err == nil, client.IgnoreNotFound(err)
}

// rollBack lets the agent continue once it has a valid checkpoint, and asks for that one once there is an invalid one after it.
func rollBack(ctx context.Context, d *demo, f *v1alpha1.Feature) (bool, error) {
	if f.Status.LastValidCheckpoint != "" && f.Status.Checkpoints.Invalid == 0 && f.Status.Job != nil {
		_, _, err := d.Exec(ctx, project, f.Status.Job.PodName, "agent", nil, "touch", "/home/agent/go")
		return false, err
	}
	if f.Status.LastValidCheckpoint == "" || f.Status.LastCheckpoint == f.Status.LastValidCheckpoint || f.Status.Checkpoints.Invalid == 0 {
		return false, nil
	}
	d.progress.say("%-12s asking for a rollback to %s while the agent works", f.Name, f.Status.LastValidCheckpoint)
	before := f.DeepCopy()
	f.Spec.Requests = append(f.Spec.Requests, v1alpha1.Request{
		ID: rollbackID, Rollback: &v1alpha1.RollbackRequest{Checkpoint: f.Status.LastValidCheckpoint},
	})
	return true, d.Patch(ctx, f, client.MergeFrom(before))
}

func (d *demo) check(ctx context.Context, dir string) error {
	mirror, err := d.git.Mirror(ctx, repository)
	if err != nil {
		return err
	}
	for _, s := range d.stories() {
		f, err := d.Feature(ctx, project, s.name)
		if err != nil {
			return err
		}
		d.progress.paragraph("%s: %s/%s", s.name, f.Status.Phase, cluster.Reason(f, v1alpha1.ConditionSucceeded))
		d.progress.say("condition Succeeded: %s", cluster.Message(f, v1alpha1.ConditionSucceeded))
		if err := s.check(ctx, d, f, mirror); err != nil {
			return fmt.Errorf("feature %s: %w", s.name, err)
		}
	}
	return nil
}

func (d *demo) show(ctx context.Context, _ string) error {
	objects, err := d.ask(ctx, "get", "features,checkpoints", "--namespace", project)
	d.progress.verbatim(objects)
	if err != nil {
		return err
	}
	if err := d.figures(ctx); err != nil || d.record == "" {
		return err
	}
	for file, args := range map[string][]string{
		describeFile: {"describe", "feature", "intruder", "--namespace", project},
		explainFile:  {"explain", "feature.spec.plan"},
	} {
		text, err := d.ask(ctx, args...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.record, file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("record what kubectl says: %w", err)
		}
	}
	return nil
}

// ask is what kubectl says.
func (d *demo) ask(ctx context.Context, args ...string) (string, error) {
	kubectl := append(strings.Fields(d.kubectl), args...)
	out, err := exec.CommandContext(ctx, kubectl[0], kubectl[1:]...).CombinedOutput() //nolint:gosec // the caller's own command
	if err != nil {
		return string(out), fmt.Errorf("run kubectl %s: %w", args[0], err)
	}
	return string(out), nil
}

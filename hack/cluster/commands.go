// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/cluster"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/debian"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/image"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/node"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
)

const usage = `usage: run.sh COMMAND

  up                    bring the cluster up and print the path of its kubeconfig
  down [--keep-state]   take it down without a trace (or keep its objects, images and volumes for the next up)
  status                say how it is
  kubeconfig            print the path of its kubeconfig
  kubectl ARGUMENTS…    call kubectl on it
  assets                build what envtest needs and print its folder (KUBEBUILDER_ASSETS)
  image OPTIONS…        build an image archive; see image --help
  load-image ARCHIVE    make an image known to the cluster
  verify                check on the running cluster that it does what it promises

TIDEWAITER_KUBERNETES=1.35 is another version of Kubernetes for the local cluster and for assets; README.md lists them.
With KUBECONFIG set, up, status, kubeconfig and kubectl use that cluster; nothing is built or taken down.
`

// driver is what the commands share.
type driver struct {
	cluster *cluster.Cluster
	layout  place.Layout
	// external is the kubeconfig of a cluster that is not ours; empty: the local one.
	external string
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("no command\n\n" + usage)
	}
	name, rest := arguments[0], arguments[1:]
	switch name {
	case cluster.NodeCommand:
		return runNode(rest)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	d, err := newDriver()
	if err != nil {
		return err
	}
	commands := map[string]func(context.Context, []string) error{
		"up": d.up, "down": d.down, "status": d.status, "kubeconfig": d.kubeconfig, "kubectl": d.kubectl,
		"assets": d.assets, "image": d.image, "load-image": d.loadImage, "verify": d.verify,
	}
	command, ok := commands[name]
	if !ok {
		return fmt.Errorf("unknown command %q\n\n%s", name, usage)
	}
	return command(ctx, rest)
}

// newDriver finds the sources where run.sh says, or in the working directory, where `go run -C hack/cluster .` starts.
func newDriver() (driver, error) {
	sources := os.Getenv("TIDEWAITER_CLUSTER_SOURCES")
	if sources == "" {
		var err error
		if sources, err = os.Getwd(); err != nil {
			return driver{}, fmt.Errorf("sources: %w", err)
		}
	}
	layout, err := place.Default(os.Getenv)
	if err != nil {
		return driver{}, err
	}
	c, err := cluster.New(sources, os.Getenv("TIDEWAITER_KUBERNETES"), layout, os.Stderr)
	if err != nil {
		return driver{}, err
	}
	external := os.Getenv("KUBECONFIG")
	if external == c.Kubeconfig() {
		external = "" // who exported what `up` printed still means the local cluster
	}
	return driver{cluster: c, layout: layout, external: external}, nil
}

func runNode(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("node: it is started by `up`")
	}
	plan, err := node.LoadPlan(arguments[0])
	if err != nil {
		return err
	}
	return node.Run(plan, bufio.NewReader(os.Stdin))
}

func (d driver) up(ctx context.Context, _ []string) error {
	if d.external != "" {
		fmt.Fprintf(os.Stderr, "KUBECONFIG is set: using the cluster of %s\n", d.external)
		if err := d.kubectl(ctx, []string{"get", "--raw", "/version"}); err != nil {
			return fmt.Errorf("the cluster that KUBECONFIG names does not answer: %w", err)
		}
		return nil
	}
	if err := d.cluster.Up(ctx); err != nil {
		return err
	}
	fmt.Println(d.cluster.Kubeconfig())
	return nil
}

func (d driver) down(_ context.Context, arguments []string) error {
	if d.external != "" {
		return errors.New("KUBECONFIG is set, so the cluster is yours: it is not taken down; unset KUBECONFIG to take down the local one")
	}
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	keep := flags.Bool("keep-state", false, "keep objects, images and volumes for the next up")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return d.cluster.Down(*keep)
}

func (d driver) status(ctx context.Context, _ []string) error {
	if d.external != "" {
		return d.kubectl(ctx, []string{"get", "nodes"})
	}
	text, err := d.cluster.Status(ctx)
	fmt.Print(text)
	return err
}

func (d driver) kubeconfig(context.Context, []string) error {
	path := d.external
	if path == "" {
		path = d.cluster.Kubeconfig()
	}
	fmt.Println(path)
	return nil
}

func (d driver) kubectl(ctx context.Context, arguments []string) error {
	program, kubeconfig := "kubectl", d.external
	if kubeconfig == "" {
		kubeconfig = d.cluster.Kubeconfig()
	}
	if _, err := exec.LookPath(program); err != nil || d.external == "" {
		folder, err := d.cluster.Assets(ctx)
		if err != nil {
			return err
		}
		program = folder + "/kubectl"
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

func (d driver) assets(ctx context.Context, _ []string) error {
	folder, err := d.cluster.Assets(ctx)
	if err != nil {
		return err
	}
	fmt.Println(folder)
	return nil
}

func (d driver) loadImage(ctx context.Context, arguments []string) error {
	if d.external != "" {
		return errors.New("KUBECONFIG is set, and only a local cluster can be given an image: push it where that cluster pulls from, and set IMG to its name")
	}
	if len(arguments) == 0 {
		return errors.New("load-image: name at least one image archive (as made by image, docker save or skopeo)")
	}
	for _, archive := range arguments {
		if err := d.cluster.Load(ctx, archive); err != nil {
			return fmt.Errorf("load %s: %w", archive, err)
		}
	}
	return nil
}

func (d driver) image(ctx context.Context, arguments []string) error {
	spec, packages, to, err := parseImage(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	var base string
	if len(packages.Packages) > 0 {
		if base, err = debian.Layer(ctx, d.layout, packages); err != nil {
			return err
		}
		if to.list != "" {
			list, err := os.ReadFile(debian.ListOf(base))
			if err := errors.Join(err, os.WriteFile(to.list, list, 0o644)); err != nil {
				return fmt.Errorf("--list: %w", err)
			}
		}
	}
	file, err := os.Create(to.archive)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if err := errors.Join(image.Write(file, spec, base), file.Close()); err != nil {
		return errors.Join(err, os.Remove(to.archive))
	}
	return nil
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string         { return strings.Join(*l, " ") }
func (l *list) Set(value string) error { *l = append(*l, value); return nil }

// outputs are the paths of what is made of an image.
type outputs struct{ archive, list string }

func parseImage(arguments []string) (spec image.Spec, set debian.Set, to outputs, err error) {
	var files, entrypoint, command, env list
	var packages, without, architecture string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&spec.Name, "name", "", "name with tag, such as local.test/tidewaiter:dev")
	flags.StringVar(&packages, "packages", "", "Debian packages, separated by commas; they bring what they depend on")
	flags.StringVar(&without, "without", "", "Debian packages to leave out although others depend on them")
	flags.Var(&files, "file", "SOURCE:TARGET[:MODE], once for each file, or for a folder with all that is in it")
	flags.Var(&entrypoint, "entrypoint", "program that a container runs; again for each argument")
	flags.Var(&command, "cmd", "default argument; again for each further one")
	flags.Var(&env, "env", "NAME=VALUE, once for each variable")
	flags.StringVar(&spec.User, "user", "65532:65532", "number of the user, or of user and group")
	flags.StringVar(&spec.Folder, "workdir", "/", "folder that a container starts in")
	flags.StringVar(&architecture, "arch", runtime.GOARCH, "architecture of the programs, amd64 or arm64")
	flags.StringVar(&to.archive, "output", "", "path of the archive")
	flags.StringVar(&to.list, "list", "", "path of a list of the Debian packages, with versions and checksums, if one is wanted")
	fail := func(err error) (image.Spec, debian.Set, outputs, error) {
		return image.Spec{}, debian.Set{}, outputs{}, err
	}
	if err := flags.Parse(arguments); err != nil {
		return fail(err)
	}
	if to.archive == "" || flags.NArg() > 0 {
		return fail(fmt.Errorf("image: --output is needed, and there is nothing but options: %q", flags.Args()))
	}
	for _, text := range files {
		file, err := image.ParseFile(text)
		if err != nil {
			return fail(err)
		}
		spec.Files = append(spec.Files, file)
	}
	if packages == "" && len(spec.Files) == 0 {
		return fail(errors.New("image: it would be empty: give --packages or --file"))
	}
	spec.Entrypoint, spec.Command, spec.Env, spec.Architecture = entrypoint, command, env, architecture
	return spec, debian.Set{Packages: split(packages), Without: split(without), Architecture: architecture}, to, spec.Validate()
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

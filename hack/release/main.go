// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release directory of what has been built, and pushes one to a registry. hack/release/release.sh builds and calls it.
//
//	release assemble --version V --commit C --work DIR --out DIR   images, manifest, chart, SBOMs, provenance and checksums
//	release archive --out FILE DIR IMAGE                           one image as a file that container runtimes import
//	release push DIR REPOSITORY                                    the images to a registry, and the manifest and the chart that name them there
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	usage := errors.New("usage: release assemble|archive|push|predicate; see hack/release/release.sh and hack/release/push.sh")
	if len(arguments) == 0 {
		return usage
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	switch arguments[0] {
	case "assemble":
		var r release
		flags.StringVar(&r.version, "version", "", "version, such as 0.1.0")
		flags.StringVar(&r.commit, "commit", "", "commit that it is built from")
		flags.BoolVar(&r.changed, "changed", false, "the work tree differs from the commit")
		flags.StringVar(&r.manifest, "manifest", "", "path of the manifest that installs a version; the product's image needs one")
		flags.StringVar(&r.chart, "chart", "", "directory of the Helm chart; the product's image needs one")
		flags.StringVar(&r.work, "work", "", "directory with IMAGE/ARCHITECTURE/image.tar, and the programs beside it")
		flags.StringVar(&r.out, "out", "", "directory of the release; it must not exist")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		return r.assemble()
	case "archive":
		out := flags.String("out", "", "path of the archive")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		if *out == "" || flags.NArg() != 2 {
			return errors.New("archive: give --out FILE, the directory of a release, and the name of an image in it")
		}
		return archive(flags.Arg(0), flags.Arg(1), *out)
	case "push":
		if len(arguments) != 3 {
			return errors.New("push: give the directory of a release and a repository, such as registry.example.com/team/tidewaiter")
		}
		return push(ctx, arguments[1], arguments[2])
	case "predicate":
		if len(arguments) != 2 {
			return errors.New("predicate: give the directory of a release")
		}
		return writePredicate(os.Stdout, arguments[1])
	}
	return usage
}

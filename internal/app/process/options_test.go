// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"complete":         {[]string{"--namespace=s"}, ""},
		"no namespace":     {nil, "--namespace is missing"},
		"unknown format":   {[]string{"--namespace=s", "--log-format=xml"}, `not "xml"`},
		"unknown flag":     {[]string{"--bogus"}, "unknown flag"},
		"surplus argument": {[]string{"--namespace=s", "serve"}, `unexpected argument "serve"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			err := Parse("test", &Options{}, test.args, &bytes.Buffer{})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want something about %q", err, test.want)
			}
		})
	}
}

// TestMainStopsAtItsArguments: nothing is run when help is asked for or a flag is wrong.
func TestMainStopsAtItsArguments(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	run := func(*rest.Config) error {
		t.Error("it is run")
		return nil
	}
	var out bytes.Buffer
	if err := Main("test", &Options{}, []string{"--help"}, &out, run); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "--log-level") {
		t.Errorf("help does not tell of --log-level:\n%s", out.String())
	}
	if err := Main("test", &Options{}, nil, &out, run); err == nil || errors.Is(err, pflag.ErrHelp) {
		t.Errorf("got %v, want a word on --namespace", err)
	}
}

func TestLogs(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"JSON":           {Options{LogFormat: "json"}, `"msg":"said"`},
		"text":           {Options{LogFormat: "text"}, `msg=said`},
		"text, and more": {Options{LogFormat: "text", LogLevel: 1}, `msg=detail`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(test.options.Logs(&out))
			log.Info("said")
			log.Log(t.Context(), slog.Level(-1), "detail")
			if !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), "detail") != (test.options.LogLevel > 0) {
				t.Errorf("got %s", out.String())
			}
		})
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/inspect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

// twoCheckpoints is a volume with two of them; a process still has it open.
func twoCheckpoints(t *testing.T) *workroom.Room {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	for _, content := range []string{"one\n", "two \x1b[2J\n"} {
		r.Write("web/a.html", content)
		if _, err := r.Checkpoint.Take(t.Context(), r.Occasion()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Each command reads a volume that its owner has open, and says what is wrong with its arguments.
func TestCommands(t *testing.T) {
	r := twoCheckpoints(t)
	type command func(context.Context, []string, io.Writer, io.Writer) error
	for name, tc := range map[string]struct {
		run  command
		args []string
		want string // part of what is printed, or of the error
		err  error
	}{
		"verify":                 {inspect.Verify, nil, "whole: ", nil},
		"verify with history":    {inspect.Verify, []string{"--history", "--json"}, `"whole": true`, nil},
		"verify another commit":  {inspect.Verify, []string{"--commit", strings.Repeat("1", 40)}, "BROKEN at ", inspect.ErrBroken},
		"verify with more":       {inspect.Verify, []string{"more"}, `unexpected argument "more"`, inspect.ErrUsage},
		"diff":                   {inspect.Diff, nil, `+two \u001b[2J`, nil},
		"diff of the first":      {inspect.Diff, []string{"login-1"}, "+one\n", nil},
		"diff since the base":    {inspect.Diff, []string{"--cumulative", "2"}, "new file mode", nil},
		"diff to apply":          {inspect.Diff, []string{"--patch", "2"}, "+two \x1b[2J", nil},
		"diff of one that isn't": {inspect.Diff, []string{"7"}, "there is no checkpoint 7; there are 1, 2", errAny},
		"diff of a word":         {inspect.Diff, []string{"last"}, `"last" is not a checkpoint`, inspect.ErrUsage},
		"log":                    {inspect.Log, nil, `"intent":`, nil},
		"log of files":           {inspect.Log, []string{"--files"}, `"file_path":"web/a.html"`, nil},
		"log with more":          {inspect.Log, []string{"more"}, `unexpected argument "more"`, inspect.ErrUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := tc.run(t.Context(), append([]string{"--trusted", string(r.Dir)}, tc.args...), &out, &out)
			if (err == nil) != (tc.err == nil) || tc.err != nil && tc.err != errAny && !errors.Is(err, tc.err) { //nolint:errorlint // a mark
				t.Errorf("%v, want %v", err, tc.err)
			}
			if err != nil {
				out.WriteString(err.Error())
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("printed %q, want %q", out.String(), tc.want)
			}
		})
	}
}

// errAny marks an error of no kind in particular.
var errAny = errors.New("any")

// An inquiry gets what the commands print, and an error that has an HTTP status.
func TestAnswer(t *testing.T) {
	r := twoCheckpoints(t)
	for name, tc := range map[string]struct {
		dir  trusted.Dir
		q    protocol.Inquiry
		want string
		code int
	}{
		"a diff":              {r.Dir, protocol.Inquiry{Kind: protocol.InquiryDiff, From: 1, To: 2}, "compared with checkpoint 1", 0},
		"a log":               {r.Dir, protocol.Inquiry{Kind: protocol.InquiryLog}, `"intent":`, 0},
		"a verification":      {r.Dir, protocol.Inquiry{Kind: protocol.InquiryVerify}, "whole: ", 0},
		"no such checkpoint":  {r.Dir, protocol.Inquiry{Kind: protocol.InquiryDiff, To: 7}, "", http.StatusNotFound},
		"no such volume":      {trusted.Dir(t.TempDir()), protocol.Inquiry{Kind: protocol.InquiryLog}, "", http.StatusNotFound},
		"of a later version":  {r.Dir, protocol.Inquiry{Kind: "turns"}, "", http.StatusBadRequest},
		"of a damaged volume": {damaged(t, r.Dir), protocol.Inquiry{Kind: protocol.InquiryDiff}, "", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := inspect.Answer(t.Context(), tc.dir, tc.q, &out)
			if (err == nil) != (tc.code == 0) || err != nil && inspect.Code(err) != tc.code {
				t.Errorf("error %v, want status %d", err, tc.code)
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("answered %q, want %q", out.String(), tc.want)
			}
		})
	}
}

// damaged is a copy of a volume whose journal was changed.
func damaged(t *testing.T, d trusted.Dir) trusted.Dir {
	t.Helper()
	to := trusted.Dir(filepath.Join(t.TempDir(), "copy"))
	if err := os.CopyFS(string(to), os.DirFS(string(d))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(string(to), "journal.jsonl")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte("form"), []byte("farm"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

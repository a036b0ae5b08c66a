// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package redacted

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// token looks like one of GitHub's, and is none.
	token = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO"
	mark  = "[redacted: github-pat]"
	begin = "-----BEGIN RSA PRIVATE KEY-----"
	end   = "-----END RSA PRIVATE KEY-----"
)

// named is a value that only a handler of text shows as such.
type named struct{ secret string }

func (n named) String() string { return n.secret }

// TestLogs: however a text comes into a line, a token is not in it; all the rest is as it would be.
func TestLogs(t *testing.T) {
	say := func(log *slog.Logger, token string) {
		log = log.With("bound", "by "+token).WithGroup("group").With("also", token)
		log.Info("the message "+token, "text", "a "+token+" b", "error", fmt.Errorf("cannot read %q", token), "list", []string{"a", token},
			slog.Group("inner", "text", token), "document", map[string]any{"a": []any{token}}, "named", named{token}, "bytes", []byte("x "+token), "pointer", &token,
			"url", "https://"+token+"@example.com/", "number", 5, "duration", time.Second, "nothing", nil)
	}
	for name, handler := range map[string]func(*bytes.Buffer, *slog.HandlerOptions) slog.Handler{
		"JSON": func(b *bytes.Buffer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(b, o) },
		"text": func(b *bytes.Buffer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(b, o) },
	} {
		var with, without, plain bytes.Buffer
		say(slog.New(handler(&with, Logs(nil))), token)
		if strings.Contains(with.String(), token) || strings.Count(with.String(), mark) < 9 || strings.Count(with.String(), "\n") != 1 {
			t.Errorf("%s: %s", name, with.String())
		}
		say(slog.New(handler(&without, Logs(nil))), "word")
		say(slog.New(handler(&plain, nil)), "word")
		_, got, _ := strings.Cut(without.String(), "level")
		_, want, _ := strings.Cut(plain.String(), "level")
		if name == "text" { // addresses
			got, _, _ = strings.Cut(got, "pointer")
			want, _, _ = strings.Cut(want, "pointer")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: a line without secrets is changed (-want +got):\n%s", name, diff)
		}
	}
}

// TestLogsHideNothingElse: two texts that look like the ends of a key do not hide what is between them.
func TestLogsHideNothingElse(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, Logs(slog.LevelWarn))).Warn("a", "first", begin, "between", strings.Repeat("seen ", 30), "last", end)
	if !strings.Contains(out.String(), strings.Repeat("seen ", 30)) {
		t.Error(out.String())
	}
}

// TestTextsAreBounded: in length, and in the work that their search takes.
func TestTextsAreBounded(t *testing.T) {
	if got := line(strings.Repeat("x", maxText-10) + token); len(got) > maxText || strings.Contains(got, "ghp_") {
		t.Errorf("%d bytes, at the end %s", len(got), got[len(got)-60:])
	}
	began := time.Now()
	if got := line(strings.Repeat("key = 'x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA'\n", 400)); got != Withheld {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("that took %s", took)
	}
	if got := line(strings.Repeat("An error at /workspace/src/main.go:12: cannot read the key of the token store.\n", 190)); strings.Contains(got, Withheld) {
		t.Error("an ordinary text is withheld")
	}
}

// TestDocument: no text of a report has a secret, what others look for stays, and so does the report that was given.
func TestDocument(t *testing.T) {
	code, said := 3, "with "+token+"."
	report := func(said string) protocol.Report {
		return protocol.Report{Epoch: 1, Time: time.Unix(1, 2), Status: &protocol.StatusReport{
			State: said, Problems: []string{"none", said}, Fault: &protocol.Fault{Message: said}, Question: &protocol.Question{ID: "q1", Text: said},
			Tasks: []protocol.TaskStatus{{Name: token, State: said, ExitCode: &code}}, Directives: []protocol.DirectiveStatus{{ID: token, Message: said}},
		}, Request: &protocol.RequestReport{ID: token, Message: said}, Checkpoint: &protocol.CheckpointReport{
			SamplePaths: []string{said, "b"}, Transient: &protocol.Transient{Names: []string{"a", said}}, Verdict: protocol.Verdict(said), Violations: []protocol.Violation{{Path: said}, {Path: "b", Message: said}}, Settled: true, LinesAdded: 4,
		}, Final: &protocol.FinalReport{Paths: []string{said}, Failure: &protocol.Failure{Cause: said}}}
	}
	given := report(said)
	if diff := cmp.Diff(report("with "+mark+"."), Document(given)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(report(said), given); diff != "" {
		t.Errorf("what was given is changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(report("nothing"), Document(report("nothing"))); diff != "" {
		t.Errorf("without a secret (-want +got):\n%s", diff)
	}
}

// TestEveryTextIsReached: reports and steps of steering have no kind of field that is passed over and may hold a text.
func TestEveryTextIsReached(t *testing.T) {
	var reach func(at string, of reflect.Type) error
	reach = func(at string, of reflect.Type) (err error) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			return reach(at, of.Elem())
		case reflect.Struct:
			for f := range of.Fields() {
				if f.IsExported() {
					err = errors.Join(err, reach(at+"."+f.Name, f.Type))
				}
			}
			return err
		case reflect.Map, reflect.Interface, reflect.Array, reflect.Func, reflect.Chan:
			return fmt.Errorf("%s is a %s", at, of.Kind())
		default:
			return nil
		}
	}
	for _, document := range []any{protocol.Report{}, protocol.SteeringStep{}} {
		if err := reach(reflect.TypeOf(document).String(), reflect.TypeOf(document)); err != nil {
			t.Error(err)
		}
	}
}

// TestSeveralAtOnce: lines of one process come from many goroutines.
func TestSeveralAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got := line("use " + token); got != "use "+mark {
					t.Error(got)
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkLine: what an ordinary line of the gateway's log takes with the search, and without.
func BenchmarkLine(b *testing.B) {
	for name, options := range map[string]*slog.HandlerOptions{"searched": Logs(nil), "plain": nil} {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, options)).With("logger", "models")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out.Reset()
				log.Warn("Answered a model call with an error", "feature", "shop/login", "dialect", "anthropic", "backend", "main", "model", "large",
					"reason", "BackendUnreachable", "status", 503, "message", "tidewaiter: the backend main cannot be reached: connection refused")
			}
		})
	}
}

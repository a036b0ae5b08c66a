// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/core/worker"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// desk is a watchdog behind the real server of tools: it takes every patch but those of a forbidden path, and writes down what it
// is told.
type desk struct {
	tree *objects.Tree

	mu      sync.Mutex
	patches []string // operation ID and what came of it
	waits   int      // how often a question is to be asked before a person answers
	asked   int
	summary string
	leaving bool // every other patch and word has no result, because the watchdog is ending
	away    bool
}

func (d *desk) leaves() bool {
	d.away = d.leaving && !d.away
	return d.away
}

func (d *desk) Open() []directives.Directive { return nil }

func (d *desk) Settle(directives.Word) error { return nil }

func (d *desk) Context() tools.Context {
	return tools.Context{Feature: "shop/login", Task: "form", Prompt: "the prompt once more", Instructions: "the instructions once more", AllowedAreas: []string{"web/**"}}
}

func (d *desk) Tree() (*objects.Tree, error) { return d.tree, nil }

func (d *desk) Apply(_ context.Context, operation, patch string) (tools.PatchResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaves() {
		return tools.PatchResult{}, fmt.Errorf("patch %s: %w", operation, tools.ErrAway)
	}
	r := tools.PatchResult{OperationID: operation, Status: tools.Applied, Message: "laid in"}
	if strings.Contains(patch, "web/legacy") {
		r.Status, r.Message = tools.Refused, "the patch breaks a rule"
		r.Violations = []tools.Violation{{Rule: "forbidden-areas", Path: "web/legacy/a.html", Severity: "Error", Message: "it is forbidden", Suggestion: "write elsewhere"}}
	}
	d.patches = append(d.patches, operation+" "+r.Status)
	return r, nil
}

func (d *desk) Asks() bool { return true }

func (d *desk) Ask(_ context.Context, q protocol.Question) (tools.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked++; d.asked <= d.waits {
		return tools.Answer{QuestionID: q.ID, Status: tools.Waiting, Message: "ask again"}, nil
	}
	return tools.Answer{QuestionID: q.ID, Status: tools.Answered, Answer: "teal"}, nil
}

func (d *desk) Complete(_ context.Context, summary string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaves() {
		return tools.ErrAway
	}
	if summary == "too early" {
		return errors.New("not yet")
	}
	d.summary = summary
	return nil
}

// office is everything around a worker: a watchdog's tools, and a provider behind the prefixes of dialects.
type office struct {
	t    *testing.T
	desk *desk
	// repository with a few files.
	repository *git.Repository
	provider   *provider.Server
	options    Options
	// slept are the pauses that the worker has made; nobody waits for them.
	slept []time.Duration
	// address of the tools, and what ends their server.
	address string
	close   func()
}

// newOffice whose files are so large.
func newOffice(t *testing.T, name string, fileSize int) *office {
	t.Helper()
	o := &office{t: t, desk: &desk{}, provider: provider.New("")}
	o.files(fileSize)
	o.serveTools("127.0.0.1:0")
	t.Cleanup(func() { o.close() })
	d, _ := dialect.Find(name)
	models := httptest.NewServer(http.StripPrefix(d.Prefix, o.provider))
	t.Cleanup(models.Close)
	speech, found := speech.Find(name)
	if !found {
		t.Fatalf("no dialect %q", name)
	}
	o.options = Options{
		Models: models.URL, Tools: "http://" + o.address + protocol.MCPPath, Speech: speech, Bounds: worker.DefaultBounds, Call: time.Minute, Tool: time.Minute,
		Sleep: func(ctx context.Context, d time.Duration) bool {
			o.slept = append(o.slept, d)
			return ctx.Err() == nil
		}, Log: slog.New(slog.DiscardHandler),
	}
	return o
}

// files of the repository.
func (o *office) files(size int) {
	o.t.Helper()
	repository, err := git.Init(o.t.Context(), filepath.Join(o.t.TempDir(), "repo.git"), git.Options{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.repository = repository
	o.t.Cleanup(func() {
		if err := repository.Close(); err != nil {
			o.t.Error(err)
		}
	})
	pack := repository.Store().NewPack(nil)
	var edits []objects.Edit
	for _, name := range []string{"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"} {
		id, err := pack.Add(objects.KindBlob, []byte(strings.Repeat(name+"\n", size/6)))
		if err != nil {
			o.t.Fatal(err)
		}
		edits = append(edits, objects.Edit{Path: name, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: int64(size)}})
	}
	o.desk.tree, err = (&objects.Tree{}).Apply(edits, func(id objects.ID, content []byte) error { return pack.AddNamed(id, objects.KindTree, content) })
	if err := errors.Join(err, pack.Commit()); err != nil {
		o.t.Fatal(err)
	}
}

// serveTools at an address.
func (o *office) serveTools(address string) {
	o.t.Helper()
	var l net.Listener
	var err error
	for range 100 { // the one before may have just gone
		if l, err = tools.Listen(address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- tools.Serve(ctx, l, tools.Options{Backend: o.desk, ReadOnly: true, Directives: o.desk, Repository: o.repository, Log: slog.New(slog.DiscardHandler)})
	}()
	o.address = l.Addr().String()
	o.close = func() {
		stop()
		if err := <-served; err != nil {
			o.t.Error(err)
		}
		o.close = func() {}
	}
}

// work on a task whose model plays a script.
func (o *office) work(script string) error {
	o.options.Task = "Add a form.\n```script\nturns:\n" + script + "\n```\n"
	return Run(o.t.Context(), o.options)
}

// bodies of the requests that the model has answered.
func (o *office) bodies() (list []string) {
	for _, r := range o.provider.Recorded() {
		if r.Status == http.StatusOK {
			list = append(list, r.Body)
		}
	}
	return list
}

// last request.
func (o *office) last() string {
	o.t.Helper()
	bodies := o.bodies()
	if len(bodies) == 0 {
		o.t.Fatal("the model was asked nothing")
	}
	return bodies[len(bodies)-1]
}

// each dialect has a test of its own.
func each(t *testing.T, test func(t *testing.T, name string)) {
	t.Helper()
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) { test(t, d.Name) })
	}
}

func patch(operation, path string) string {
	return fmt.Sprintf(`{name: repo_apply_patch, input: {operation_id: %s, patch: "diff --git a/%[2]s b/%[2]s"}}`, operation, path)
}

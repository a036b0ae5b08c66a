// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// deskStub knows a tree, and does nothing.
type deskStub struct {
	tree *objects.Tree
	// silent: the agent may not ask.
	silent bool
}

func (d deskStub) Context() Context             { return Context{Task: "form"} }
func (d deskStub) Tree() (*objects.Tree, error) { return d.tree, nil }
func (d deskStub) Apply(_ context.Context, operation, _ string) (PatchResult, error) {
	if operation == "away" {
		return PatchResult{}, fmt.Errorf("patch: %w", ErrAway)
	}
	return PatchResult{OperationID: operation, Status: Applied}, nil
}

func (d deskStub) Asks() bool                                             { return !d.silent }
func (d deskStub) Ask(context.Context, protocol.Question) (Answer, error) { return Answer{}, nil }
func (d deskStub) Complete(context.Context, string) error {
	return errors.New("not yet")
}

// understands knows one rule.
func understands(said ...notice.Understood) error {
	if !slices.Equal(said, []notice.Understood{{Rule: "areas", Instead: "I write to web"}}) {
		return fmt.Errorf("not this: %+v", said)
	}
	return nil
}

// serve begins to serve a tree of files, and gives the URL.
func serve(t *testing.T, files map[string]string) string {
	t.Helper()
	return serveSaying(t, files, nil)
}

// serveSaying says words beside results, too.
func serveSaying(t *testing.T, files map[string]string, words func() string) string {
	t.Helper()
	repository, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pack := repository.Store().NewPack(nil)
	var edits []objects.Edit
	for path, content := range files {
		id, err := pack.Add(objects.KindBlob, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: int64(len(content))}})
	}
	tree, err := (&objects.Tree{}).Apply(edits, func(id objects.ID, content []byte) error { return pack.AddNamed(id, objects.KindTree, content) })
	if err := errors.Join(err, pack.Commit()); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, l, Options{Backend: deskStub{tree: tree}, ReadOnly: true, Words: words, Directives: deskStub{}, Understood: understands, Repository: repository, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, repository.Close()); err != nil {
			t.Error(err)
		}
	})
	return URL(l)
}

func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool; what it fails of comes back as text.
func call[T any](t *testing.T, s *mcp.ClientSession, name string, in map[string]any) (out T, failure string) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		return out, err.Error()
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return out, text
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
	return out, ""
}

// TestWords stand beside what a tool gives, or what it fails of, in a text of their own, and beside nothing else.
func TestWords(t *testing.T) {
	said := []string{"", "stop", "go on"}
	session := connect(t, serveSaying(t, nil, func() string {
		text := said[0]
		said = said[1:]
		return text
	}))
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool  string
		in    map[string]any
		want  string
		fails bool
	}{{"feature_get_context", nil, "", false}, {"feature_get_context", nil, "stop", false}, {"task_complete", map[string]any{"summary": "x"}, "go on", true}} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.in})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, content := range result.Content {
			texts = append(texts, content.(*mcp.TextContent).Text)
		}
		if result.IsError != c.fails || len(texts) == 0 || strings.Join(texts[1:], "|") != c.want || (result.StructuredContent == nil) != c.fails {
			t.Errorf("%s: %t %q, want %q", c.tool, result.IsError, texts, c.want)
		}
	}
}

func TestTools(t *testing.T) {
	session := connect(t, serve(t, nil))
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"ask_user", "directive_settle", "feature_get_context", "repo_apply_patch", "repo_read_file", "repo_search", "task_complete", "violation_acknowledge"}; !slices.Equal(names, want) {
		t.Errorf("tools %v", names)
	}
}

func TestAcknowledge(t *testing.T) {
	s := connect(t, serve(t, nil))
	if out, failure := call[understoodOutput](t, s, "violation_acknowledge", map[string]any{"rule": "areas", "instead": "I write to web"}); failure != "" || out.Message == "" {
		t.Errorf("%+v, %s", out, failure)
	}
	for _, in := range []map[string]any{{}, {"rule": "", "instead": "x"}, {"rule": "other", "instead": "x"}, {"rule": 7, "instead": "x"}} {
		if out, failure := call[understoodOutput](t, s, "violation_acknowledge", in); failure == "" {
			t.Errorf("%v: %+v", in, out)
		}
	}
}

func TestReadFile(t *testing.T) {
	large := strings.Repeat("äb\n", 40_000)
	s := connect(t, serve(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "web/large.txt": large, "web/x.png": "\x89PNG\x00", "web/latin1": "\xe4"}))
	page := func(in map[string]any) (readOutput, string) { return call[readOutput](t, s, "repo_read_file", in) }

	if got, failure := page(map[string]any{"path": "a.txt", "offset": 4, "limit": 4}); got.Content != "two\n" || got.FirstLine != 2 || got.NextOffset != 8 || got.Size != 14 || failure != "" {
		t.Errorf("a page: %+v, %s", got, failure)
	}
	if got, failure := page(map[string]any{"path": "/"}); !slices.Equal(got.Entries, []string{"a.txt", "web/"}) || failure != "" {
		t.Errorf("the root: %+v, %s", got, failure)
	}
	var whole strings.Builder
	for offset, pages := int64(0), 0; ; pages++ {
		got, failure := page(map[string]any{"path": "web/large.txt", "offset": offset})
		if failure != "" || len(got.Content) > maxPage || pages > 4 {
			t.Fatalf("page %d: %d bytes, %s", pages, len(got.Content), failure)
		}
		whole.WriteString(got.Content)
		if offset = got.NextOffset; offset == 0 {
			break
		}
	}
	if whole.String() != large {
		t.Error("the pages are not the file")
	}
	if got, failure := page(map[string]any{"path": "web/large.txt", "limit": 1}); got.Content != "ä" || failure != "" {
		t.Errorf("less than a character: %q, %s", got.Content, failure)
	}
	for _, path := range []string{"web/x.png", "web/latin1"} {
		if got, failure := page(map[string]any{"path": path}); !got.Binary || got.Content != "" || failure != "" {
			t.Errorf("%s: %+v, %s", path, got, failure)
		}
	}
	for _, in := range []map[string]any{
		{"path": "no"}, {"path": "../etc/passwd"}, {"path": "a.txt/b"}, {"path": "a.txt", "offset": -1}, {"path": "a.txt", "offset": 15}, {"path": 7}, {},
	} {
		if got, failure := page(in); failure == "" {
			t.Errorf("%v: %+v", in, got)
		}
	}
}

func TestSearch(t *testing.T) {
	files := map[string]string{
		"a.txt": "alpha\nbeta (1)\n", "web/b.txt": "beta (2)\nBETA\n", "web/deep/c.txt": "no\nbeta\n", "web/x.bin": "beta\x00",
		"large.txt": strings.Repeat("beta\n", maxSearched/5+1), "many1.txt": strings.Repeat("gamma\n", 150), "many2.txt": strings.Repeat("gamma\n", 150), "many3.txt": "gamma\n",
	}
	s := connect(t, serve(t, files))
	for name, tc := range map[string]struct {
		in   map[string]any
		want string
		fail string
	}{
		"literal":        {in: map[string]any{"query": "beta ("}, want: "a.txt:2:beta (1) web/b.txt:1:beta (2)"},
		"an expression":  {in: map[string]any{"query": "(?i)^beta$", "regexp": true}, want: "web/b.txt:2:BETA web/deep/c.txt:2:beta"},
		"below":          {in: map[string]any{"query": "beta", "under": "web/deep/"}, want: "web/deep/c.txt:2:beta"},
		"one file":       {in: map[string]any{"query": "beta", "under": "a.txt"}, want: "a.txt:2:beta (1)"},
		"nothing":        {in: map[string]any{"query": "delta"}},
		"no expression":  {in: map[string]any{"query": "(", "regexp": true}, fail: "no RE2 expression"},
		"no query":       {in: map[string]any{"query": ""}, fail: "query must have"},
		"a long query":   {in: map[string]any{"query": strings.Repeat("x", maxQuery+1)}, fail: "query must have"},
		"after no file":  {in: map[string]any{"query": "x", "after": "nowhere"}, fail: "after names no file"},
		"after the last": {in: map[string]any{"query": "beta", "after": "web/x.bin"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, failure := call[searchOutput](t, s, "repo_search", tc.in)
			var got []string
			for _, m := range out.Matches {
				got = append(got, m.Path+":"+string(rune('0'+m.Line))+":"+m.Text)
			}
			if strings.Join(got, " ") != tc.want || !strings.Contains(failure, tc.fail) || (failure == "") != (tc.fail == "") {
				t.Errorf("matches %q, failure %q", got, failure)
			}
		})
	}
	found, after := 0, ""
	for pages := range 5 {
		out, failure := call[searchOutput](t, s, "repo_search", map[string]any{"query": "gamma", "after": after})
		if failure != "" {
			t.Fatal(failure)
		}
		found += len(out.Matches)
		if after = out.NextAfter; after == "" {
			if pages != 1 || out.Skipped != 1 {
				t.Errorf("%d pages, %d skipped", pages+1, out.Skipped)
			}
			break
		}
	}
	if found != 301 {
		t.Errorf("%d matches over all pages", found)
	}
}

func TestIdsAndBounds(t *testing.T) {
	s := connect(t, serve(t, nil))
	for name, in := range map[string]map[string]any{
		"repo_apply_patch": {"operation_id": "a b", "patch": ""},
		"ask_user":         {"question_id": "q1", "question": strings.Repeat("x", 1001)},
		"task_complete":    {"summary": strings.Repeat("x", maxSummary+1)},
	} {
		if _, failure := call[struct{}](t, s, name, in); failure == "" {
			t.Errorf("%s took %v", name, in)
		}
	}
	if _, failure := call[struct{}](t, s, "task_complete", map[string]any{"summary": "x"}); failure != "not yet" {
		t.Errorf("an error of the backend: %q", failure)
	}
	if got, failure := call[PatchResult](t, s, "repo_apply_patch", map[string]any{"operation_id": "op-1", "patch": strings.Repeat("\x01", protocol.MaxPatchBytes)}); got.OperationID != "op-1" || failure != "" {
		t.Errorf("the longest patch: %+v, %.100s", got, failure)
	}
}

// TestStrangersAreRefused: what a browser that was led here would send is refused, whatever it asks for.
func TestStrangersAreRefused(t *testing.T) {
	url := serve(t, nil)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"a client in the pod":   {func(*http.Request) {}, http.StatusOK},
		"by the name localhost": {func(r *http.Request) { r.Host = "localhost" + r.Host[strings.LastIndex(r.Host, ":"):] }, http.StatusOK},
		"another host name":     {func(r *http.Request) { r.Host = "evil.example.com" }, http.StatusForbidden},
		"another port":          {func(r *http.Request) { r.Host = "127.0.0.1:1" }, http.StatusForbidden},
		"a web page":            {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") }, http.StatusForbidden},
		"a page of nowhere":     {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"another path":          {func(r *http.Request) { r.URL.Path = "/" }, http.StatusNotFound},
		"a form":                {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"a stream":              {func(r *http.Request) { r.Method, r.Body = http.MethodGet, http.NoBody }, http.StatusMethodNotAllowed},
		"too much": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, maxBody+1)), -1
		}, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			tc.change(r)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != tc.want {
				text, _ := io.ReadAll(answer.Body)
				t.Errorf("status %d, want %d: %.200s", answer.StatusCode, tc.want, text)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestListensOnLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "10.0.0.1:80", "example.com:80", ":80"} {
		if l, err := Listen(address); err == nil {
			l.Close()
			t.Errorf("listens at %s", address)
		}
	}
}

// TestNoResult: a call that has none is an error of the protocol, and what is to be said beside a result is kept for one.
func TestNoResult(t *testing.T) {
	said := 0
	session := connect(t, serveSaying(t, nil, func() string { said++; return "words" }))
	in := map[string]any{"operation_id": "away", "patch": "diff"}
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "repo_apply_patch", Arguments: in})
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code != codeAway || answer.Message != ErrAway.Error() || said != 0 {
		t.Errorf("%d words, error %v", said, err)
	}
	in["operation_id"] = "here"
	if result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "repo_apply_patch", Arguments: in}); err != nil || result.IsError || said != 1 {
		t.Errorf("%d words, result %+v, error %v", said, result, err)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestToolsBesideOthers: an agent that can write itself has the tools that need the supervisor, and no others. What they add to each request
// of its model is at most 1,500 tokens of four bytes, whatever of it the client sends on.
func TestToolsBesideOthers(t *testing.T) {
	const most = 1500 * 4
	server := httptest.NewUnstartedServer(nil)
	defer server.Close()
	server.Config.Handler = handler(server.Listener.Addr().String(), Options{Backend: deskStub{}, Directives: deskStub{}, Log: slog.New(slog.DiscardHandler)})
	server.Start()
	session := connect(t, server.URL+"/mcp")
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"ask_user", "directive_settle", "feature_get_context", "task_complete"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	instructions := session.InitializeResult().Instructions
	if size := len(text) + len(instructions); size > most {
		t.Errorf("%d bytes, want at most %d", size, most)
	} else {
		t.Logf("%d bytes of at most %d", size, most)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "repo_apply_patch", Arguments: map[string]any{"operation_id": "one", "patch": "p"}}); err == nil {
		t.Error("it can send patches")
	}
}

// TestNoQuestions: where the policy lets nobody be asked, neither a tool nor a text speaks of it.
func TestNoQuestions(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		server := httptest.NewUnstartedServer(nil)
		defer server.Close()
		server.Config.Handler = handler(server.Listener.Addr().String(), Options{Backend: deskStub{silent: true}, ReadOnly: readOnly, Directives: deskStub{}, Understood: understands, Log: slog.New(slog.DiscardHandler)})
		server.Start()
		session := connect(t, server.URL+"/mcp")
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list.Tools)
		if err != nil {
			t.Fatal(err)
		}
		if all := string(text) + session.InitializeResult().Instructions; strings.Contains(all, "ask_user") || !strings.Contains(all, "task_complete") {
			t.Errorf("read-only %v: %s", readOnly, all)
		}
	}
}

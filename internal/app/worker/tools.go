// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/core/worker"
)

const (
	// maxAway is how often a call is made while nobody serves the tools: a watchdog that ended is back within a minute or so.
	maxAway = 15
	// firstAway is the pause between two such calls; it doubles up to lastAway.
	firstAway, lastAway = 250 * time.Millisecond, 15 * time.Second
	// longestWait for an answer of a user in one call of ask_user, in seconds; it is the most that the server takes.
	longestWait = 50
)

// toolbox calls the watchdog's tools.
type toolbox struct {
	options Options
	session *mcp.ClientSession // nil while there is none
}

// do something in a session. The watchdog may end and come back: each of its tools does nothing twice.
func (t *toolbox) do(ctx context.Context, act func(context.Context, *mcp.ClientSession) error) error {
	for away := 0; ; away++ {
		err := t.once(ctx, act)
		if err == nil || answered(err) != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.close() // a session that broke is of no use
		if away == maxAway {
			return fmt.Errorf("cannot reach the tools: %w", err)
		}
		t.options.Log.WarnContext(ctx, "Cannot reach the tools", "error", err.Error())
		if !t.options.Sleep(ctx, min(firstAway<<away, lastAway)) {
			return ctx.Err()
		}
	}
}

func (t *toolbox) once(ctx context.Context, act func(context.Context, *mcp.ClientSession) error) error {
	if t.session == nil {
		client := mcp.NewClient(&mcp.Implementation{Name: "tidewaiter-worker", Version: "1"}, nil)
		// They are on the pod's loopback: no proxy is between.
		transport := &mcp.StreamableClientTransport{
			Endpoint: t.options.Tools, HTTPClient: &http.Client{Transport: &http.Transport{}}, DisableStandaloneSSE: true, MaxRetries: -1,
		}
		session, err := client.Connect(ctx, transport, nil)
		if err != nil {
			return err
		}
		t.session = session
	}
	ctx, cancel := context.WithTimeout(ctx, t.options.Tool)
	defer cancel()
	return act(ctx, t.session)
}

func (t *toolbox) close() {
	if t.session != nil {
		_ = t.session.Close()
		t.session = nil
	}
}

// list the tools, and what their server says of them.
func (t *toolbox) list(ctx context.Context) (list []speech.Tool, instructions string, err error) {
	err = t.do(ctx, func(ctx context.Context, s *mcp.ClientSession) error {
		list, instructions = nil, ""
		if r := s.InitializeResult(); r != nil {
			instructions = r.Instructions
		}
		for tool, err := range s.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			schema, err := json.Marshal(tool.InputSchema)
			if err != nil {
				return fmt.Errorf("schema of %s: %w", tool.Name, err)
			}
			list = append(list, speech.Tool{Name: tool.Name, Description: tool.Description, Schema: schema})
		}
		return nil
	})
	return list, instructions, err
}

// call a tool. What it fails of is for the model; an error is that it could not be called at all.
func (t *toolbox) call(ctx context.Context, name string, arguments json.RawMessage) (text string, failed bool, err error) {
	err = t.do(ctx, func(ctx context.Context, s *mcp.ClientSession) error {
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			return err
		}
		var said strings.Builder
		for _, content := range result.Content {
			if c, is := content.(*mcp.TextContent); is {
				said.WriteString(c.Text)
			}
		}
		text, failed = said.String(), result.IsError
		return nil
	})
	said := answered(err)
	if said != nil { // such as that there is no such tool
		text, failed, err = said.Message, true, nil
	}
	return text, failed, err
}

// answered is an error that the server has answered with; nil for any other, such as an error of an ended session.
func answered(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code >= jsonrpc.CodeParseError && said.Code <= jsonrpc.CodeInvalidRequest {
		return said
	}
	return nil
}

// asked calls ask_user until a user has answered: waiting costs no turn of the model.
func (t *toolbox) asked(ctx context.Context, arguments json.RawMessage) (text string, failed bool, err error) {
	for {
		if text, failed, err = t.call(ctx, worker.ToolQuestion, arguments); err != nil || failed || !pending(text) {
			return text, failed, err
		}
		t.options.Log.InfoContext(ctx, "Waiting for a user's answer")
		if !t.options.Sleep(ctx, time.Second) {
			return "", false, ctx.Err()
		}
		if arguments, err = patiently(arguments); err != nil {
			return "", false, err
		}
	}
}

// pending says whether nobody has answered a question.
func pending(text string) bool {
	var answer struct {
		Status string `json:"status"`
	}
	return json.Unmarshal([]byte(text), &answer) == nil && answer.Status == "pending"
}

// patiently is the same question with the longest wait for an answer.
func patiently(arguments json.RawMessage) (json.RawMessage, error) {
	var question map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &question); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", worker.ToolQuestion, err)
	}
	question["wait_seconds"] = json.RawMessage(strconv.Itoa(longestWait))
	return json.Marshal(question)
}

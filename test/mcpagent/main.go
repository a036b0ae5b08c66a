// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mcpagent is an agent's MCP client for scripts, in the demo and the end-to-end tests: it calls one tool of the
// server at TIDEWAITER_MCP_URL and prints its result.
//
//	mcpagent repo_apply_patch operation_id=op1 patch=@fix.patch
//
// A value that begins with @ is read from that file. The exit code is 0 when the tool worked, 1 when it failed; then its
// text goes to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const urlVariable = "TIDEWAITER_MCP_URL"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	url := os.Getenv(urlVariable)
	if len(args) == 0 || url == "" {
		return errors.New("usage: mcpagent TOOL [NAME=VALUE|NAME=@FILE]…, with " + urlVariable + " set")
	}
	arguments := map[string]string{}
	for _, arg := range args[1:] {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("argument %q is not NAME=VALUE", arg)
		}
		if file, isFile := strings.CutPrefix(value, "@"); isFile {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			value = string(content)
		}
		arguments[name] = value
	}
	return call(ctx, url, args[0], arguments)
}

func call(ctx context.Context, url, tool string, arguments map[string]string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpagent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", url, err)
	}
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return fmt.Errorf("call %s: %w", tool, err)
	}
	var text strings.Builder
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", tool, text.String())
	}
	_, err = fmt.Println(text.String())
	return err
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// instructions for an agent that works through the tools, or that has others to read and write with.
func instructions(readOnly, asks bool) string {
	ask := ""
	if asks {
		ask = "Call ask_user when only a user can decide. "
	}
	if !readOnly {
		return `A supervisor checks your work. feature_get_context says which paths may change and which directives of users are open: address
each, and settle it with directive_settle. ` + ask + `When the task is done, call task_complete, and then end.`
	}
	return `The workspace is read-only. Read files with repo_read_file and repo_search, change them with repo_apply_patch. The
supervisor checks each patch by the rules of the project before it applies it. A patch that breaks a rule comes back with the rule and
what to do instead. Call feature_get_context first. ` + ask + `Call task_complete when the task is done; then exit.
Address every directive of feature_get_context, and settle it with directive_settle.`
}

// maxSummary bounds what an agent says of a finished task, in bytes.
const maxSummary = 4000

// idFormat of operations and questions; a user has to write the latter into spec.answers.
var idFormat = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,%d}[A-Za-z0-9])?$`, protocol.MaxToolID-2))

type nothing struct{}

type patchInput struct {
	OperationID string `json:"operation_id" jsonschema:"your own id for this change, unique within the task; sending the same patch again with the same id does nothing twice"`
	Patch       string `json:"patch" jsonschema:"unified patch in Git's format, beginning with diff --git a/PATH b/PATH; hunks need at least one line of context and exact line numbers"`
}

type questionInput struct {
	QuestionID  string `json:"question_id" jsonschema:"your own id for the question, such as q1; ask again with the same id to hear the answer"`
	Question    string `json:"question" jsonschema:"the question, in at most 1000 bytes"`
	WaitSeconds int    `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the answer, at most 50, which is the default"`
}

type completeInput struct {
	Summary string `json:"summary" jsonschema:"what was done, for people, in at most 4000 bytes"`
}

type completeOutput struct {
	Message string `json:"message"`
}

// longestWait for an answer in one call: clients give up on a request after a minute or more. It is also the default, because each further call
// costs a turn of a model.
const longestWait = 50 * time.Second

// register makes the tools known to a server, with the one for questions or without it. A new tool is a few lines here and one in a text above.
func register(s *mcp.Server, o Options, asks bool) {
	registerContext(s, o)
	if o.ReadOnly {
		registerRepository(s, o)
	}
	if asks {
		registerQuestions(s, o)
	}
	registerDirectives(s, o.Directives)
	if o.ReadOnly {
		registerUnderstood(s, o.Understood)
	}
	registerComplete(s, o)
}

func registerQuestions(s *mcp.Server, o Options) {
	mcp.AddTool(s, &mcp.Tool{Name: "ask_user", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		Description: "Ask a user. Users may take hours: while the status is pending, call it again with the same question_id."},
		func(ctx context.Context, _ *mcp.CallToolRequest, in questionInput) (*mcp.CallToolResult, Answer, error) {
			return ask(ctx, o.Backend, in)
		})
}

func registerContext(s *mcp.Server, o Options) {
	mcp.AddTool(s, &mcp.Tool{Name: "feature_get_context", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		Description: "What to do: task, prompt, instructions, which paths may change, what people have answered, and which of their directives to address."},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, Context, error) {
			c := o.Backend.Context()
			c.Directives = open(o.Directives)
			return nil, c, nil
		})
}

// registerRepository registers the tools by which an agent that cannot write to the workspace reads and changes it.
func registerRepository(s *mcp.Server, o Options) {
	r := reader{backend: o.Backend, repository: o.Repository}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "repo_read_file", Annotations: readOnly,
		Description: "Read a text file of the workspace, page by page, or list a directory (path \"\" is the root)."}, r.readFile)
	mcp.AddTool(s, &mcp.Tool{Name: "repo_search", Annotations: readOnly,
		Description: "Search the text files of the workspace for a literal text or an RE2 expression, page by page."}, r.search)
	mcp.AddTool(s, &mcp.Tool{Name: "repo_apply_patch", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		Description: "Change files. The supervisor checks the patch first. If it breaks a rule, no file changes, and the answer says which rule, which path and how to fix it."},
		func(ctx context.Context, _ *mcp.CallToolRequest, in patchInput) (*mcp.CallToolResult, PatchResult, error) {
			if !idFormat.MatchString(in.OperationID) {
				return nil, PatchResult{}, badID("operation_id")
			}
			out, err := o.Backend.Apply(ctx, in.OperationID, in.Patch)
			return nil, out, err
		})
}

// registerComplete registers the tool by which an agent says that its task is done. An agent that can write itself ends its task by its exit
// code, so the tool takes its summary and no more.
func registerComplete(s *mcp.Server, o Options) {
	description, message := "Say that the task is done. Afterwards the supervisor takes no patch any more: exit with code 0.",
		"The task is done once your process has exited with code 0. Exit now."
	if !o.ReadOnly {
		description, message = "Say that the task is done, and what was done: people and the agents of later tasks read it.", "The supervisor notes it. End now."
	}
	mcp.AddTool(s, &mcp.Tool{Name: "task_complete", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}, Description: description},
		func(ctx context.Context, _ *mcp.CallToolRequest, in completeInput) (*mcp.CallToolResult, completeOutput, error) {
			if len(in.Summary) > maxSummary {
				return nil, completeOutput{}, fmt.Errorf("summary has %d bytes, and the limit is %d", len(in.Summary), maxSummary)
			}
			return nil, completeOutput{Message: message}, o.Backend.Complete(ctx, in.Summary)
		})
}

func badID(name string) error {
	return fmt.Errorf("%s must be 1 to %d letters, digits, '.', '_' or '-', with a letter or digit at both ends", name, protocol.MaxToolID)
}

func ask(ctx context.Context, backend Backend, in questionInput) (*mcp.CallToolResult, Answer, error) {
	switch {
	case !idFormat.MatchString(in.QuestionID):
		return nil, Answer{}, badID("question_id")
	case in.Question == "" || len(in.Question) > protocol.MaxQuestionBytes:
		return nil, Answer{}, fmt.Errorf("question must have 1 to %d bytes", protocol.MaxQuestionBytes)
	case in.WaitSeconds < 0:
		return nil, Answer{}, errors.New("wait_seconds must not be negative")
	}
	wait := longestWait
	if in.WaitSeconds > 0 {
		wait = min(time.Duration(min(in.WaitSeconds, 3600))*time.Second, longestWait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out, err := backend.Ask(ctx, protocol.Question{ID: in.QuestionID, Text: in.Question})
	return nil, out, err
}

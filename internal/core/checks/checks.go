// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks compiles the rules that users write in CEL. It is separate from package judge, which gets the compiler as a value, so that
// programs that only exchange verdicts do not link CEL.
package checks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
)

// maxCost bounds one evaluation, in CEL's own units: about a millisecond. A comparison costs a unit or two, a regular
// expression on a path of ordinary length a few dozen.
const maxCost = 10_000

// Compile compiles an expression, or says why it cannot be used. Every variable has its type, so that Compile finds an unknown name or a
// wrong type, and not a later check of some path.
//
// The program says of a changed file, given by its variables, whether it violates the check and what the evaluation cost. It fails if the
// expression fails or costs too much.
func Compile(expression string) (program func(file map[string]any) (violated bool, cost uint64, err error), err error) {
	env, err := cel.NewEnv(
		cel.Variable("file.path", cel.StringType),
		cel.Variable("file.mode", cel.StringType),
		cel.Variable("file.size", cel.IntType),
		cel.Variable("file.linesAdded", cel.IntType),
		cel.Variable("file.linesRemoved", cel.IntType),
		cel.Variable("file.kind", cel.StringType),
		cel.Variable("file.role", cel.StringType),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		message := oneLine(err.Error())
		if strings.Contains(message, "undeclared reference to 'file'") {
			message += "; a file has path, mode, size, linesAdded, linesRemoved, kind and role"
		}
		return nil, errors.New(message)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("it is a %s: write an expression that is true where the check is violated", ast.OutputType())
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxCost))
	if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	return func(file map[string]any) (bool, uint64, error) { return evaluate(p, file) }, nil
}

func evaluate(p cel.Program, file map[string]any) (violated bool, cost uint64, err error) {
	result, details, err := p.Eval(file)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if err != nil {
		return false, cost, fmt.Errorf("evaluate: %w", err)
	}
	violated, ok := result.Value().(bool)
	if !ok {
		return false, cost, errors.New("the result is not true or false")
	}
	return violated, cost, nil
}

// oneLine is a compiler's message without its drawing of where the fault is, and without the name that it gives to a text
// that has none.
func oneLine(message string) string {
	var parts []string
	for line := range strings.Lines(message) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "ERROR: <input>:")
		if line != "" && line[0] != '|' {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

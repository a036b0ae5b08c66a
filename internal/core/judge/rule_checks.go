// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// maxChecksCost bounds all evaluations of one check, in CEL's own units: a few seconds, and a thousand times what
	// a dozen plain checks cost on a thousand files. What is not evaluated for it is a violation.
	maxChecksCost = 50_000_000
	// maxRemembered bounds the compiled checks of a memory: four policies with as many checks as the API takes.
	maxRemembered = 256
)

// Program is a compiled check. It says whether a changed file, given by its variables, violates the check, and what the evaluation cost.
type Program = func(file map[string]any) (violated bool, cost uint64, err error)

// compiled is a check that can be evaluated, or why it cannot.
type compiled struct {
	program Program
	err     error
}

// userChecks are the rules that users write. A check that cannot be compiled or evaluated is broken, whatever its severity:
// nobody knows what it would have said.
func userChecks() Rule {
	with := func(severity policy.Severity, expressions ...string) policy.Effective {
		var e policy.Effective
		for i, expression := range expressions {
			e.Checks = append(e.Checks, policy.Check{
				Name: fmt.Sprintf("check-%c", 'a'+i), CEL: expression, Message: "that must not be", Severity: severity,
			})
		}
		return e
	}
	texts := contentsOf(map[string]string{sampleID: "a\nb\nc\n", otherID: "a\nx\ny\nc\n"})
	sized := addFile("a.bin")
	sized.New.Size = 1000
	return Rule{
		ID:     "checks",
		Reason: "CheckViolated",
		Doc: "No file may violate a check of the policy, which is an expression in CEL. It can use file.path, file.mode (such as \"100644\", empty for a deleted file), file.size (in bytes, after the change), file.linesAdded and file.linesRemoved. " +
			"It can also use file.kind (Added, Modified, Deleted or TypeChanged) and file.role (the agent's). " +
			"The watchdog evaluates it for every changed path, and a path for which it is true violates it. The violation has the check's name. A check that does not compile, fails or costs too much counts as violated.",
		Severity:   "the check's own, by default Error; at least Error if the watchdog cannot evaluate the check",
		Suggestion: "undo the change, or make it in a way that the check allows",
		check:      violatedChecks,
		Reject: []Sample{
			{"by path", Input{Policy: with("", "file.path.endsWith('.sql')"), Changes: []Change{addFile("db/a.sql")}}},
			{"by kind, mode and role", Input{
				Role: "writer", Policy: with("", "file.kind == 'Modified' && file.mode == '100644' && file.role == 'writer'"), Changes: []Change{modifyFile("a")},
			}},
			{"by lines", Input{Policy: with("", "file.linesAdded == 2 && file.linesRemoved == 1"), Changes: []Change{modifyFile("a")}, Contents: texts}},
			{"by size", Input{Policy: with("", "file.size >= 1000"), Changes: []Change{sized}}},
			{"a deleted file", Input{Policy: with("", "file.mode == ''"), Changes: []Change{deleteFile("a")}}},
			{"the second of two", Input{Policy: with("", "false", "true"), Changes: []Change{addFile("a")}}},
			{"a text that is not an expression", Input{Policy: with(policy.Info, "file.path =="), Changes: []Change{addFile("a")}}},
			{"a name that does not exist", Input{Policy: with(policy.Info, "file.pth == 'a'"), Changes: []Change{addFile("a")}}},
			{"a result that is not true or false", Input{Policy: with(policy.Info, "file.size"), Changes: []Change{addFile("a")}}},
			{"an expression that fails", Input{Policy: with(policy.Info, "1 / file.size == 1"), Changes: []Change{addFile("a")}}},
			{"an expression that costs too much", Input{
				Policy: with(policy.Info, "[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c, [1,2,3,4,5,6,7,8].all(d, a + b + c + d > 0))))"), Changes: []Change{addFile("a")},
			}},
		},
		Accept: []Sample{
			{"a file that it does not mean", Input{Policy: with("", "file.path.matches('^db/.*[.]sql$') && file.linesAdded > 500"), Changes: []Change{addFile("db/a.sql")}}},
			{"an expression that would fail but is not asked to", Input{Policy: with("", "file.size > 0 && 1 / file.size == 1"), Changes: []Change{addFile("a")}}},
			{"no checks", Input{Changes: []Change{addFile("a")}}},
		},
	}
}

// violatedChecks evaluates every check on every change.
func violatedChecks(v *view) []breach {
	var found []breach
	var spent uint64
	variables := make(map[string]any) // of one change after the other
	for _, check := range v.Policy.Checks {
		report := func(path, message string, severity policy.Severity) {
			found = append(found, breach{rule: check.Name, path: path, severity: severity, message: message})
		}
		worse := check.Severity.OrError()
		if !worse.Blocks() {
			worse = policy.Error
		}
		ready := v.compiledCheck(check.CEL)
		if ready.err != nil {
			report("", fmt.Sprintf("the check %s cannot be used: %s", quoteName(check.Name), quoteText(ready.err.Error())), worse)
			continue
		}
		for i, c := range v.changes {
			if v.stopped() {
				return nil
			}
			if spent > maxChecksCost {
				report(c.Path, "the watchdog did not evaluate the check: the checks of the policy cost too much on this many files", worse)
				continue
			}
			v.describe(i, variables)
			violated, cost, err := ready.program(variables)
			spent += cost
			switch {
			case err != nil:
				report(c.Path, "the check cannot be evaluated: "+quoteText(err.Error()), worse)
			case violated:
				report(c.Path, quoteText(check.Message), check.Severity)
			}
		}
	}
	return found
}

// describe sets the variables to the values of a change, as checks see it.
func (v *view) describe(i int, variables map[string]any) {
	c, f := &v.changes[i], &v.facts[i]
	mode := ""
	if !c.deleted() {
		mode = strconv.FormatUint(uint64(c.New.Mode), 8)
	}
	variables["file.path"], variables["file.mode"], variables["file.size"] = c.Path, mode, c.New.Size
	variables["file.kind"], variables["file.role"] = string(c.Kind), v.Role
	variables["file.linesAdded"], variables["file.linesRemoved"] = f.lines.Added, f.lines.Removed
}

// compiledCheck is the check's program, compiled once for all judgements that share a memory.
func (v *view) compiledCheck(expression string) compiled {
	if v.Cache != nil {
		if c, ok := v.Cache.checks[expression]; ok {
			return c
		}
	}
	c := compiled{err: errors.New("there is no compiler")}
	if v.Compile != nil {
		c.program, c.err = v.Compile(expression)
	}
	if v.Cache != nil {
		if v.Cache.checks == nil || len(v.Cache.checks) >= maxRemembered {
			v.Cache.checks = make(map[string]compiled)
		}
		v.Cache.checks[expression] = c
	}
	return c
}

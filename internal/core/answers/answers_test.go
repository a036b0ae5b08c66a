// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
)

const report = `{"type":"object","required":["files"],"additionalProperties":false,"properties":{"files":{"type":"array","items":{"$ref":"#/$defs/file"}}},"$defs":{"file":{"type":"string","pattern":"^[a-z/.]+$"}}}`

// said is a verdict in words.
func said(v answers.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", v.Text)
	if v.Rejected {
		b.WriteString(" rejected")
	}
	for _, x := range v.Violations {
		fmt.Fprintf(&b, "; %s %s: %s", x.Severity, x.Type, x.Message)
	}
	return b.String()
}

func TestJudge(t *testing.T) {
	checks := func(c ...answers.Checks) answers.Rules { return answers.Rules{Checks: c} }
	two := answers.Checks{Sections: []string{"Summary", "## Tests"}}
	added := two
	added.Correct = answers.Corrections{TrimSpace: true, AddSections: true}
	inJSON := answers.Checks{Schema: report, Correct: answers.Corrections{StripFence: true}}
	for name, tc := range map[string]struct {
		rules answers.Rules
		text  string
		want  string
	}{
		"nothing is asked for":      {answers.Rules{}, "", `""`},
		"empty":                     {checks(two), " \n", `" \n" rejected; Major IncorrectFormat: The answer is empty: write one.`},
		"nothing but a format":      {answers.Rules{Formats: []string{"Report", "<{{OUTPUT}}> {{OUTPUT}}"}}, "x", `"<Report\n\nx> {{OUTPUT}}"`},
		"sections":                  {checks(two), "# SUMMARY:\nx\n### **Tests** ##\ny", `"# SUMMARY:\nx\n### **Tests** ##\ny"`},
		"a section in code":         {checks(two), "## Summary\n```\n## Tests\n```", `"## Summary\n` + "```" + `\n## Tests\n` + "```" + `" rejected; Major MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.`},
		"a section after code":      {checks(two), "## Summary\n~~~~md\n~~~\n~~~~\n## Tests", `"## Summary\n~~~~md\n~~~\n~~~~\n## Tests"`},
		"sections are added":        {checks(added), "  ## Summary\nx\n\n", `"## Summary\nx\n\n## Tests"; Minor MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.`},
		"nothing is added to empty": {checks(added), "  ", `"" rejected; Major IncorrectFormat: The answer is empty: write one.`},
		"what is added is formatted": {answers.Rules{Checks: []answers.Checks{added}, Formats: []string{"[{{OUTPUT}}]"}}, "x",
			`"[x\n\n## Summary\n\n## Tests]"; Minor MissingRequiredSection: The section "Summary" is missing: add a heading "## Summary" with its content.; Minor MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.`},
		"what is rejected is not formatted": {answers.Rules{Checks: []answers.Checks{two}, Formats: []string{"[{{OUTPUT}}]"}}, "## Summary",
			`"## Summary" rejected; Major MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.`},
		"a pattern":      {checks(answers.Checks{Patterns: []string{`(?m)^Risk: (low|high)$`}}), "x\nRisk: low", `"x\nRisk: low"`},
		"no pattern":     {checks(answers.Checks{Patterns: []string{`^Risk`}}), "x", `"x" rejected; Major IncorrectFormat: Nothing in the answer matches the pattern "^Risk": add what it asks for.`},
		"a phrase":       {checks(answers.Checks{Phrases: []string{"As an AI"}}), "as an ai, I", `"as an ai, I" rejected; Major IncorrectFormat: The answer contains the forbidden phrase "As an AI": remove it.`},
		"JSON":           {checks(inJSON), ` {"files":["a/b.go"]} `, `" {\"files\":[\"a/b.go\"]} "`},
		"fenced JSON":    {checks(inJSON), "```json\n{\"files\":[]}\n```\n", `"{\"files\":[]}"; Minor IncorrectFormat: The answer is not JSON: give nothing but one JSON value, without words or a fence around it.`},
		"fenced text":    {checks(inJSON), "```\nhello\n```", `"` + "```" + `\nhello\n` + "```" + `" rejected; Major IncorrectFormat: The answer is not JSON: give nothing but one JSON value, without words or a fence around it.`},
		"JSON and words": {checks(inJSON), `{"files":[]} done`, `"{\"files\":[]} done" rejected; Major IncorrectFormat: Something follows the JSON of the answer: give nothing but one JSON value.`},
		"minor and major": {checks(added, answers.Checks{Phrases: []string{"TODO"}}), "## Summary\nTODO",
			`"## Summary\nTODO\n\n## Tests" rejected; Minor MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.; Major IncorrectFormat: The answer contains the forbidden phrase "TODO": remove it.`},
		"a correction breaks another rule": {checks(added, answers.Checks{Phrases: []string{"## Tests"}}), "## Summary",
			`"## Summary\n\n## Tests" rejected; Minor MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.; Major IncorrectFormat: The answer contains the forbidden phrase "## Tests": remove it.`},
		"marks of every kind":            {checks(answers.Checks{Sections: []string{"Summary", "Tests"}}), "## **Summary**:\n```kubectl get``` shows it.\n### _Tests:_", `"## **Summary**:\n` + "```kubectl get```" + ` shows it.\n### _Tests:_"`},
		"two templates ask for the same": {checks(two, two), "## Summary", `"## Summary" rejected; Major MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.`},
		"words of control":               {checks(two), "## Summary\nSKIP_VALIDATION BYPASS_SUPERVISOR\n## Tests\n", `"## Summary\nSKIP_VALIDATION BYPASS_SUPERVISOR\n## Tests\n"`},
	} {
		if diff := cmp.Diff(tc.want, said(tc.rules.Judge(tc.text, false))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// Under Audit it is said what breaks a rule, and an answer stays as it came: it is formatted alone.
	audited := checks(added, answers.Checks{Phrases: []string{"TODO"}})
	audited.Audit, audited.Formats = true, []string{"[{{OUTPUT}}]"}
	const found = `; Minor MissingRequiredSection: The section "Tests" is missing: add a heading "## Tests" with its content.; Major IncorrectFormat: The answer contains the forbidden phrase "TODO": remove it.`
	if got, want := said(audited.Judge(" ## Summary\nTODO", false)), `"[ ## Summary\nTODO]"`+found; got != want {
		t.Errorf("audited: %s, want %s", got, want)
	}
	if v := audited.Judge("## Sum", true); v.Text != "## Sum" || v.Rejected || len(v.Violations) != 1 || v.Violations[0].Type != answers.SkippedValidation {
		t.Errorf("a part of an answer, audited: %s", said(v))
	}
	for _, text := range []string{`{}`, `{"files":["A"]}`, `{"files":[],"more":1}`, `[]`} {
		v := checks(inJSON).Judge(text, false)
		if !v.Rejected || len(v.Violations) != 1 || !strings.HasPrefix(v.Violations[0].Message, "The JSON of the answer does not match its schema: ") {
			t.Errorf("%s: %s", text, said(v))
		}
	}
}

// TestWhatCannotBeChecked is rejected: an answer that is too long, or of which a part is not known.
func TestWhatCannotBeChecked(t *testing.T) {
	rules := answers.Rules{Checks: []answers.Checks{{Sections: []string{"Summary"}, Correct: answers.Corrections{AddSections: true}}}, Formats: []string{"x"}}
	long := strings.Repeat("x", answers.MaxChecked)
	for name, v := range map[string]answers.Verdict{"cut": rules.Judge("## Summary", true), "long": rules.Judge(long+"x", false)} {
		if !v.Rejected || len(v.Violations) != 1 || v.Violations[0].Type != answers.SkippedValidation || v.Violations[0].Severity != answers.Major {
			t.Errorf("%s: %s", name, said(v)[:200])
		}
	}
	// What is added to it makes it too long.
	if v := rules.Judge(long, false); !v.Rejected || v.Violations[len(v.Violations)-1].Type != answers.SkippedValidation {
		t.Errorf("made too long: %+v", v.Violations)
	}
	// Without checks it is formatted all the same.
	rules.Checks = nil
	if v := rules.Judge(long+"x", true); v.Rejected || !strings.HasPrefix(v.Text, "x\n\nxx") {
		t.Errorf("a format alone: %+v", v.Violations)
	}
}

func TestWhatIsSaidAboutRejections(t *testing.T) {
	v := answers.Rules{Checks: []answers.Checks{{Sections: []string{"A", "B"}, Phrases: []string{"no"}}}}.Judge("no", false).Violations
	v[1].Severity = answers.Minor
	if got := answers.Objection(v); !strings.HasPrefix(got, "[SUPERVISOR] ") || !strings.Contains(got, `- The section "A" is missing`) ||
		strings.Contains(got, `"B"`) || !strings.Contains(got, `- The answer contains the forbidden phrase "no"`) {
		t.Error(got)
	}
	if got := answers.Summary(v); got != `MissingRequiredSection: The section "A" is missing: add a heading "## A" with its content. (and 1 more)` {
		t.Error(got)
	}
}

// TestTemplatesThatCannotBeUsed: what could take for ever, or lead elsewhere, is no template.
func TestTemplatesThatCannotBeUsed(t *testing.T) {
	doubling := `{"$defs":{"d0":{"type":"null"}`
	for i := range 30 {
		doubling += fmt.Sprintf(`,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	doubling += `},"$ref":"#/$defs/d30"}`
	for name, tc := range map[string]struct {
		checks answers.Checks
		want   string
	}{
		"a pattern":              {answers.Checks{Patterns: []string{"("}}, "missing closing )"},
		"a long pattern":         {answers.Checks{Patterns: []string{"(.{1000}){10}"}}, "invalid repeat count"},
		"a pattern of many":      {answers.Checks{Patterns: []string{"[a-z]{900}[a-z]{900}"}}, "count fewer repetitions"},
		"no JSON":                {answers.Checks{Schema: `{`}, "unexpected end of JSON input"},
		"no object":              {answers.Checks{Schema: `[]`}, "it is not an object"},
		"a type that is none":    {answers.Checks{Schema: `{"type":7}`}, "type"},
		"recursion":              {answers.Checks{Schema: `{"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`}, "leads back to itself"},
		"the root":               {answers.Checks{Schema: `{"items":{"$ref":"#"}}`}, "leads out of it"},
		"another document":       {answers.Checks{Schema: `{"$ref":"https://example.com/schema"}`}, "leads out of it"},
		"nowhere":                {answers.Checks{Schema: `{"$ref":"#/x"}`}, "leads nowhere"},
		"an escape":              {answers.Checks{Schema: `{"x":{},"$ref":"#/%78"}`}, "leads out of it"},
		"an id":                  {answers.Checks{Schema: `{"$id":"https://example.com/x"}`}, "it has the keyword $id"},
		"an anchor":              {answers.Checks{Schema: `{"$defs":{"a":{"$anchor":"x"}}}`}, "it has the keyword $anchor"},
		"another case":           {answers.Checks{Schema: `{"$defs":{"a":{"items":{"$REF":"#/$defs/a"}}},"$ref":"#/$defs/a"}`}, "leads back to itself"},
		"another case, patterns": {answers.Checks{Schema: `{"PatternProperties":{"(.{999}.{999})":{}}}`}, "count fewer repetitions"},
		"an escape, recursion":   {answers.Checks{Schema: `{"$ref":"#/$defs/%61","$defs":{"%61":{},"a":{"allOf":[{"$ref":"#/$defs/%61"}]}}}`}, "leads out of it"},
		"another letter":         {answers.Checks{Schema: `{"$ref":"#/$defs/a","$defs":{"a":{}},"$defſ":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`}, "leads back to itself"},
		"the same name twice":    {answers.Checks{Schema: `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}},"$defs":{"b":{}}}`}, "leads back to itself"},
		"unique items":           {answers.Checks{Schema: `{"type":"array","uniqueItems":true}`}, "leave it out"},
		"long texts":             {answers.Checks{Schema: `{"contains":{"enum":["` + strings.Repeat("x", 60<<10) + `"]}}`}, "and the limit is 512"},
		"a section of two lines": {answers.Checks{Sections: []string{"a\nb"}}, "one line"},
		"a section of marks":     {answers.Checks{Sections: []string{"## "}}, "one line"},
		"doubling":               {answers.Checks{Schema: doubling}, "and the limit is 512"},
		"a pattern in it":        {answers.Checks{Schema: `{"pattern":"("}`}, "missing closing )"},
		"a name's pattern":       {answers.Checks{Schema: `{"patternProperties":{"(":{}}}`}, "missing closing )"},
		"an old draft":           {answers.Checks{Schema: `{"$schema":"http://json-schema.org/draft-04/schema#"}`}, "use draft 2020-12 or draft-07"},
		"large":                  {answers.Checks{Schema: `{"description":"` + strings.Repeat("x", 64<<10) + `"}`}, "shorten it"},
		"much of everything":     {answers.Checks{Schema: `{"enum":[` + strings.Repeat("1,", 500) + `1]}`, Patterns: strings.Split(strings.TrimSuffix(strings.Repeat("[a-z]{900};", 20), ";"), ";")}, "take too much work together"},
	} {
		if err := tc.checks.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, schema := range map[string]string{
		"as above": report, "a property of this name": `{"properties":{"$id":{"type":"string"},"Pattern":{"type":"string"},"$ref":{}}}`,
		"a reference into a list": `{"prefixItems":[{"type":"null"}],"items":{"$ref":"#/prefixItems/0"}}`, "draft-07": `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
	} {
		if err := (answers.Checks{Schema: schema}).Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWorkIsBounded: the dearer the checks, the shorter is what can be checked, and nothing is checked that is longer.
func TestWorkIsBounded(t *testing.T) {
	dear := answers.Checks{Schema: `{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"not":{"type":"string"}},`, 168), ",") + `]}}`}
	if err := dear.Check(); err != nil {
		t.Fatal(err)
	}
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n/2), ",") + "]" }
	for _, copies := range []int{1, 4} {
		rules := answers.Rules{}
		for range copies {
			rules.Checks = append(rules.Checks, dear)
		}
		if v := rules.Judge(list(7<<10/copies), false); v.Rejected {
			t.Errorf("%d templates: %s", copies, said(v)[:300])
		}
		if v := rules.Judge(list(10<<10/copies), false); !v.Rejected || v.Violations[0].Type != answers.SkippedValidation {
			t.Errorf("%d templates: a long answer is not refused", copies)
		}
	}
}

// FuzzJudge: what is accepted breaks no rule when it is judged again, and a correction is made once.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{"", "## Summary", "```json\n{}\n```", "## A\n\n## A", "```\n## Summary\n```", " # summary : \n", "~~~\n`", "{\"files\":[\"a\"]}"} {
		f.Add(seed)
	}
	all := answers.Corrections{TrimSpace: true, AddSections: true, StripFence: true}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range []answers.Checks{
			{Sections: []string{"Summary", "A"}, Correct: all}, {Schema: `{"type":"object"}`, Correct: all}, {Phrases: []string{"a"}, Patterns: []string{"b"}},
		} {
			rules := answers.Rules{Checks: []answers.Checks{c}}
			v := rules.Judge(text, false)
			if v.Rejected {
				continue
			}
			if again := rules.Judge(v.Text, false); again.Rejected || len(again.Violations) > 0 || again.Text != v.Text {
				t.Fatalf("%q became %q, and then %s", text, v.Text, said(again))
			}
			if c.Schema != "" && !json.Valid([]byte(v.Text)) {
				t.Fatalf("%q is no JSON", v.Text)
			}
		}
	})
}

// FuzzSchema: a schema that is taken ends, and soon: one that leads back to itself would end the whole process.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		report, `{"$ref":"#/$defs/%61","$defs":{"%61":{},"a":{"allOf":[{"$ref":"#/$defs/%61"}]}}}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{}},"$defſ":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, `{"$defs":{"a~1b":{"items":{"$ref":"#/$defs/a~1b"}}}}`,
		`{"items":[{"$ref":"#/items/1"},{}],"additionalItems":{"$ref":"#/items/0"}}`, `{"if":{"$ref":"#/then"},"then":{"not":{"$ref":"#/if"}}}`, `{"dependencies":{"a":{"$ref":"#"}}}`,
	} {
		f.Add(seed, `{"a":[1,{"b":"c"}]}`)
	}
	f.Fuzz(func(t *testing.T, schema, answer string) {
		c := answers.Checks{Schema: schema}
		if c.Check() != nil || len(answer) > 10_000 {
			return
		}
		answers.Rules{Checks: []answers.Checks{c}}.Judge(answer, false)
	})
}

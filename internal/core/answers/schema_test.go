// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
)

// TestSchemaQuotesNoValue: a violation of a schema names the place in the schema and the keyword, and nothing that the model wrote: its
// message goes to logs, to the journal and to the status of a Feature.
func TestSchemaQuotesNoValue(t *testing.T) {
	const planted = "planted, want: required: x"
	for _, c := range []struct{ schema, answer, want string }{
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":"PLANTED"}`, `/properties/a: type: want "integer"`},
		{`{"properties":{"a":{"enum":["x"]}}}`, `{"a":"PLANTED"}`, "/properties/a: enum"},
		{`{"properties":{"a":{"const":1}}}`, `{"a":"PLANTED"}`, "/properties/a: const"},
		{`{"properties":{"a":{"maxLength":1}}}`, `{"a":"PLANTED"}`, "/properties/a: maxLength"},
		{`{"properties":{"a":{"minLength":999}}}`, `{"a":"PLANTED"}`, "/properties/a: minLength"},
		{`{"properties":{"a":{"pattern":"^x$"}}}`, `{"a":"PLANTED"}`, "/properties/a: pattern"},
		{`{"properties":{"a":{"anyOf":[{"type":"integer"},{"const":"x"}]}}}`, `{"a":"PLANTED"}`, "/properties/a: anyOf"},
		{`{"properties":{"a":{"oneOf":[{"type":"integer"}]}}}`, `{"a":"PLANTED"}`, "/properties/a: oneOf"},
		{`{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"PLANTED"}`, "/properties/a: not"},
		{`{"properties":{"a":{"contains":{"type":"integer"}}}}`, `{"a":["PLANTED"]}`, "/properties/a: contains"},
		{`{"properties":{},"additionalProperties":false}`, `{"PLANTED":1}`, "additional properties"},
		{`{"propertyNames":{"maxLength":1}}`, `{"PLANTED":1}`, "maxLength"},
		{`{"properties":{"a":{"maximum":1}}}`, `{"a":424242}`, "/properties/a: maximum"},
		{`{"required":["name"]}`, `{"PLANTED":1}`, `required: missing properties: ["name"]`},
	} {
		rules := answers.Rules{Checks: []answers.Checks{{Schema: c.schema}}}
		v := rules.Judge(strings.ReplaceAll(c.answer, "PLANTED", planted), false)
		if len(v.Violations) != 1 {
			t.Errorf("%s: %+v", c.schema, v.Violations)
			continue
		}
		if m := v.Violations[0].Message; strings.Contains(m, "planted") || strings.Contains(m, "424242") || !strings.Contains(m, c.want) {
			t.Errorf("%s: %s", c.schema, m)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/kube/templates"
)

// problemOf says why a template with this text cannot be used; empty when it can.
func problemOf(spec v1alpha1.TemplateSpec, text string) string {
	check := compose.CheckText
	if spec.Direction == v1alpha1.DirectionInput {
		check = compose.Check
	}
	if err := check(text); err != nil {
		return "Tidewaiter cannot use the text: " + err.Error() + "."
	}
	if n := strings.Count(text, answers.Placeholder); spec.Direction == v1alpha1.DirectionOutput && n > 1 {
		return fmt.Sprintf("The text has %s %d times: an Output template may hold it once.", answers.Placeholder, n)
	}
	checks, _ := templates.Checks(spec.AnswerChecks)
	if err := checks.Check(); err != nil {
		return "Tidewaiter cannot use the checks: " + err.Error() + "."
	}
	return ""
}

// hashOf identifies what a template does, wherever its text is kept.
func hashOf(spec v1alpha1.TemplateSpec, text string) string {
	spec.Text, spec.ConfigMapKeyRef = &text, nil
	raw, err := json.Marshal(spec)
	if err != nil {
		// Only a schema that is not JSON cannot be encoded; problemOf refused it.
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

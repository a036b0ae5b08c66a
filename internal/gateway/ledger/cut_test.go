// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strings"
	"testing"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// TestNoPartOfASecretIsKept: where a result has so many secrets that little is left of what is searched, the end of that is not stored: it may be the
// beginning of a secret.
func TestNoPartOfASecretIsKept(t *testing.T) {
	const token = "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO" // behind ghp_, it looks like one of GitHub's
	var text strings.Builder
	text.WriteString("-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiOMIIEpAIBAAKC\n", 1000) + "-----END RSA PRIVATE KEY-----\n")
	text.WriteString("and no more of them\n")
	const cut = core.MaxResult + core.MaxSecret
	text.WriteString(strings.Repeat("-", cut-text.Len()-39))
	text.WriteString("\nghp_" + token + " and so on")
	b := newBodies()
	packed, err := b.results(t.Context(), core.Interaction{Results: []core.ToolResult{{Text: text.String()[:cut]}}})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := resultsOf(packed)
	if err != nil {
		t.Fatal(err)
	}
	if got := stored.Results[0].Text; got != "[redacted: private-key]…" {
		t.Errorf("%d bytes are stored, with the end %q", len(got), got[max(0, len(got)-60):])
	}
}

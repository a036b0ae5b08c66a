// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hash identifies the values of a policy, in hex. Where they come from does not count.
func (e Effective) hash() string {
	e.Hash, e.Sources, e.Conflicts, e.Origins = "", nil, nil, nil
	// What the first version did not have counts where it is not built in, so that an upgrade of Tidewaiter changes no hash.
	switch e.Supervision.MaxCorrections {
	case builtinCorrections:
		e.Supervision.MaxCorrections = 0 // which is not written
	case 0:
		e.Supervision.MaxCorrections = -1
	}
	switch a := &e.Supervision.Answers; {
	case *a == builtinAnswers:
		*a = AnswerRules{} // which is not written
	case a.MaxRetries == 0:
		a.MaxRetries = -1
	}
	if e.Supervision == (Supervision{Enabled: true, TimeoutProfile: TimeoutStandard}) {
		e.Supervision = Supervision{}
	}
	if e.LedgerFailure == LedgerClosed {
		e.LedgerFailure = ""
	}
	if e.Budgets == (Budgets{WarnAtPercent: builtinWarnAtPercent}) {
		e.Budgets = Budgets{}
	}
	// encoding/json writes fields in the order of their declaration, and every list is sorted: equal values, equal bytes.
	// Only channels, functions, cycles and numbers that are none cannot be written, and a policy has none of these.
	text, _ := json.Marshal(e) //nolint:errchkjson // see above
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

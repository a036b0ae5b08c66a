// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/detour"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// asking sends requests to the models, and writes the status and the reason of each answer.
const asking = `
export LC_ALL=C
address=${TIDEWAITER_MODELS_URL#http://}
ask() { # ask PATH BODY-IN-BASE64 HEADER
  local body line status reason=
  body=$(base64 -d <<< "$2")
  exec 3<> "/dev/tcp/${address%:*}/${address#*:}"
  printf 'POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sConnection: close\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "$address" "${3:+$3$'\r\n'}" "${#body}" "$body" >&3
  read -r _ status _ <&3
  while IFS= read -r line <&3 && [ "${line%$'\r'}" ]; do
    case $line in [Tt]idewaiter-[Rr]eason:*) reason=${line#*: } ;; esac
  done
  cat <&3 > /dev/null
  exec 3>&-
  echo "$status ${reason%$'\r'} $1" >> web/answers.txt
}
`

// TestNoDetour: an agent that tries everything by which its provider would act for it elsewhere, or keep something for it, reaches nothing by it, and
// the ledger says what was refused and what was taken out.
func TestNoDetour(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	secret := "the-repository-of-" + p.project
	var requests []detour.Request
	for _, r := range detour.All(secret) {
		if strings.HasPrefix(r.Path, "/gemini/") && !slices.Contains(cluster.Dialects, "gemini") {
			continue
		}
		requests = append(requests, r)
	}
	script, want := asking, ""
	for i, r := range requests {
		header, status := "", 200
		if r.Header != "" {
			header = r.Header + ": " + r.Value
		}
		if r.Reason != "" {
			status = r.Status()
		}
		// Which request is the provider's: a member that no provider reads.
		body := fmt.Sprintf(`{"mark":"%s-%d",`, secret, i) + r.Body[1:]
		script += fmt.Sprintf("ask '%s' '%s' '%s'\n", r.Path, base64.StdEncoding.EncodeToString([]byte(body)), header)
		want += fmt.Sprintf("%d %s %s\n", status, r.Reason, r.Path)
	}
	p.feature("detour", script, nil)
	f := p.phase("detour", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	mirror, err := gitServer.Mirror(p.ctx, p.repository)
	p.must(err, "fetch from the server")
	if diff := cmp.Diff(want, p.git(mirror, "show", f.Status.Branch+":web/answers.txt")); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}

	asked, err := provider.Asked(p.ctx, secret)
	p.must(err, "ask the provider")
	for i, r := range requests {
		reached := false
		for _, a := range asked {
			if strings.Contains(a.Body, fmt.Sprintf(`"%s-%d"`, secret, i)) {
				reached = true
				if r.Gone != "" && strings.Contains(a.Body, r.Gone) || r.Header != "" && strings.Contains(fmt.Sprint(a.Header), r.Value) {
					t.Errorf("the provider got %s with %v", a.Body, a.Header)
				}
			}
		}
		if reached != (r.Reason == "") {
			t.Errorf("%s reached the provider: %t", r.Body, reached)
		}
	}

	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/detour/turns", "output", "json", "limit", "500")), &list), "read the turns")
	recorded := map[string]int64{}
	for _, turn := range list.Turns {
		recorded[turn.Reason] += max(1, turn.Count)
		if taken, is := strings.CutPrefix(turn.Detail, "taken out: "); is {
			recorded[taken]++
		}
	}
	for _, r := range requests {
		recorded[r.Reason]--
		if r.TakenOut != "" {
			recorded[r.TakenOut]--
		}
	}
	for what, n := range recorded {
		if what != "" && what != "Answered" && n != 0 {
			t.Errorf("the ledger has %s %d times too often", what, n)
		}
	}
}

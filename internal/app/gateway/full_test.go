// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// TestAFeatureThatFillsTheLedger beside a healthy one: the calls of both go on, and what is dropped is the hostile one's. The log names it.
func TestAFeatureThatFillsTheLedger(t *testing.T) {
	backend(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ System string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		said := "Short."
		if strings.Contains(asked.System, "Fill.") {
			said = ""
			for len(said) < 64<<10 {
				said += rand.Text() + " "
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","model":"large","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, said)
	})
	g := start(t, "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), fmt.Sprint("--ledger-size=", 4<<20))
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	project := env.Project(t)
	healthy, hostile := attempt.Start(t, env, attempt.Feature(t, env, project, "healthy")), attempt.Start(t, env, attempt.Feature(t, env, project, "hostile"))
	gomega.NewWithT(t).Eventually(g.ready, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	client := g.client(t)
	ask := func(token, system string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+"/anthropic/v1/messages", strings.NewReader(`{"model":"any","system":"`+system+`","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = as(token, "form")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode
	}
	for _, token := range []string{healthy.Token, hostile.Token} {
		gomega.NewWithT(t).Eventually(func() int { return ask(token, "Work.") }, 60*time.Second, 100*time.Millisecond).Should(gomega.Equal(http.StatusOK), "the pod is known")
	}
	for n := range 110 { // as many as its rate lets through
		if status := ask(hostile.Token, "Fill."); status != http.StatusOK {
			t.Fatalf("call %d of the hostile Feature: %d", n, status)
		}
		if n%10 > 0 {
			continue
		}
		if status := ask(healthy.Token, "Work."); status != http.StatusOK {
			t.Fatalf("call %d of the healthy Feature: %d", n, status)
		}
	}
	answers := func(f *v1alpha1.Feature) (whole, gone int) {
		query := "feature=" + string(f.UID)
		_, all := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, query+"&limit=500")
		for _, turn := range all {
			_, one := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, fmt.Sprint(query, "&call=", turn.Sequence))
			switch {
			case len(one) != 1 || one[0].OutputTokens != 1:
				t.Errorf("a turn: %+v", one)
			case strings.HasPrefix(one[0].Answer, "[dropped: "):
				gone++
			default:
				whole++
			}
		}
		return whole, gone
	}
	if whole, gone := answers(healthy.Feature); whole < 12 || gone > 0 {
		t.Errorf("%d answers of the healthy Feature are whole, and %d are gone", whole, gone)
	}
	if whole, gone := answers(hostile.Feature); whole == 0 || gone < 20 || whole+gone < 110 {
		t.Errorf("%d answers of the hostile Feature are whole, and %d are gone", whole, gone)
	}
	if text := g.Log(); !strings.Contains(text, `"feature":"`+project+`/hostile","answers":`) || strings.Contains(text, `"feature":"`+project+`/healthy","answers":`) {
		t.Error("the log does not say what was dropped")
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// answers a finished Feature's inquiries, as the pod does that is made for one.
func (w *world) answers(t *testing.T, q protocol.Inquiry) string {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(protocol.EnvInquiry, string(text))
	o := watchdog.Options{Intake: w.intake.URL, IntakeName: "example.com", Paths: w.paths, Log: slog.New(slog.DiscardHandler)}
	if err := watchdog.Answer(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got, _ := w.intake.Answer(q.ID)
	return got
}

func TestAnswersAfterTheEnd(t *testing.T) {
	w := twoTasks(t)
	for name, test := range map[string]struct {
		q            protocol.Inquiry
		want, absent string
	}{
		"a diff":                      {protocol.Inquiry{Kind: "diff", To: 2}, "{\"code\":200}\ncheckpoint 2: Invalid, Promoted; compared with checkpoint 1\n", "evil"},
		"with what it adds":           {protocol.Inquiry{Kind: "diff"}, "\n <form>\n+</form>\n", ""},
		"since the base":              {protocol.Inquiry{Kind: "diff", Base: true}, "\n+<form>\n+</form>\n", ""},
		"between two":                 {protocol.Inquiry{Kind: "diff", From: 1, To: 2}, "compared with checkpoint 1\n", "evil"},
		"back":                        {protocol.Inquiry{Kind: "diff", From: 2, To: 1}, "\n-</form>\n", ""},
		"escapes":                     {protocol.Inquiry{Kind: "diff", To: 1}, `+\u001b[2Jevil`, "\x1b"},
		"a checkpoint that is not":    {protocol.Inquiry{Kind: "diff", To: 9}, `{"code":404,"message":"no such checkpoint: there is no checkpoint 9; there are 1, 2"}`, ""},
		"one to compare with":         {protocol.Inquiry{Kind: "diff", From: 9}, `{"code":404,"message":"no such checkpoint: there is no checkpoint 9`, ""},
		"a log":                       {protocol.Inquiry{Kind: "log"}, "{\"code\":200}\n{", ""},
		"file events":                 {protocol.Inquiry{Kind: "log", Files: true}, `"file_path":"web/login.html"`, ""},
		"verification":                {protocol.Inquiry{Kind: "verify"}, "\nwhole: ", ""},
		"as JSON":                     {protocol.Inquiry{Kind: "verify", JSON: true}, `"whole": true`, ""},
		"of a commit that is missing": {protocol.Inquiry{Kind: "verify", Commit: strings.Repeat("1", 40)}, "BROKEN at ", ""},
		"of a later version":          {protocol.Inquiry{Kind: "turns"}, `{"code":400,"message":"usage: this watchdog knows no inquiry \"turns\""}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.q.ID = strings.ReplaceAll(name, " ", "-")
			got := w.answers(t, test.q)
			if !strings.Contains(got, test.want) || test.absent != "" && strings.Contains(got, test.absent) {
				t.Errorf("got %q, want %q and no %q", got, test.want, test.absent)
			}
		})
	}
	if err := os.RemoveAll(w.paths.Trusted); err != nil {
		t.Fatal(err)
	}
	if got := w.answers(t, protocol.Inquiry{ID: "gone", Kind: "diff"}); !strings.HasPrefix(got, `{"code":404,"message":"no journal in `) {
		t.Errorf("an empty volume: %q", got)
	}
}

// TestAnswersWhileTheAgentWorks: the watchdog answers beside its work, also with a replica between that does not wait.
func TestAnswersWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo "<form>" > web/login.html; until [ -e web/go ]; do sleep 0.05; done`, seldom)
	run := w.start(1, nil)
	deadline := time.Now().Add(time.Minute)
	w.intake.Elsewhere(2)
	for n := 0; ; n++ {
		id := "q" + strings.Repeat("i", n)
		w.intake.Inquire(protocol.Inquiry{ID: id, Kind: protocol.InquiryVerify})
		got, ok := w.intake.Answer(id)
		for ; !ok && time.Now().Before(deadline); got, ok = w.intake.Answer(id) {
			time.Sleep(5 * time.Millisecond)
		}
		if strings.Contains(got, "\nwhole: ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer, the last was %q", got)
		}
	}
	w.write("workspace/web/go", "")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

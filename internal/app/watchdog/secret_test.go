// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// repositoryHost is host:port of the world's Git server.
func (w *world) repositoryHost() string {
	w.t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Host
}

// TestASecretIsSentToListedHostsAlone: a person who may use a Secret without reading it could otherwise name a repository of their
// own, and read it there.
func TestASecretIsSentToListedHostsAlone(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]string{
		"another host":                "git.example.com *.example.org",
		"another port of the host":    "127.0.0.1",
		"no host":                     "\n",
		"a list that cannot be read":  "https://127.0.0.1/",
		"one entry that is no host":   "127.0.0.1:PORT, *",
		"a list that is far too long": strings.Repeat("git.example.com\n", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			_, port, _ := strings.Cut(w.repositoryHost(), ":")
			w.write("git-secret/hosts", strings.ReplaceAll(list, "PORT", port))
			ended := make(chan error, 1)
			go func() { ended <- w.prepare(1) }()
			w.eventually("the fault is told", func() bool { s := w.intake.Status(); return s.Fault != nil })
			got := w.intake.Status().Fault
			if got.Reason != protocol.ReasonHostNotListed || !strings.Contains(got.Message, `"shop-git"`) || !strings.Contains(got.Message, `"hosts"`) {
				t.Errorf("fault %+v", got)
			}
			if name == "another host" && !(strings.Contains(got.Message, w.repositoryHost()) && strings.Contains(got.Message, "git.example.com *.example.org")) {
				t.Errorf("the message does not name both hosts: %s", got.Message)
			}
			if n := w.requests.Load(); n > 0 {
				t.Errorf("the server was asked %d times", n)
			}
			w.write("git-secret/hosts", "git.example.com\n"+w.repositoryHost()+"\n")
			if err := <-ended; err != nil {
				t.Errorf("prepare: %v", err)
			}
		})
	}
}

// TestAPushGoesToListedHostsAlone: the list is asked again for the push, which comes hours after the clone.
func TestAPushGoesToListedHostsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `until [ -e web/go ]; do sleep 0.1; done; rm web/go; echo a > web/a.html`, seldom)
	w.write("git-secret/hosts", w.repositoryHost())
	p := w.start(1, nil)
	before := w.requests.Load()
	w.write("git-secret/hosts", "git.example.com")
	w.write("workspace/web/go", "")
	w.eventually("the fault is told", func() bool {
		s := w.intake.Status()
		return s.Fault != nil && s.Fault.Reason == protocol.ReasonHostNotListed
	})
	if n := w.requests.Load(); n != before || w.branch() != "" {
		t.Errorf("the server was asked %d times, and the branch is %q", n-before, w.branch())
	}
	w.write("git-secret/hosts", w.repositoryHost())
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

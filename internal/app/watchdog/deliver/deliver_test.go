// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/deliver"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/remote"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

// quay is a room whose work is to be delivered to a Git server.
type quay struct {
	*workroom.Room
	t      *testing.T
	origin string // bare repository on the server
	secret string
}

const password = "the-password-of-shop"

func newQuay(t *testing.T) *quay {
	t.Helper()
	q := &quay{Room: workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"}), t: t, secret: t.TempDir()}
	repos := t.TempDir()
	q.origin = filepath.Join(repos, "shop.git")
	q.git("init", "-q", "--bare", q.origin)
	handler, err := gitserver.New(repos, "shop", password)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	for name, content := range map[string]string{
		protocol.GitUsernameFile: "shop", protocol.GitPasswordFile: password,
		protocol.GitCAFile: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(q.secret, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q.Orders.Repository = protocol.Repository{URL: server.URL + "/shop.git", Revision: "main", HasCredentials: true, SecretName: "shop-git"}
	return q
}

func (q *quay) git(args ...string) string {
	q.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		q.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (q *quay) service(probe steps.Probe) *deliver.Service {
	return deliver.New(deliver.Options{
		Journal: q.Journal, Guard: func() error { return nil }, Repository: q.Repository, Access: remote.Access{GitSecret: q.secret},
		Judge: q.Judge, Log: slog.New(slog.DiscardHandler), Probe: probe,
	})
}

// promote what a file says, under the policy of now.
func (q *quay) promote(path, content string) {
	q.t.Helper()
	q.Write(path, content)
	if _, err := q.Checkpoint.Take(q.t.Context(), q.Occasion()); err != nil {
		q.t.Fatal(err)
	}
}

// audited is a history that the policy of now would not have let through, though its head is valid.
func (q *quay) audited() {
	q.t.Helper()
	q.Orders.Policy.Enforcement = policy.Audit
	q.promote("lib/evil.go", "evil")
	q.Remove("lib/evil.go")
	q.promote("web/good.html", "good")
	q.Orders.Policy.Enforcement = policy.Enforce
}

// What is pushed is the head with its history, once, and what another has pushed is not overwritten.
func TestPush(t *testing.T) {
	q := newQuay(t)
	q.promote("web/a.html", "a")
	q.promote("web/b.html", "b")
	for range 2 {
		e, err := q.service(nil).Review(t.Context(), q.Orders)
		if err != nil || e.Objection != "" || e.Squashed != "" {
			t.Fatalf("review: %+v, %v", e, err)
		}
		head, err := q.service(nil).Push(t.Context(), q.Orders)
		if err != nil || q.git("-C", q.origin, "rev-parse", "tidewaiter/login") != head || q.Journal.State().Pushed != head {
			t.Fatalf("pushed %s: %v", head, err)
		}
	}
	if n := q.git("-C", q.origin, "rev-list", "--count", "tidewaiter/login"); n != "3" {
		t.Errorf("%s commits on the branch, want 3", n)
	}
	other := q.git("-C", q.origin, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", "-m", "Another", "tidewaiter/login^{tree}")
	q.git("-C", q.origin, "update-ref", "refs/heads/tidewaiter/login", other)
	q.promote("web/c.html", "c")
	if _, err := q.service(nil).Push(t.Context(), q.Orders); !errors.Is(err, git.ErrConflict) {
		t.Errorf("pushed over the work of another: %v", err)
	}
}

// The head is judged by the policy of now, whatever promoted it.
func TestReviewJudgesTheHead(t *testing.T) {
	q := newQuay(t)
	q.Orders.Policy.Enforcement = policy.Audit
	q.promote("lib/evil.go", "evil")
	if e, err := q.service(nil).Review(t.Context(), q.Orders); err != nil || e.Objection != "" {
		t.Errorf("under an audit: %+v, %v", e, err)
	}
	q.Orders.Policy.Enforcement, q.Orders.Policy.Hash = policy.Enforce, "now"
	e, err := q.service(nil).Review(t.Context(), q.Orders)
	if err != nil || e.PolicyHash != "now" || !strings.Contains(e.Objection, "lib/evil.go") {
		t.Errorf("enforced: %+v, %v", e, err)
	}
}

// A commit of the history that breaks a rule is not delivered: the delivery is one commit, or held, as the policy says.
func TestHistory(t *testing.T) {
	q := newQuay(t)
	q.audited()
	q.Orders.Policy.History = policy.HistoryHold
	e, err := q.service(nil).Review(t.Context(), q.Orders)
	if err != nil || e.Reason != protocol.ReasonHistoryInvalid || !strings.Contains(e.Objection, "lib/evil.go") {
		t.Errorf("held: %+v, %v", e, err)
	}
	q.Orders.Policy.History = policy.HistorySquash
	e, err = q.service(nil).Review(t.Context(), q.Orders)
	if err != nil || e.Objection != "" || !strings.Contains(e.Squashed, "lib/evil.go") || e.Head != q.Journal.State().Promoted.Commit {
		t.Fatalf("squashed: %+v, %v", e, err)
	}
	if _, err := q.service(nil).Push(t.Context(), q.Orders); err != nil {
		t.Fatal(err)
	}
	if n := q.git("-C", q.origin, "rev-list", "--count", "tidewaiter/login"); n != "2" {
		t.Errorf("%s commits on the branch, want 2", n)
	}
	q.WantRefs()
}

// A process that ends while it makes the delivery one commit is followed by one that completes that.
func TestSquashSurvivesACrash(t *testing.T) {
	pulled := errors.New("the plug was pulled")
	for _, step := range []string{"squash written", "squash journaled", "squash moved"} {
		q := newQuay(t)
		q.audited()
		_, err := q.service(func(reached string) error { return map[string]error{step: pulled}[reached] }).Review(t.Context(), q.Orders)
		if !errors.Is(err, pulled) {
			t.Fatalf("%s: the process ended with %v", step, err)
		}
		q.Open(nil)
		e, err := q.service(nil).Review(t.Context(), q.Orders)
		if err != nil || e.Objection != "" {
			t.Errorf("%s: %+v, %v", step, e, err)
		}
		if s := q.Journal.State(); s.Squashed == nil || s.Promoted.Commit != s.Squashed.Commit {
			t.Errorf("%s: the delivery is %s, squashed %+v", step, s.Promoted.Commit, s.Squashed)
		}
		q.WantRefs()
	}
}

// A policy that does not allow the repository or the branch any more holds the delivery, also under audit: nothing is pushed.
func TestBoundsHoldADelivery(t *testing.T) {
	bound := func(globs ...string) []policy.Bound { return []policy.Bound{{Globs: globs, From: "overrides of s/a"}} }
	for reason, narrow := range map[string]func(*policy.Effective){
		protocol.ReasonRepositoryNotAllowed: func(e *policy.Effective) { e.Repositories = bound("git.example.com/**") },
		protocol.ReasonBranchNotAllowed:     func(e *policy.Effective) { e.Branches = bound("main") },
	} {
		q := newQuay(t)
		q.promote("web/a.html", "a")
		allowed := q.Orders.Policy
		narrow(&q.Orders.Policy)
		for _, q.Orders.Policy.Enforcement = range []policy.Enforcement{policy.Enforce, policy.Audit} {
			e, err := q.service(nil).Review(t.Context(), q.Orders)
			if err != nil || e.Reason != reason || !strings.Contains(e.Objection, "overrides of s/a") {
				t.Errorf("%s: the review says %+v, %v", reason, e, err)
			}
			var refused *deliver.NotAllowedError
			if _, err := q.service(nil).Push(t.Context(), q.Orders); !errors.As(err, &refused) || refused.Fault.Reason != reason {
				t.Errorf("%s: the push says %v", reason, err)
			}
		}
		if refs := q.git("-C", q.origin, "for-each-ref"); refs != "" {
			t.Errorf("%s: the server has %s", reason, refs)
		}
		q.Orders.Policy = allowed
		q.Orders.Delivery.Push = false
		narrow(&q.Orders.Policy)
		if e, err := q.service(nil).Review(t.Context(), q.Orders); err != nil || (e.Objection == "") != (reason == protocol.ReasonBranchNotAllowed) {
			t.Errorf("%s: what is not pushed: %+v, %v", reason, e, err)
		}
	}
}

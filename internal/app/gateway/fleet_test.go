// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
	"github.com/tidewaiter/tidewaiter/internal/testkit/upstream"
)

// fleet is one gateway or several on one ledger, behind a Service, and a scripted provider.
type fleet struct {
	*testing.T

	options  []string
	gateways []*gateway
	entrance *entrance
	provider *scripted
	// config of the backend, as YAML.
	config string
}

// newFleet of so many gateways on the ledger of a database's URL.
func newFleet(t *testing.T, database string, size int) *fleet {
	f := &fleet{T: t, entrance: newEntrance(t), provider: &scripted{Server: provider.New(""), reached: map[string]int{}}}
	server := upstream.Start(t, f.provider)
	ca, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	f.must(err)
	f.config = configOf(server.URL, ca)
	configure(t, f.config)
	// No agent makes calls as fast as these tests.
	calls := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "calls"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{CallsPerMinute: ptr.To[int32](1_000_000)}},
	}}
	f.must(client.IgnoreAlreadyExists(env.Client.Create(t.Context(), calls)))
	// As the kubelet writes the Secret.
	ledgerFile := filepath.Join(t.TempDir(), "url")
	f.must(os.WriteFile(ledgerFile, []byte(database+"\n"), 0o600))
	f.options = []string{"--ledger-file=" + ledgerFile}
	for range size {
		f.add()
	}
	return f
}

// configOf a backend at a URL, with a CA as JSON.
func configOf(url string, ca []byte) string {
	return fmt.Sprintf("backends:\n- name: main\n  dialects: [anthropic, openai-responses, openai-chat]\n  baseURL: %s\n  ca: %s\n  models: [{name: large, prices: {input: \"3\", output: \"15\"}}]\n", url, ca)
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) until(what string, done func() bool) {
	f.Helper()
	gomega.NewWithT(f.T).Eventually(done, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), what)
}

// backend has one more line in its configuration; it is in force for gateways that are added later.
func (f *fleet) backend(line string) {
	f.Helper()
	configure(f.T, f.config+"  "+line+"\n")
}

// add a gateway, which serves when this returns.
func (f *fleet) add() *gateway {
	f.Helper()
	g := start(f.T, f.options...)
	f.must(g.rotator.Sync(f.Context()))
	f.until("the gateway is ready", g.ready)
	f.until("its ledger is open", func() bool { return strings.Contains(g.Log(), "The ledger is open") })
	f.gateways = append(f.gateways, g)
	f.entrance.set(f.gateways)
	return g
}

// remove one that has ended.
func (f *fleet) remove(g *gateway) {
	f.gateways = slices.DeleteFunc(f.gateways, func(other *gateway) bool { return other == g })
	f.entrance.set(f.gateways)
}

// attempt is a pod at work that all gateways know.
func (f *fleet) attempt(project, name string) *attempt.Attempt {
	f.Helper()
	a := attempt.Start(f.T, env, attempt.Feature(f.T, env, project, name))
	for _, g := range f.gateways {
		f.until("the pod is known", func() bool { _, err := g.allowance(f.T, a.Token); return err == nil })
	}
	return a
}

// policy of a project.
func (f *fleet) policy(project string, rules v1alpha1.Rules) {
	f.Helper()
	p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "limits"}, Spec: v1alpha1.SupervisorPolicySpec{Defaults: &rules}}
	f.must(env.Client.Create(f.Context(), p))
}

// limited waits until all gateways hold a Feature to a budget.
func (f *fleet) limited(a *attempt.Attempt) {
	f.Helper()
	for _, g := range f.gateways {
		f.until("the budget is known", func() bool {
			left, err := g.allowance(f.T, a.Token)
			return err == nil && left.Exceeded != ""
		})
	}
}

// watchdog of a pod, as far as it is about models: where its agent asks for them.
func (f *fleet) watchdog(a *attempt.Attempt, task string) string {
	f.Helper()
	dir := f.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	f.must(os.WriteFile(token, []byte(a.Token), 0o600))
	f.must(os.WriteFile(ca, f.gateways[0].rotator.Bundle(), 0o600))
	proxy, err := modelproxy.New(modelproxy.Options{
		Gateway: "https://" + f.entrance.address, Name: protocol.GatewayService + "." + kubetest.SystemNamespace + ".svc", Token: token, CA: ca,
		Task: func() string { return task }, Log: slog.New(slog.DiscardHandler),
	})
	f.must(err)
	l, err := modelproxy.Listen("127.0.0.1:0")
	f.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	done := make(chan error, 1)
	go func() { done <- proxy.Serve(ctx, l) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
	return modelproxy.URL(l)
}

// turns that are recorded of a Feature, whatever number of pages they are.
func (f *fleet) turns(feature *v1alpha1.Feature) (all []protocol.Turn) {
	f.Helper()
	for {
		query := fmt.Sprintf("feature=%s&after=%d&limit=%d", feature.UID, len(all), protocol.MaxTurns)
		code, page := f.gateways[0].turns(f.T, protocol.ManagerAccount, protocol.LedgerAudience, query)
		if code != http.StatusOK {
			f.Fatalf("read the turns: %d", code)
		}
		if len(page) == 0 {
			return all
		}
		for _, turn := range page {
			all = append(all, turn)
			if turn.Sequence != int64(len(all)) {
				f.Fatalf("turn %d has the number %d", len(all), turn.Sequence)
			}
		}
	}
}

// notMade are the reasons of calls that no backend was asked for: they count in no total.
var notMade = []string{protocol.ReasonBudgetExceeded, protocol.RefusalReserved, "LedgerUnavailable"}

// wantRecorded: each answer whose end the agents of a Feature saw is recorded once and with its tokens, nothing is recorded twice,
// and what is counted is what is recorded.
func (f *fleet) wantRecorded(a *attempt.Attempt, tries []try) {
	f.Helper()
	recorded, sum := map[string][]protocol.Turn{}, protocol.Usage{}
	var cost int64
	for _, turn := range f.turns(a.Feature) {
		if slices.Contains(notMade, turn.Reason) {
			continue
		}
		recorded[turn.RequestDigest] = append(recorded[turn.RequestDigest], turn)
		sum.InputTokens += turn.InputTokens + turn.CachedInputTokens + turn.CacheWriteTokens + turn.CacheWriteHourTokens
		sum.OutputTokens += turn.OutputTokens
		sum.Calls += turn.Count
		of, err := ledger.ParseDecimal(turn.Cost)
		f.must(err)
		cost += of
	}
	sum.Cost = ledger.Decimal(cost)
	seen := 0
	for _, x := range tries {
		turns := recorded[x.digest]
		switch {
		case len(turns) > 1:
			f.Errorf("a call is recorded %d times: %+v", len(turns), turns)
		case x.ended && len(turns) == 0:
			f.Errorf("an agent saw the end of an answer that is not recorded: %s", x.text)
		case x.ended && (turns[0].Reason != "Answered" || turns[0].OutputTokens != x.output && !strings.Contains(turns[0].Detail, "limits the answer")):
			f.Errorf("an answer of %d tokens is recorded as %+v", x.output, turns[0])
		}
		if x.ended {
			seen++
		}
	}
	allowance, err := f.gateways[0].allowance(f.T, a.Token)
	if f.must(err); allowance.Usage != sum {
		f.Errorf("counted are %+v, and recorded %+v", allowance.Usage, sum)
	}
	f.Logf("%s: %d tries, %d answers seen, %d turns recorded", a.Feature.Name, len(tries), seen, sum.Calls)
}

// wantWhole: no answer broke off that had begun.
func (f *fleet) wantWhole(a *attempt.Attempt, tries []try) {
	f.Helper()
	for _, x := range tries {
		if x.broken() {
			recorded := slices.DeleteFunc(f.turns(a.Feature), func(turn protocol.Turn) bool { return turn.RequestDigest != x.digest })
			f.Errorf("an answer broke off; it is recorded as %+v and ends with %q", recorded, x.text[max(0, len(x.text)-500):])
		}
	}
}

// allowance that a gateway tells a watchdog that wants more than any budget of a test has.
func (g *gateway) allowance(t *testing.T, token string) (a protocol.Allowance, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+protocol.AllowancePath+"?"+protocol.ParamWanted+"="+url.QueryEscape(ledger.Amount{Input: 1 << 40, Output: 1 << 40, Cost: 1 << 50}.String()), nil)
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := g.client(t)
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return a, fmt.Errorf("status %d", answer.StatusCode)
	}
	return a, json.NewDecoder(answer.Body).Decode(&a)
}

// entrance spreads connections over gateways, as a Service of Kubernetes does: it knows no more of them than where they are.
type entrance struct {
	address string

	mu    sync.Mutex
	next  int
	pods  []string
	conns map[net.Conn]bool
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &entrance{address: listener.Addr().String(), conns: map[net.Conn]bool{}}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { s.connect(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		open.Wait()
	})
	return s
}

// set the gateways.
func (s *entrance) set(gateways []*gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = nil
	for _, g := range gateways {
		s.pods = append(s.pods, g.address)
	}
}

// connect with the next gateway. One that is gone ends the connection.
func (s *entrance) connect(from net.Conn) {
	defer s.forget(from)
	s.mu.Lock()
	s.conns[from] = true
	pod := ""
	if len(s.pods) > 0 {
		pod = s.pods[s.next%len(s.pods)]
		s.next++
	}
	s.mu.Unlock()
	to, err := net.Dial("tcp", pod)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.conns[to] = true
	s.mu.Unlock()
	defer s.forget(to)
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (s *entrance) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	_ = c.Close()
}

// scripted is a provider that tells which calls have reached it, by what they are marked with.
type scripted struct {
	*provider.Server

	mu      sync.Mutex
	reached map[string]int
	open    int
}

var marks = regexp.MustCompile(`mark-[A-Z0-9]+`)

// ServeHTTP plays the script of a call.
func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.count(marks.FindString(string(body)), 1)
	defer s.count("", -1)
	s.Server.ServeHTTP(w, r)
}

func (s *scripted) count(mark string, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open += open; mark != "" {
		s.reached[mark]++
	}
}

// times that a call has reached the provider.
func (s *scripted) times(mark string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached[mark]
}

// busy says that so many answers are under way.
func (s *scripted) busy(calls int) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.open >= calls
	}
}

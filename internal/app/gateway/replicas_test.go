// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

// TestBudgetsAcrossReplicas: many calls at once through two gateways use a budget up, and go over it by no more than what their requests had above
// the estimate. A worker that is refused is told so in its dialect and reaches no provider. Nothing is counted twice,
// and nothing stays reserved.
func TestBudgetsAcrossReplicas(t *testing.T) {
	const agents, output = 12, 3000 // agents of each pod; tokens of each answer, unless a budget limits it
	for name, tc := range map[string]struct {
		budget   v1alpha1.BudgetRules
		features []string
		// limit, what a call takes at least, and by how much the estimate of its request may be wrong, in the unit of the ledger.
		limit, least, wrong int64
		of                  func(protocol.Turn) int64
		says                string
	}{
		"output tokens of a Feature": {
			v1alpha1.BudgetRules{Budget: v1alpha1.Budget{MaxOutputTokens: ptr.To[int64](200_000)}}, []string{"login"}, 200_000, ledger.LeastOutput, 0,
			func(turn protocol.Turn) int64 { return turn.OutputTokens }, "raise budget.maxOutputTokens of the SupervisorPolicy",
		},
		// An answer costs 0.045, and the question less than 0.001.
		"cost of a project": {
			v1alpha1.BudgetRules{Project: &v1alpha1.Budget{MaxCost: "4"}}, []string{"login", "logout"}, 4_000_000, 15*ledger.LeastOutput + 1000, 1000,
			func(turn protocol.Turn) int64 {
				cost, err := ledger.ParseDecimal(turn.Cost)
				if err != nil {
					panic(err)
				}
				return cost
			}, "raise budget.project.maxCost of the SupervisorPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			database := postgres.URL(t)
			f := newFleet(t, database, 2)
			project := env.Project(t)
			f.policy(project, v1alpha1.Rules{Budget: &tc.budget})
			var running sync.WaitGroup
			var mu sync.Mutex
			var pods []*attempt.Attempt
			tries, answered := map[string][]try{}, make([]int, len(f.gateways))
			for _, feature := range tc.features {
				pods = append(pods, f.attempt(project, feature))
			}
			for _, a := range pods {
				f.limited(a)
				for n := range agents {
					at := n % len(f.gateways)
					running.Go(func() {
						client := f.gateways[at].client(t)
						for refused := false; !refused; {
							x := tongues[n%len(tongues)].ask(t.Context(), client, "https://"+f.gateways[at].address, as(a.Token, "form"), play{words: 3, pause: 5 * time.Millisecond, output: output})
							mu.Lock()
							tries[a.Feature.Name] = append(tries[a.Feature.Name], x)
							if x.ended {
								answered[at]++
							}
							mu.Unlock()
							refused = f.refused(x, protocol.ReasonBudgetExceeded, tc.says)
							if !x.ended && !refused && x.reason() != protocol.RefusalReserved {
								t.Errorf("a call was answered %d %s: %s", x.status, x.reason(), x.text)
								return
							}
						}
					})
				}
			}
			running.Wait()
			used := int64(0)
			for _, a := range pods {
				f.wantRecorded(a, tries[a.Feature.Name])
				for _, turn := range f.turns(a.Feature) {
					used += tc.of(turn)
				}
			}
			if most := tc.limit + int64(agents*len(pods))*tc.wrong; used > most || used <= tc.limit-tc.least {
				t.Errorf("%d of %d were used; want no more than %d", used, tc.limit, most)
			}
			if answered[0] == 0 || answered[1] == 0 {
				t.Errorf("the gateways have answered %d calls", answered)
			}
			if n := reserved(t, database); n != 0 {
				t.Errorf("%d reservations are left of calls that have ended", n)
			}
			t.Logf("%d of %d were used in %d calls", used, tc.limit, answered)
		})
	}
}

// refused says whether a call was refused for a reason, in the form of its dialect. Then it has not reached the provider.
func (f *fleet) refused(x try, reason string, says ...string) bool {
	f.Helper()
	if x.reason() != reason {
		return false
	}
	if x.status != http.StatusServiceUnavailable || x.header.Get("Retry-After") == "" || x.refusal() == "" {
		f.Errorf("the refusal %s: %d %v %s", reason, x.status, x.header, x.text)
	}
	for _, part := range says {
		if !strings.Contains(x.refusal(), part) {
			f.Errorf("the refusal %s does not say %q: %s", reason, part, x.text)
		}
	}
	if n := f.provider.times(x.mark); n != 0 {
		f.Errorf("a call that was refused (%s) has reached the provider %d times", reason, n)
	}
	return true
}

// reserved counts what is reserved in a PostgreSQL.
func reserved(t *testing.T, database string) (n int) {
	t.Helper()
	if err := postgres.Open(t, database).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM reservations").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// long answers take most of a second.
var long = play{words: 24, pause: 30 * time.Millisecond, output: 50}

// TestAReplicaThatIsKilled in the middle of answers: what broke off is asked again at the other one, and what any agent saw the end of
// is recorded, once. What the dead one has reserved is given back when its time has passed.
func TestAReplicaThatIsKilled(t *testing.T) {
	database := postgres.URL(t)
	f := newFleet(t, database, 2)
	project := env.Project(t)
	var pods []*attempt.Attempt
	var crews []*crew
	for _, name := range []string{"login", "logout"} {
		a := f.attempt(project, name)
		pods, crews = append(pods, a), append(crews, f.work(f.watchdog(a, "form"), 6, long))
	}
	for round := range 4 {
		f.until("answers are under way", f.provider.busy(8))
		time.Sleep(time.Duration(round) * 190 * time.Millisecond) // at different moments of an answer
		victim := f.gateways[round%2]
		victim.Kill(t)
		time.Sleep(100 * time.Millisecond) // until then the Service sends half of all calls to nobody
		f.remove(victim)
		for _, c := range crews {
			f.until("agents go on", c.more(6))
		}
		f.add()
	}
	broken := 0
	for n, c := range crews {
		tries := c.end()
		f.wantRecorded(pods[n], tries)
		broken += c.count(try.broken)
	}
	left := reserved(t, database)
	if t.Logf("%d answers broke off, %d reservations are left", broken, left); broken < 4 || left == 0 {
		t.Error("no gateway was killed in the middle of an answer")
	}

	// What is left of the budget is reserved for calls that have ended with their gateway.
	a := pods[0]
	usage, err := f.gateways[0].allowance(t, a.Token)
	f.must(err)
	var own int64
	db := postgres.Open(t, database)
	f.must(db.QueryRowContext(t.Context(), "SELECT COALESCE(SUM(output), 0) FROM reservations WHERE feature_uid = $1", string(a.Feature.UID)).Scan(&own))
	if own == 0 {
		a = pods[1]
		usage, err = f.gateways[0].allowance(t, a.Token)
		f.must(err)
		f.must(db.QueryRowContext(t.Context(), "SELECT COALESCE(SUM(output), 0) FROM reservations WHERE feature_uid = $1", string(a.Feature.UID)).Scan(&own))
	}
	f.policy(project, v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{Budget: v1alpha1.Budget{MaxOutputTokens: ptr.To(usage.Usage.OutputTokens + own + ledger.LeastOutput - 1)}}})
	f.limited(a)
	ask := func(g *gateway) try {
		return tongues[0].ask(t.Context(), g.client(t), "https://"+g.address, as(a.Token, "form"), play{words: 1})
	}
	for _, g := range f.gateways {
		if x := ask(g); !f.refused(x, protocol.RefusalReserved, "calls under way may take the rest") {
			t.Errorf("%d %s", x.status, x.text)
		}
	}
	// Ten minutes later.
	_, err = db.ExecContext(t.Context(), "UPDATE reservations SET until = until - $1", int64(10*time.Minute))
	f.must(err)
	for _, g := range f.gateways {
		if x := ask(g); !x.ended {
			t.Errorf("what a dead gateway has reserved is not given back: %d %s", x.status, x.text)
		}
	}
	f.add()
	f.until("rows of calls that ended with their gateway are removed", func() bool { return reserved(t, database) == 0 })
}

// TestADatabaseThatIsKilled in the middle of answers: an agent whose answer is under way sees its end when the database is back. Until
// then no call is made that could not be recorded, unless the policy says so, which the log tells. Afterwards all goes on by itself.
func TestADatabaseThatIsKilled(t *testing.T) {
	server := postgres.Start(t, "gateway")
	f := newFleet(t, server.URL, 2)
	closed, open := env.Project(t), env.Project(t)
	f.policy(open, v1alpha1.Rules{Ledger: &v1alpha1.LedgerRules{FailurePolicy: "Ignore"}})
	login, lenient := f.attempt(closed, "login"), f.attempt(open, "lenient")
	c := f.work(f.watchdog(login, "form"), 8, long)
	ask := func(g *gateway, a *attempt.Attempt, task string) try {
		return tongues[1].ask(t.Context(), g.client(t), "https://"+g.address, as(a.Token, task), play{words: 1})
	}
	for range 2 {
		f.until("answers are under way", f.provider.busy(6))
		server.Kill()
		for _, g := range f.gateways {
			for _, task := range []string{"form", "new"} {
				if x := ask(g, login, task); !f.refused(x, "LedgerUnavailable", "ledger.failurePolicy") {
					t.Errorf("without a database the task %q was answered %d: %s", task, x.status, x.text)
				}
			}
			f.until("a call is let through", func() bool { return ask(g, lenient, "").ended })
			if !strings.Contains(g.Log(), "Letting a call through without a record") {
				t.Error("the log does not say that a call was not recorded")
			}
		}
		f.until("all answers wait for being recorded", func() bool { return !f.provider.busy(1)() })
		server.Again()
		f.until("agents go on", c.more(16))
		for _, g := range f.gateways {
			if x := ask(g, login, "new"); !x.ended {
				t.Errorf("when the database is back: %d %s", x.status, x.text)
			}
		}
	}
	tries := c.end()
	if n := c.count(try.broken); n > 0 {
		t.Errorf("%d answers broke off", n)
	}
	for _, x := range tries {
		f.refused(x, "LedgerUnavailable")
	}
	f.wantRecorded(login, tries)
}

// TestAGatewayOnAFileThatIsKilled: one that starts again on the same file has all that agents saw the end of, and what the
// dead one had reserved is free.
func TestAGatewayOnAFileThatIsKilled(t *testing.T) {
	f := newFleet(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), 1)
	project := env.Project(t)
	login := f.attempt(project, "login")
	c := f.work(f.watchdog(login, "form"), 8, long)
	for round := range 3 {
		f.until("answers are under way", f.provider.busy(6))
		time.Sleep(time.Duration(round) * 190 * time.Millisecond)
		victim := f.gateways[0]
		victim.Kill(t)
		f.remove(victim)
		f.add()
		f.until("agents go on", c.more(8))
	}
	tries := c.end()
	f.wantRecorded(login, tries)
	if n := c.count(try.broken); n < 3 {
		t.Errorf("%d answers broke off: the gateway was not killed in the middle of one", n)
	}
	usage, err := f.gateways[0].allowance(t, login.Token)
	f.must(err)
	f.policy(project, v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{Budget: v1alpha1.Budget{MaxOutputTokens: ptr.To(usage.Usage.OutputTokens + ledger.LeastOutput)}}})
	f.limited(login)
	g := f.gateways[0]
	if x := tongues[0].ask(t.Context(), g.client(t), "https://"+g.address, as(login.Token, "form"), play{words: 1}); !x.ended {
		t.Errorf("what is left of the budget is not free: %d %s", x.status, x.text)
	}
}

// TestAGatewayThatIsAskedToEnd lets answers under way end, and records them.
func TestAGatewayThatIsAskedToEnd(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "ledger.db") },
		"PostgreSQL": func(t *testing.T) string { return postgres.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, database(t), 1)
			login := f.attempt(env.Project(t), "login")
			c := f.work(f.watchdog(login, "form"), 6, long)
			for range 2 {
				f.until("answers are under way", f.provider.busy(5))
				g := f.gateways[0]
				f.remove(g)
				g.End(t)
				f.add()
				f.until("agents go on", c.more(6))
			}
			tries := c.end()
			f.wantWhole(login, tries)
			f.wantRecorded(login, tries)
		})
	}
}

// TestAnAnswerThatIsCutOff because it takes longer than a gateway has that is asked to end is recorded as far as it came, and nothing stays
// reserved for it.
func TestAnAnswerThatIsCutOff(t *testing.T) {
	database := postgres.URL(t)
	f := newFleet(t, database, 1)
	login := f.attempt(env.Project(t), "login")
	old := f.gateways[0]
	var x try
	var asking sync.WaitGroup
	asking.Go(func() {
		x = tongues[0].ask(t.Context(), old.client(t), "https://"+old.address, as(login.Token, "form"), play{words: 120, pause: 500 * time.Millisecond})
	})
	f.until("the answer is under way", f.provider.busy(1))
	old.End(t)
	asking.Wait()
	f.remove(old)
	f.add()
	turns := f.turns(login.Feature)
	if !x.broken() || len(turns) != 1 || turns[0].RequestDigest != x.digest || turns[0].Reason != "CallerGone" || turns[0].OutputTokens == 0 {
		t.Errorf("a call that was cut off is recorded as %+v", turns)
	}
	if n := reserved(t, database); n != 0 {
		t.Errorf("%d reservations are left", n)
	}
}

// TestASecondGatewayOnAFile does not become ready and says why, until the first one has ended: then it goes on with the file.
func TestASecondGatewayOnAFile(t *testing.T) {
	f := newFleet(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), 1)
	login := f.attempt(env.Project(t), "login")
	c := f.work(f.watchdog(login, "form"), 6, long)
	first, second := f.gateways[0], start(t, f.options...)
	f.must(second.rotator.Sync(t.Context()))
	f.until("the second one says why it is not ready", func() bool {
		return strings.Contains(second.Log(), "another process has it: only one gateway can use SQLite; for several replicas use PostgreSQL")
	})
	f.until("answers are under way", f.provider.busy(5))
	if !program.Passes(second.health, "/healthz") || second.ready() {
		t.Error("a gateway is ready whose ledger belongs to another one")
	}
	f.remove(first)
	first.End(t)
	f.until("it is ready", second.ready)
	f.gateways = append(f.gateways, second)
	f.entrance.set(f.gateways)
	f.until("agents go on", c.more(6))
	tries := c.end()
	f.wantWhole(login, tries)
	f.wantRecorded(login, tries)
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
	"github.com/tidewaiter/tidewaiter/internal/testkit/fakeintake"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(looperEnv) != "" {
		if err := becomeLooper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// programs is a directory with the real runner, and with podstart, built once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/tidewaiter/tidewaiter/cmd/runner", "github.com/tidewaiter/tidewaiter/internal/testkit/podstart")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build programs: %w\n%s", err, out)
	}
	return dir, nil
})

// world is everything around one Feature: a Git server, an intake, and the volumes that outlive its pods.
type world struct {
	// tidy keeps the trusted repository as small as it can be, at every occasion.
	tidy bool
	// fold puts the journal's records into segments at every occasion.
	fold bool
	// runtimes that this world knows beside those of the version.
	runtimes []runtimes.Runtime
	t        *testing.T
	dir      string
	intake   *fakeintake.Intake
	origin   string // bare repository on the server
	url      string // of the same
	// requests that the Git server was asked.
	requests atomic.Int64
	paths    watchdog.Paths
	tools    string // address of the agent's tools
	models   string // address of the agent's models
	gateway  string // URL of the gateway; empty in worlds without models
	// ledger takes what checkpoints have changed.
	ledger *ledger
	// handover is how long the end of an attempt waits for it: on a busy machine the last diffs take a while.
	handover  time.Duration
	ledgerURL string
	// log has all that watchdogs have said in their logs.
	log said
}

// said is text that several write at the same time.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String is all of it.
func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

const secretPassword = "the-password-of-shop"

// newWorld makes a repository with a few files, and orders for one task that runs a shell script.
func newWorld(t *testing.T, script string, change ...func(*protocol.Orders)) *world {
	t.Helper()
	w := &world{t: t, dir: container.TempDir(t), tools: "127.0.0.1:0", models: "127.0.0.1:0", handover: 2 * time.Minute}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	w.paths = watchdog.Paths{
		Trusted: w.mkdir("trusted"), Workspace: w.mkdir("workspace"), Home: w.mkdir("home"), Run: w.mkdir("run"),
		GitSecret: w.mkdir("git-secret"), Runner: filepath.Join(bin, "runner"),
	}
	w.write("git-secret/username", "shop\n")
	w.write("git-secret/password", secretPassword+"\n")
	url := w.serveGit()
	w.intake = fakeintake.Start(t, orders(url, script, change...))
	w.paths.CA, w.paths.Token = w.intake.CAPath, w.intake.TokenPath
	w.serveLedger()
	return w
}

func orders(url, script string, change ...func(*protocol.Orders)) protocol.Orders {
	e := policy.Merge(policy.Sources{})
	e.Execution.Interval, e.Execution.MinInterval, e.Execution.MaxChanges = 300*time.Millisecond, 50*time.Millisecond, 50
	e.Execution.PauseTimeout = 2 * time.Minute // a busy machine is no reason for a checkpoint to fail
	e.Hash = "policy-1"
	o := protocol.Orders{
		Version: protocol.OrdersVersion, Attempt: 1, Run: "agent", NextCheckpoint: 1,
		Feature:    protocol.FeatureRef{Namespace: "shop", Name: "login", UID: "u1"},
		Repository: protocol.Repository{URL: url, Revision: "main", HasCredentials: true, SecretName: "shop-git"},
		Agent:      protocol.Agent{Runtime: "command", Command: []string{"sh", "-c", script}},
		Prompt:     "Add a login page.",
		Tasks:      []protocol.Task{{Name: "login"}},
		Plan:       protocol.Plan{Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"}},
		Policy:     e,
		Delivery: protocol.Delivery{Branch: "tidewaiter/login", Push: true, AuthorName: "Tidewaiter",
			AuthorEmail: "bot@example.com", Subject: "Add a login page"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func (w *world) mkdir(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// serveGit makes the repository and serves it over HTTPS with authentication.
func (w *world) serveGit() string {
	w.t.Helper()
	repos := w.mkdir("repos")
	w.origin = filepath.Join(repos, "shop.git")
	shop, err := seeded()
	if err == nil {
		err = os.CopyFS(w.origin, os.DirFS(filepath.Join(shop, "shop.git")))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	handler, err := gitserver.New(repos, "shop", secretPassword)
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		handler.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	w.write("git-secret/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.url = server.URL + "/shop.git"
	return w.url
}

// seeded is a directory with the shop, in seed and in the bare repository shop.git, made once: each test has a copy of shop.git.
var seeded = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		return "", err
	}
	seed := filepath.Join(dir, "seed")
	for name, content := range map[string]string{
		"README.md": "The shop.\n", "web/index.html": "<h1>Shop</h1>\n", "web/legacy/old.html": "<h1>Old</h1>\n", ".gitignore": "*.log\n",
	} {
		path := filepath.Join(seed, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", seed},
		{"-C", seed, "add", "-A"},
		{"-C", seed, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "Begin"},
		{"clone", "-q", "--bare", seed, filepath.Join(dir, "shop.git")},
	} {
		if out, err := tryGit(args...); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args, err, out)
		}
	}
	return dir, nil
})

// seed is a work tree of the shop for this test, whose branch main is the server's.
func (w *world) seed() string {
	w.t.Helper()
	path := filepath.Join(w.dir, "seed")
	shop, err := seeded()
	if err == nil {
		err = os.CopyFS(path, os.DirFS(filepath.Join(shop, "seed")))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.git("-C", path, "update-index", "-q", "--refresh") // the files of a copy are new to the index
	return path
}

// git runs git for the test, and gives what it prints.
func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := tryGit(args...)
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// branch is the delivered branch on the server; empty when there is none.
func (w *world) branch() string {
	out, err := tryGit("-C", w.origin, "rev-parse", "-q", "--verify", "refs/heads/tidewaiter/login")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// command runs a command of the watchdog in this process, which does not keep the limit of memory that a watchdog has for itself.
func command(args []string, stdout, stderr io.Writer) int {
	defer debug.SetMemoryLimit(math.MaxInt64)
	return watchdog.Main(args, stdout, stderr)
}

// delivered is the content of a file on the delivered branch.
func (w *world) delivered(path string) string {
	w.t.Helper()
	return w.git("-C", w.origin, "show", "refs/heads/tidewaiter/login:"+path)
}

// trusted runs git on the trusted repository.
func (w *world) trusted(args ...string) string {
	w.t.Helper()
	return w.git(append([]string{"-C", filepath.Join(w.paths.Trusted, "repo.git")}, args...)...)
}

func (w *world) options(attempt int64, probe func(string) error) watchdog.Options {
	maxPacks, pruneAbove, foldAbove := 1000, int64(1<<30), int64(1<<30)
	if w.fold {
		foldAbove = 0
	}
	if w.tidy {
		maxPacks, pruneAbove = 1, 0
	}
	return watchdog.Options{
		Runtimes: append(runtimes.All(), w.runtimes...), MaxPacks: maxPacks, FoldAbove: foldAbove, PruneAbove: pruneAbove,
		Namespace: "shop", Feature: "login", Attempt: attempt, Window: 64_000, Intake: w.intake.URL, IntakeName: fakeintake.ServerName,
		Models: w.models, Proxy: "127.0.0.1:0", Gateway: w.gateway, GatewayName: "example.com", Ledger: w.ledgerURL, BudgetPause: 5 * time.Millisecond, Tools: w.tools, Paths: w.paths, Grace: time.Second, Handover: w.handover, Now: time.Now, Probe: probe,
		Log: watchdog.NewLog(io.MultiWriter(testWriter{w.t}, &w.log)).With("attempt", attempt),
	}
}

// testWriter writes a process's log into the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// begin orders an attempt.
func (w *world) begin(attempt int64, run string) {
	taken := w.intake.Checkpoints()
	w.intake.Order(func(o *protocol.Orders) {
		o.Attempt, o.Run = attempt, run
		for _, c := range taken {
			o.NextCheckpoint = max(o.NextCheckpoint, c.Sequence+1)
		}
	})
}

// prepare runs the init container of an attempt.
func (w *world) prepare(attempt int64) error {
	w.t.Helper()
	w.begin(attempt, "agent")
	return w.prepared(attempt, w.paths)
}

func (w *world) prepared(attempt int64, paths watchdog.Paths) error {
	o := w.options(attempt, nil)
	o.Paths = paths
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return watchdog.Prepare(ctx, o)
}

// pod is a running attempt: the agent's container with the real runner, and the watchdog in this process.
type pod struct {
	w       *world
	attempt int64
	paths   watchdog.Paths
	gate    string // that the pod is for
	agent   *exec.Cmd
	view    container.View
	gone    chan struct{}
	stop    context.CancelFunc
	ended   chan error
}

// start prepares an attempt and starts its containers.
func (w *world) start(attempt int64, probe func(string) error) *pod {
	w.t.Helper()
	if err := w.prepare(attempt); err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
	p := &pod{w: w, attempt: attempt, paths: w.paths, gone: make(chan struct{})}
	p.begin(probe)
	return p
}

// begin both containers.
func (p *pod) begin(probe func(string) error) {
	w := p.w
	w.t.Helper()
	p.watch(probe)
	bin, err := programs()
	if err != nil {
		w.t.Fatal(err)
	}
	p.agent = exec.Command(filepath.Join(bin, "podstart"), p.paths.Run)
	p.agent.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	p.agent.WaitDelay = 10 * time.Second // a process that holds the output open
	p.agent.Stdout, p.agent.Stderr = testWriter{w.t}, testWriter{w.t}
	if err := p.agent.Start(); err != nil {
		w.t.Fatal(err)
	}
	p.view = container.Outside(w.t, p.agent.Process.Pid)
	go func() {
		_ = p.agent.Wait()
		close(p.gone)
	}()
	w.t.Cleanup(p.kill)
}

// watch starts the watchdog's container, for the first time or again.
func (p *pod) watch(probe func(string) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(p.w.t.Context()))
	p.stop, p.ended = stop, make(chan error, 1)
	ended, o, run := p.ended, p.w.options(p.attempt, probe), watchdog.Run
	o.Paths = p.paths
	if o.Gate = p.gate; o.Gate != "" {
		run = watchdog.Prove
	}
	go func() { ended <- run(ctx, o) }()
}

// resume with another watchdog, which may find nothing of what the last one remembered of the conversation.
func (p *pod) resume(lost bool) {
	p.w.t.Helper()
	if lost {
		p.lose()
	}
	p.watch(nil)
}

// lose what the last watchdog remembered of the conversation.
func (p *pod) lose() {
	p.w.t.Helper()
	if err := os.Remove(filepath.Join(p.w.paths.Trusted, "conversation.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.w.t.Fatal(err)
	}
}

// named is the name of a test in which a cache is lost, or not.
func named(name string, lost bool) string {
	if lost {
		return name + ", its cache is lost"
	}
	return name
}

// terminate asks the watchdog to end, as the kubelet does.
func (p *pod) terminate() { p.stop() }

// kill ends both containers for good.
func (p *pod) kill() {
	_ = p.agent.Process.Kill()
	<-p.gone
	p.stop()
}

// wait for the watchdog to end.
func (p *pod) wait() error {
	p.w.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		p.w.t.Fatal("the watchdog does not end")
		return nil
	}
}

// standsStill says whether each process of the agent's container is stopped or dead.
func (p *pod) standsStill() bool {
	p.w.t.Helper()
	return len(p.view.Moving(p.w.t)) == 0
}

// awaitFrozen waits until the watchdog says that it has frozen the agent until somebody acts, and looks whether it has. That the agent
// stands still does not say so: a checkpoint freezes it for a moment, too.
func (p *pod) awaitFrozen() {
	p.w.t.Helper()
	p.w.eventually("the watchdog has frozen the agent", func() bool {
		return strings.Contains(p.w.log.String(), "The agent is frozen until a user acts")
	})
	if !p.standsStill() {
		p.w.t.Errorf("the agent is said to be frozen: %q", p.view.Moving(p.w.t))
	}
}

// finish waits for the final report and for both containers to end.
func (p *pod) finish() protocol.FinalReport {
	p.w.t.Helper()
	if err := p.wait(); err != nil {
		p.w.t.Fatalf("watchdog: %v", err)
	}
	select {
	case <-p.gone:
	case <-time.After(time.Minute):
		p.w.t.Fatal("the agent's container does not end")
	}
	f := p.w.intake.Final(p.attempt)
	if f == nil {
		p.w.t.Fatal("no final report")
	}
	if repeated := p.w.intake.Repeated(); len(repeated) > 0 {
		p.w.t.Errorf("reported twice: %v", repeated)
	}
	if refused := p.w.intake.Refused(); len(refused) > 0 {
		p.w.t.Errorf("reports that intake does not take: %v", refused)
	}
	if code, out := verify(p.w.t, p.w.paths.Trusted); code != 0 {
		p.w.t.Errorf("the record that is left: code %d\n%s", code, out)
	}
	return *f
}

// seal runs a seal Job.
func (w *world) seal(attempt int64) protocol.FinalReport {
	w.t.Helper()
	w.begin(attempt, "seal")
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := watchdog.Seal(ctx, w.options(attempt, nil)); err != nil {
		w.t.Fatalf("seal: %v", err)
	}
	f := w.intake.Final(attempt)
	if f == nil {
		w.t.Fatal("no final report")
	}
	return *f
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	w.t.Fatalf("never: %s; checkpoints %+v, status %+v", what, w.intake.Checkpoints(), w.intake.Status())
}

// signal lets all scripts go on that wait for it, now or later.
func (w *world) signal(name string) {
	w.t.Helper()
	w.write("signals/"+name, "")
	pipe, err := os.OpenFile(w.pipe(name), os.O_RDWR, 0)
	if err == nil {
		_, err = pipe.WriteString(strings.Repeat("\n", 100)) // a line for each that reads already, or is about to
		w.t.Cleanup(func() { _ = pipe.Close() })
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// pipe is what scripts read while they wait for a signal: a process that looks again and again costs more than the whole rest of a test.
func (w *world) pipe(name string) string {
	w.t.Helper()
	path := filepath.Join(w.mkdir("pipes"), name)
	if err := unix.Mkfifo(path, 0o666); err != nil && !errors.Is(err, fs.ErrExist) {
		w.t.Fatal(err)
	}
	return path
}

// tell changes the orders, and waits until the watchdog has heard of them: it can be busy, and what the agent does next may come first.
func (w *world) tell(change func(*protocol.Orders)) {
	w.t.Helper()
	w.intake.Order(change)
	w.eventually("the watchdog has the newest orders", w.intake.Heard)
}

// waitFor is the shell command that waits for a signal.
func (w *world) waitFor(name string) string {
	return "until [ -e " + filepath.Join(w.dir, "signals", name) + " ]; do read -r go_on < " + w.pipe(name) + " || sleep 0.02; done; "
}

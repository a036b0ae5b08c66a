// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// workerBinary is the real worker, built once.
var workerBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "worker-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-o", path, "github.com/tidewaiter/tidewaiter/cmd/worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

// goodPatch is one that is taken.
const goodPatch = `
  tool:
    name: repo_apply_patch
    input:
      operation_id: two
      patch: |
        diff --git a/web/page.html b/web/page.html
        new file mode 100644
        --- /dev/null
        +++ b/web/page.html
        @@ -0,0 +1 @@
        +good
`

// workerScript breaks a rule, corrects that, sends the patch once more as one does whose answer was lost, and completes the task.
const workerScript = "Add a page.\n```script\n" + `turns:
- text: I look around.
  tools: [{name: feature_get_context, input: {}}, {name: repo_read_file, input: {path: web/index.html}}]
- text: I write too much.
  tool:
    name: repo_apply_patch
    input:
      operation_id: one
      patch: |
        diff --git a/web/page.html b/web/page.html
        new file mode 100644
        --- /dev/null
        +++ b/web/page.html
        @@ -0,0 +1 @@
        +good
        diff --git a/web/legacy/page.html b/web/legacy/page.html
        new file mode 100644
        --- /dev/null
        +++ b/web/legacy/page.html
        @@ -0,0 +1 @@
        +evil
- text: Only what is allowed, then.
  fail: {status: 529}` + goodPatch + `
- text: Did that arrive?` + goodPatch + `
- text: It is done, I think.
- tool: {name: task_complete, input: {summary: There is a page.}}
` + "```\n"

// newOffice is a world whose agent is the real worker, and whose model plays a script.
func newOffice(t *testing.T, dialectName string) (*world, *provider.Server) {
	t.Helper()
	program, err := workerBinary()
	if err != nil {
		t.Fatalf("build worker: %v", err)
	}
	w := newWorld(t, "", deterministic, func(o *protocol.Orders) {
		o.Agent = protocol.Agent{Runtime: "worker", Command: []string{program}, Env: []string{protocol.EnvDialect + "=" + dialectName}}
		o.Prompt = workerScript
	})
	d, _ := dialect.Find(dialectName)
	player := provider.New("")
	w.serveGateway(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			tunnel(rw, r.Host)
		case r.URL.Path == protocol.AllowancePath:
			http.NotFound(rw, r)
		default:
			http.StripPrefix(d.Prefix, player).ServeHTTP(rw, r)
		}
	}))
	return w, player
}

// serveGateway begins to serve a gateway.
func (w *world) serveGateway(gateway http.Handler) {
	w.t.Helper()
	server := httptest.NewTLSServer(gateway)
	w.t.Cleanup(server.Close)
	w.gateway = server.URL
	ca, err := os.ReadFile(w.paths.CA)
	if err != nil {
		w.t.Fatal(err)
	}
	w.paths.CA = filepath.Join(w.dir, "both.crt")
	w.write("both.crt", string(ca)+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

// TestWorker: the real worker does a task under a real watchdog, in each dialect. What breaks a rule is refused and corrected.
func TestWorker(t *testing.T) {
	t.Parallel()
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			w, player := newOffice(t, d.Name)
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantVerdicts("Patch Valid Promoted", "Final Skipped None")
			if got := w.delivered("web/page.html"); got != "good" {
				t.Errorf("delivered %q", got)
			}
			w.wantBlob("evil\n", false)
			asked := player.Recorded()
			last := asked[len(asked)-1].Body
			for _, part := range []string{"I look around.", `\"rule\":\"forbidden-areas\"`, "You have called no tool."} {
				if !strings.Contains(last, part) {
					t.Errorf("the last request lacks %s: %s", part, last)
				}
			}
			w.wantHealthy()
		})
	}
}

// TestAWorkerOutlivesItsWatchdog: it goes on where it was when the watchdog is back, and nothing is done twice.
func TestAWorkerOutlivesItsWatchdog(t *testing.T) {
	t.Parallel()
	w, _ := newOffice(t, "anthropic")
	w.tools, w.models = addresses.Free(), addresses.Free()
	plugs := newPlugs(t, after("refusal journaled", "committed", "done journaled"))
	p := plugs.processes(w.start(1, plugs.probe()))
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Patch Valid Promoted", "Final Skipped None")
	w.wantHealthy()
}

// TestAWorkerThatFails ends its attempt as failed: the reason is in its log.
func TestAWorkerThatFails(t *testing.T) {
	t.Parallel()
	w, _ := newOffice(t, "openai-chat")
	w.intake.Order(func(o *protocol.Orders) { o.Prompt, o.Agent.Args = "Do nothing.", []string{"--max-turns=2"} })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
}

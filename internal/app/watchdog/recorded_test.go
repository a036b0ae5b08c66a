// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// recordAs names the version whose volumes are recorded, and may name one of the lives: go test ./internal/app/watchdog -run TestRecordedVolumes
// -record 0.6/learned. Do so before a change to what is written there; the recordings of all versions are read by TestRecordedVolumes.
var recordAs = flag.String("record", "", "record the volumes that this version writes as those of the `version`, or version/life, with this name")

const recordings = "testdata/recorded"

// recorded are lives of a Feature that together leave every kind of record in the journal, and one that was cut off in the
// middle of a checkpoint with reports that intake has not had.
var recorded = map[string]func(t *testing.T) *world{
	"cut-off": func(t *testing.T) *world {
		w := newWorld(t, crashScript, keen, shadow)
		w.fold = true
		pull := pullAt("restored", 2)
		p := w.start(1, func(step string) error {
			if step == "captured" {
				w.intake.Refuse(503)
			}
			return pull(step)
		})
		if err := p.wait(); !errors.Is(err, errPulled) {
			t.Fatalf("the watchdog ended with %v", err)
		}
		p.kill()
		return w
	},
	"acknowledged": func(t *testing.T) *world {
		w := newWorld(t, "", keen, critical)
		w.intake.Order(func(o *protocol.Orders) {
			o.Agent.Command[2] = `echo evil > web/legacy/evil.html; ` + untilTold + understood("forbidden-areas") + w.waitFor("go") + `rm web/legacy/evil.html; echo good > web/good.html`
		})
		p := w.start(1, nil)
		w.eventually("it is reported", func() bool { return len(w.acknowledged()) == 1 })
		w.signal("go")
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"deterministic": func(t *testing.T) *world {
		w := agentByHand(t)
		p := w.start(1, nil)
		c := w.connect()
		c.patch("op1", newFile("web/a.html", "a"))
		c.patch("op2", newFile("web/legacy/b.html", "b"))
		c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, new(any))
		c.complete()
		w.signal("exit")
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"corrected": func(t *testing.T) *world {
		w := newMonastery(t, correctedScript)
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"rejected": func(t *testing.T) *world {
		w := newWorld(t, "", seldom)
		run, ask := w.withModels(http.HandlerFunc(rejecting), nil)
		ask()
		wantFinal(t, run.finish(), protocol.OutcomeBlocked, protocol.ReasonAnswerRejected)
		return w
	},
	"unanswered": func(t *testing.T) *world {
		w, gateway := newWorld(t, "", seldom), &faulty{}
		run, ask := w.withModels(gateway, nil)
		gateway.fail(http.StatusServiceUnavailable, "BackendUnreachable")
		ask()
		gateway.fail(0, "")
		ask()
		w.signal("end")
		wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"steered": func(t *testing.T) *world {
		c := newCircling(t, nil)
		if err := c.untilTold(); err != nil {
			t.Fatal(err)
		}
		c.signal("end")
		wantFinal(t, c.run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return c.world
	},
	"restarted": func(t *testing.T) *world {
		w, _ := climbing(t, policy.RungRestart, begunAnew)
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"squashed": func(t *testing.T) *world {
		w, start := newAudited(t)
		p := start(nil)
		w.tell(enforcing)
		w.signal("end")
		w.wantSquashed(p.finish())
		return w
	},
	"dropped": func(t *testing.T) *world {
		w := newWorld(t, "", seldom, func(o *protocol.Orders) { o.Policy.KeepCheckpoints, o.Policy.UnpromotedBytes = 2, 32<<10 })
		w.tidy = true
		script := "echo good > web/good.html; "
		for n := range 6 {
			script += fmt.Sprintf("head -c 10000 /dev/urandom > web/legacy/hoard; %s%s", w.signalled(fmt.Sprint("wrote-", n)), w.waitFor(fmt.Sprint("go-", n)))
		}
		w.intake.Order(func(o *protocol.Orders) { o.Agent.Command[2] = script + "rm web/legacy/hoard; echo end > web/end.html" })
		p := w.start(1, nil)
		for n := range 6 {
			w.waitSignal(fmt.Sprint("wrote-", n))
			w.checkpointNow(fmt.Sprint("r", n))
			w.signal(fmt.Sprint("go-", n))
		}
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"withheld": func(t *testing.T) *world {
		w := agentByHand(t)
		w.smallWorkspace(1 << 20)
		p := w.start(1, nil)
		c := w.connect()
		release := w.fillWorkspace(8 << 10)
		if big := c.patch("big", newFile("web/big.html", strings.Repeat("x", 200<<10))); big.Status != "refused" {
			t.Fatalf("the patch: %+v", big)
		}
		release()
		c.patch("small", newFile("web/small.html", "small"))
		c.complete()
		w.signal("exit")
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"directed": func(t *testing.T) *world {
		w := newWorld(t, `echo good > web/good.html; head -n 1 > "$HOME/line"`, seldom)
		w.gives("use-dict", "Take the labels from the dictionary.")
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"gated": func(t *testing.T) *world {
		w := newGated(t, mends, good, "true")
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"aborted": func(t *testing.T) *world {
		w := newAborting(t)
		w.wantAborted(w.start(1, nil).finish())
		return w
	},
	"approved": func(t *testing.T) *world {
		w, _, hash := proposed(t)
		w.planRequests(2, protocol.Request{ID: "a1", Kind: protocol.RequestApprovePlan, Hash: hash})
		wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"replanned": func(t *testing.T) *world {
		w, run := replanned(t, nil)
		w.signal("go")
		wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"unplanned": func(t *testing.T) *world {
		w, run := replannedAs(t, nil, "- text: I would leave it as it is.")
		w.signal("go")
		wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"planned": func(t *testing.T) *world {
		w, _ := newPlanned(t, "anthropic", planOfTwo)
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"proved": func(t *testing.T) *world {
		w := newProved(t, mends, good)
		f := w.start(1, nil).finish()
		wantFinal(t, w.prove(2, f.Gate, nil).finish(), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
		f = w.start(3, nil).finish()
		wantFinal(t, w.prove(4, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"proved-in-pods": func(t *testing.T) *world {
		w := newPods(t, mends, good)
		f := w.start(1, nil).finish()
		wantFinal(t, w.prove(2, f.Gate, nil).finish(), protocol.OutcomeUnfinished, protocol.ReasonCorrecting)
		f = w.start(3, nil).finish()
		wantFinal(t, w.prove(4, f.Gate, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"parked": func(t *testing.T) *world {
		w := newAsker(t)
		p := w.start(1, nil)
		w.connect().asks("q1")
		wantParked(t, p.finish())
		return w
	},
	"reviewed": func(t *testing.T) *world {
		w, _ := newReviewed(t, oneFinding)
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"learned": func(t *testing.T) *world {
		w, _ := newWriting(t, oneLesson, "established", withAssessor(oneDrift), func(o *protocol.Orders) { o.Policy.Knowledge.Deliver = policy.KnowledgeCommit })
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"unlisted": func(t *testing.T) *world {
		w := newListed(t, "form", "save")
		p := w.start(1, nil)
		w.atWork("form")
		w.list("save")
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
	"breaker": func(t *testing.T) *world {
		w := newWorld(t, "", keen)
		w.intake.Order(func(o *protocol.Orders) {
			o.Agent.Command[2] = `echo a > web/a.html; while [ ! -e "$HOME/go" ]; do echo $((n=n+1)) > web/now.html; sleep 0.02; done; rm web/now.html`
		})
		p := w.start(1, nil)
		w.lockChain()
		w.eventually("the breaker is open", func() bool { s := w.intake.Status(); return s.State == protocol.StateFrozen })
		w.remove(chainLock)
		w.intake.Order(func(o *protocol.Orders) {
			o.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestResetBreaker}}
		})
		w.write("home/go", "")
		wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		return w
	},
}

// record lives every life once, or only the one that is named, and keeps what is left of it.
func record(t *testing.T, as string) {
	version, only, one := strings.Cut(as, "/")
	if _, known := recorded[only]; one && !known {
		t.Fatalf("no life has the name %q", only)
	}
	for name, live := range recorded {
		if one && name != only {
			continue
		}
		w := live(t)
		archive := filepath.Join(recordings, version, name+".tar.gz")
		if err := errors.Join(os.MkdirAll(filepath.Dir(archive), 0o755), pack(archive, w.dir, "trusted", "workspace")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordedVolumes reads the volumes that earlier versions have written: the record is whole, an attempt that was cut
// off is taken over and delivered with its reports, and one that has ended can still be rolled back.
func TestRecordedVolumes(t *testing.T) {
	t.Parallel()
	if *recordAs != "" {
		record(t, *recordAs)
	}
	archives, err := filepath.Glob(filepath.Join(recordings, "*", "*.tar.gz"))
	if err != nil || len(archives) < len(recorded) {
		t.Fatalf("%d recordings, %v", len(archives), err)
	}
	kinds := map[string]bool{}
	t.Run("versions", func(t *testing.T) {
		for _, archive := range archives {
			name, _ := filepath.Rel(recordings, archive)
			t.Run(strings.TrimSuffix(name, ".tar.gz"), func(t *testing.T) {
				w := newWorld(t, "")
				if err := unpack(archive, w.dir); err != nil {
					t.Fatal(err)
				}
				records, state := w.recorded()
				for _, r := range records {
					noteKinds(kinds, r)
				}
				if state.Finished {
					w.goesBack(state)
				} else {
					w.goesOn(state)
				}
				if code, out := verify(t, w.paths.Trusted, "--history"); code != 0 {
					t.Errorf("verify at the end: code %d\n%s", code, out)
				}
			})
		}
	})
	for field := range reflect.TypeFor[journal.Record]().Fields() {
		if field.Type.Kind() == reflect.Pointer && !kinds[field.Name] {
			t.Errorf("no recording holds a record of the kind %s: add a life that leaves one, and record it", field.Name)
		}
	}
}

// recorded verifies the record, and reads the journal as the command log prints it.
func (w *world) recorded() ([]journal.Record, journal.State) {
	w.t.Helper()
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify: code %d\n%s", code, out)
	}
	records := w.journaled()
	state, err := journal.Replay(records)
	if err != nil || state.Orders == nil {
		w.t.Fatalf("replay: %v; orders %v", err, state.Orders)
	}
	return records, state
}

// journaled reads the records of the journal, and starts no process.
func (w *world) journaled() []journal.Record {
	w.t.Helper()
	records, _, err := journal.Decode([]byte(w.ask("log")))
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

// reorder gives the recorded orders for the next attempt.
func (w *world) reorder(s journal.State) int64 {
	w.intake.Order(func(o *protocol.Orders) {
		url := o.Repository.URL
		*o = *s.Orders
		o.Version, o.Repository.URL, o.Requests = protocol.OrdersVersion, url, nil
	})
	return s.Epoch + 1
}

// goesOn takes over what was cut off.
func (w *world) goesOn(s journal.State) {
	w.t.Helper()
	w.wantFinished(w.start(w.reorder(s), nil).finish())
	reports := w.intake.Reports()
	if len(reports) == 0 || reports[0].Epoch != s.Epoch {
		w.t.Errorf("the reports of attempt %d did not come first: %+v", s.Epoch, reports)
	}
}

func (w *world) wantFinished(f protocol.FinalReport) {
	w.t.Helper()
	wantFinal(w.t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.trusted("rev-parse", protocol.RefDelivery); w.branch() != f.Head || got != f.Head {
		w.t.Errorf("branch %q, delivery %q, head %q", w.branch(), got, f.Head)
	}
}

// goesBack rolls the workspace of an attempt that has ended back to the first checkpoint that has content.
func (w *world) goesBack(s journal.State) {
	w.t.Helper()
	to := int64(1)
	for s.Dropped[to] {
		to++
	}
	attempt := w.reorder(s)
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "back", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: to}}}
	})
	w.seal(attempt)
	for _, r := range w.intake.Reports() {
		if r.Request != nil && r.Request.ID == "back" {
			if !r.Request.OK {
				w.t.Errorf("rollback to checkpoint %d: %s", to, r.Request.Message)
			}
			return
		}
	}
	w.t.Error("the rollback was not answered")
}

// noteKinds notes which fields of a record are set.
func noteKinds(kinds map[string]bool, r journal.Record) {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			kinds[v.Type().Field(i).Name] = true
		}
	}
}

// pack writes directories into an archive.
func pack(archive, root string, dirs ...string) error {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(file)
	out := tar.NewWriter(z)
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return packOne(out, root, path, d)
		}))
	}
	return errors.Join(err, out.Close(), z.Close(), file.Close())
}

func packOne(out *tar.Writer, root, path string, d os.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&os.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(root, path); err != nil {
		return err
	}
	header.Uname, header.Gname = "", ""
	if err := out.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.ReadFile(path)
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}

// unpack does the reverse.
func unpack(archive, root string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	in := tar.NewReader(z)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path, mode := filepath.Join(root, header.Name), header.FileInfo().Mode()
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, path)
		default:
			var content []byte
			if content, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err == nil && header.Typeflag != tar.TypeSymlink {
			err = os.Chmod(path, mode.Perm())
		}
		if err != nil {
			return err
		}
	}
}

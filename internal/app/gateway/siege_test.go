// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

const (
	// siegers are the connections of the hostile Feature.
	siegers = 64
	// Each of the healthy Features makes so many calls before the siege, and so many during it.
	healthyFeatures, callsAlone, callsBesieged = 3, 30, 60
	// Each makes a pause after a call, so that the siege lasts for some seconds. In the long form the healthy Features make one call a second for two
	// minutes, as agents do.
	shortPause           = 100 * time.Millisecond
	longSiege, longPause = 2 * time.Minute, time.Second
	// mostSlower is the budget for the 99th percentile of their calls, in times of what it was before the siege.
	mostSlower = 3
	// retries of a call: what a client's few, each after a pause, come to.
	retries = 20
	// callsPerMinute is the built-in value of budget.callsPerMinute.
	callsPerMinute = 120
	// backendConcurrency is less than a Feature may have calls under way: without shares the hostile one has all of it.
	backendConcurrency = 16
)

// containerLimit is the memory limit that the gateway is installed with, in bytes.
func containerLimit(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("../../../config/gateway/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
}

// TestSiegeOfTheGateway: one Feature with 64 connections sends bodies that stall, are huge or expand, reads no answers, is refused, and makes the
// provider slow and fail, all at once, on a backend that takes few calls at a time. Three other Features see no error that another try does not mend,
// and the process stays below its container's limit. What it prints of times is about the gateway: attackers and provider are processes of their own, as
// other machines are, and attackers take no processor time that others want.
func TestSiegeOfTheGateway(t *testing.T) {
	long := os.Getenv("TIDEWAITER_LONG") != ""
	besieged(t, callsPerMinute, long)
	if long { // what holds without the rate is held by shares
		t.Run("without a rate", func(t *testing.T) { besieged(t, 1_000_000, long) })
	}
}

// besieged gateway of Features with a rate of calls.
func besieged(t *testing.T, rate int32, long bool) {
	t.Helper()
	f := newFleet(t, "sqlite://"+filepath.Join(t.TempDir(), "siege.db"), 0)
	backend := f.besiegedProvider()
	limit := containerLimit(t)
	f.options = append(f.options, fmt.Sprintf("--memory-limit=%d", limit))
	g := f.add()
	project := env.Project(t)
	f.policy(project, v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{CallsPerMinute: ptr.To(rate)}})
	hostile := f.attempt(project, "hostile")
	var healthy []*attempt.Attempt
	for n := range healthyFeatures {
		healthy = append(healthy, f.attempt(project, fmt.Sprint("healthy-", n)))
	}
	alone, besieged, pause := callsAlone, callsBesieged, shortPause
	if long {
		besieged, pause = int(longSiege/longPause), longPause
	}
	before := f.defend("before the siege", healthy, alone, pause)

	attackers := besiege(f, hostile)
	began, used, theirs, theProvider := time.Now(), g.CPU(t), attackers.CPU(t), backend.CPU(t)
	during := f.defend("besieged", healthy, besieged, pause)
	took, peak := time.Since(began), g.Peak(t)
	t.Logf("%s; the gateway's peak is %d of %d MiB; processor time: the gateway %s, the provider %s, the attackers %s",
		took, peak>>20, limit>>20, g.CPU(t)-used, backend.CPU(t)-theProvider, attackers.CPU(t)-theirs)
	attackers.End(t)
	t.Logf("the hostile Feature was answered %s", strings.TrimPrefix(attackers.Log(), siegeBegins))
	// As make bench prints a figure and its budget: times depend on what else the machine does, and fail no test.
	verdict := "ok"
	if during > mostSlower*before {
		verdict = "MISSED"
	}
	t.Logf("ratio siege-p99/calls-per-minute=%d %s %s %.2f <=%d %s", rate, during, before, during.Seconds()/before.Seconds(), mostSlower, verdict)
	if peak >= limit {
		t.Errorf("the gateway occupied %d MiB of %d MiB", peak>>20, limit>>20)
	}
	if !g.ready() {
		t.Error("the gateway is not ready")
	}
}

// defend has each of the healthy Features make so many calls, with a pause after each, and returns the 99th percentile of how long one takes with all of
// its tries. A call that fails in the end is an error of the test.
func (f *fleet) defend(when string, healthy []*attempt.Attempt, calls int, pause time.Duration) time.Duration {
	g := f.gateways[0]
	var mu sync.Mutex
	var took []time.Duration
	var working sync.WaitGroup
	tries := 0
	for n, a := range healthy {
		working.Go(func() {
			client := g.client(f.T)
			for call := range calls {
				since, x := time.Now(), try{}
				tried := 0
				for tried < retries && !x.ended {
					if tried++; tried > 1 {
						time.Sleep(500 * time.Millisecond)
					}
					x = tongues[n%len(tongues)].ask(f.Context(), client, "https://"+g.address, as(a.Token, "form"), play{words: 3, output: 1})
				}
				if !x.ended {
					f.Errorf("%s: call %d of %s: %d %s %.300s", when, call, a.Feature.Name, x.status, x.reason(), x.text)
					return
				}
				mu.Lock()
				took, tries = append(took, time.Since(since)), tries+tried
				mu.Unlock()
				time.Sleep(pause)
			}
		})
	}
	working.Wait()
	if len(took) == 0 {
		f.Fatalf("%s: no call was answered", when)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	f.Logf("%s: %d calls in %d tries, p50 %s, p99 %s", when, len(took), tries, took[len(took)/2], p99)
	return p99
}

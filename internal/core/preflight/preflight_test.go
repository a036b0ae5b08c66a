// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// sound is a cluster in which every check passes.
func sound() *Facts {
	through := func(to string) Connection { return Connection{To: to, Through: true} }
	refused := func(to string) Connection { return Connection{To: to, Error: "i/o timeout"} }
	node := Node{Name: "n1", Zone: "a", UserNamespaces: true, CPU: 2000, Memory: 8 << 30, Pods: 100}
	return &Facts{
		Version: "v1.36.3",
		Nodes:   []Node{node},
		Classes: []StorageClass{{Name: "standard", Provisioner: "example.com/disk", Default: true}, {Name: "slow", Provisioner: "example.com/disk"}},
		Network: Network{
			Allowed: through("10.0.0.1:8080"), Elsewhere: refused("10.0.0.1:8081"),
			Forbidden: []Connection{refused("10.0.0.1:8080"), refused("10.96.0.1:443"), refused("10.0.0.1:8080"), refused("10.96.0.1:443")},
		},
		UserNamespaces: UserNamespaces{Map: "0 65536 65536"},
		Volume:         Volume{Class: "standard"},
		Processes:      []Step{{Name: "openat2"}, {Name: "end processes"}},
		Clock:          Clock{Here: -time.Second, Nodes: []NodeClock{{Node: "n1"}}},
		PodSecurity:    PodSecurity{Enforced: true},
		Git:            []Target{{URL: "https://git.example.com/shop.git", Answer: "status 200"}},
		Providers:      []Target{{URL: "https://api.example.com", Answer: "status 404"}},
	}
}

// everything is both.
func everything(Check) bool { return true }

func TestSoundClusterPasses(t *testing.T) {
	found := Run(sound(), everything)
	if len(found) != len(Checks()) {
		t.Errorf("%d findings of %d checks", len(found), len(Checks()))
	}
	for _, f := range found {
		if f.Status != OK || f.Fix != "" || f.Seen == "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestFaults: each fault of a cluster changes the status of its own check and of no other, and says what to do.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		check  string
		want   Status
		says   string
	}{
		"an older version":     {func(f *Facts) { f.Version = "v1.33.9-gke.1" }, KubernetesVersion, Failed, "older than 1.34. Tidewaiter needs"},
		"the oldest version":   {func(f *Facts) { f.Version = "v1.34.0+k3s1" }, KubernetesVersion, OK, "v1.34.0+k3s1"},
		"a newer version":      {func(f *Facts) { f.Version = "1.37" }, KubernetesVersion, Warning, "newer than 1.36"},
		"another major one":    {func(f *Facts) { f.Version = "v2.1.0" }, KubernetesVersion, Failed, `"v2.1.0"`},
		"not a version":        {func(f *Facts) { f.Version = "v1" }, KubernetesVersion, Failed, `"v1"`},
		"a version with signs": {func(f *Facts) { f.Version = "v1.36+" }, KubernetesVersion, OK, "v1.36+"},

		"no enforcement": {func(f *Facts) {
			for i := range f.Network.Forbidden {
				f.Network.Forbidden[i].Through = true
			}
		}, NetworkPolicy, Failed, "not enforced: a pod that a policy forbids every connection reaches 10.0.0.1:8080"},
		"no enforcement towards the API server": {func(f *Facts) { f.Network.Forbidden[3].Through = true }, NetworkPolicy, Failed, "reaches 10.96.0.1:443"},
		"late enforcement":                      {func(f *Facts) { f.Network.Forbidden[0].Through = true }, NetworkPolicy, Warning, "enforced late"},
		"no enforcement of ports":               {func(f *Facts) { f.Network.Elsewhere.Through = true }, NetworkPolicy, Failed, "ports"},
		"an allowed connection is refused":      {func(f *Facts) { f.Network.Allowed = Connection{To: "10.0.0.1:8080", Error: "i/o timeout"} }, NetworkPolicy, Failed, "which a NetworkPolicy allows: i/o timeout"},
		"nobody tried":                          {func(f *Facts) { f.Network.Forbidden = nil }, NetworkPolicy, Failed, "no pod tried"},

		"user namespaces that nodes report and pods do not get": {func(f *Facts) { f.UserNamespaces = UserNamespaces{Error: "no space left on device"} }, UserNamespace, Failed, "no space left on device"},
		"a map that maps nobody":                                {func(f *Facts) { f.UserNamespaces.Map = "0 0 4294967295" }, UserNamespace, Failed, `"0 0 4294967295"`},
		"no map":                                                {func(f *Facts) { f.UserNamespaces.Map = "" }, UserNamespace, Failed, `""`},
		"a node without user namespaces": {func(f *Facts) {
			f.Nodes = append(f.Nodes, Node{Name: "n2", Zone: "a"})
			f.UserNamespaces = UserNamespaces{Error: "unsupported"}
		}, UserNamespace, Warning, "only 1 of 2 nodes report"},
		"nodes that do not report them": {func(f *Facts) { f.Nodes[0].UserNamespaces = false }, UserNamespace, Warning, "but only 0 of 1 nodes report them"},
		"volumes that are not mapped":   {func(f *Facts) { f.UserNamespaces.Volume = "idmap: invalid argument" }, UserNamespace, Failed, "idmap: invalid argument"},

		"no StorageClass":      {func(f *Facts) { f.Classes = nil }, DefaultClass, Failed, "there is no StorageClass"},
		"no default":           {func(f *Facts) { f.Classes[0].Default = false }, DefaultClass, Failed, "no StorageClass is the default; there are standard, slow"},
		"two defaults":         {func(f *Facts) { f.Classes[1].Default = true }, DefaultClass, Warning, "standard, slow"},
		"volumes of two zones": {func(f *Facts) { f.Nodes = append(f.Nodes, Node{Name: "n2", Zone: "b", UserNamespaces: true}) }, DefaultClass, Warning, "2 zones"},
		"volumes that wait": {func(f *Facts) {
			f.Nodes = append(f.Nodes, Node{Name: "n2", Zone: "b", UserNamespaces: true})
			f.Classes[0].Waits = true
		}, DefaultClass, OK, "WaitForFirstConsumer"},

		"a volume that is not made":   {func(f *Facts) { f.Volume.Error = "ProvisioningFailed" }, Volumes, Failed, "ProvisioningFailed"},
		"a volume with limits":        {func(f *Facts) { f.Volume.Notes = []string{"leases do not work"} }, Volumes, Warning, "leases do not work"},
		"a step of programs":          {func(f *Facts) { f.Processes[1].Error = "EPERM" }, Processes, Failed, "end processes: EPERM"},
		"no step of programs":         {func(f *Facts) { f.Processes = nil }, Processes, Failed, "tried nothing"},
		"this machine is slow":        {func(f *Facts) { f.Clock.Here = -6 * time.Second }, Clocks, Warning, "this machine differs from the API server's by 6s"},
		"a node is fast":              {func(f *Facts) { f.Clock.Nodes[0].Off = 2 * time.Minute }, Clocks, Failed, "node n1 differs from the API server's by 2m0s"},
		"no node tells its time":      {func(f *Facts) { f.Clock.Nodes = nil }, Clocks, Warning, "no node"},
		"pods are refused":            {func(f *Facts) { f.PodSecurity.Error = "denied by a webhook" }, PodSecurityLevel, Failed, "denied by a webhook"},
		"nobody enforces levels":      {func(f *Facts) { f.PodSecurity.Enforced = false }, PodSecurityLevel, Warning, "nothing refuses a privileged pod"},
		"a weaker level of our own":   {func(f *Facts) { f.SystemLevel = "baseline" }, PodSecurityLevel, Warning, "enforces Pod Security baseline"},
		"Git is away":                 {func(f *Facts) { f.Git[0].Error = "connection refused" }, Git, Failed, "does not reach the Git server of https://git.example.com/shop.git: connection refused"},
		"Git has a CA of its own":     {func(f *Facts) { f.Git[0].Untrusted = "unknown authority" }, Git, Warning, "ca.crt"},
		"Git is inside":               {func(f *Facts) { f.Git[0].Private = true }, Git, Warning, "allowPrivate"},
		"no Git":                      {func(f *Facts) { f.Git = nil }, Git, Warning, "--git"},
		"the provider is away":        {func(f *Facts) { f.Providers[0].Error = "no such host" }, Providers, Failed, "does not reach the provider https://api.example.com: no such host"},
		"the provider's CA is absent": {func(f *Facts) { f.Providers[0].Untrusted = "unknown authority" }, Providers, Warning, "ca of the backend"},
		"no provider":                 {func(f *Facts) { f.Providers = nil }, Providers, Warning, "--provider"},
		"no memory":                   {func(f *Facts) { f.Nodes[0].Memory = 100 << 20 }, Room, Failed, "no room for Tidewaiter and one Feature"},
		"memory for a Feature":        {func(f *Facts) { f.Nodes[0].Memory, f.Installed = 100<<20, true }, Room, Warning, "1024 MiB"},
		"no CPU":                      {func(f *Facts) { f.Nodes[0].CPU, f.Installed = 5, true }, Room, Failed, "no room for one Feature"},
		"no more pods":                {func(f *Facts) { f.Nodes[0].Pods = 3 }, Room, Failed, "3 pods"},
		"an open network":             {func(f *Facts) { f.Opened = []string{"a/1", "a/2", "a/3", "b/4"} }, Features, Warning, "a/1, a/2, a/3 and 1 more"},
		"a degraded watchdog":         {func(f *Facts) { f.Degraded = []string{"a/1"} }, Features, Warning, "works around a problem of a/1"},
		"nobody could look":           {func(f *Facts) { f.Unread = map[string]string{Gateway: "connection refused"} }, Gateway, Failed, "could not look: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			f := sound()
			tc.change(f)
			for _, finding := range Run(f, everything) {
				want := OK
				if finding.Check == tc.check {
					want = tc.want
					if !strings.Contains(finding.Text(), tc.says) {
						t.Errorf("%q does not say %q", finding.Text(), tc.says)
					}
				}
				if finding.Status != want || (finding.Status != OK) != (finding.Fix != "") {
					t.Errorf("%+v, want %s", finding, want)
				}
			}
		})
	}
}

// TestFindingsAreBounded: what a pod writes is one line of text, and no terminal acts on it.
func TestFindingsAreBounded(t *testing.T) {
	f := sound()
	f.UserNamespaces.Error = "\x1b[31mred\x1b[0m\nkubectl delete\u202e" + strings.Repeat("x", 10_000)
	for _, finding := range Run(f, everything) {
		if finding.Check != UserNamespace {
			continue
		}
		if strings.ContainsAny(finding.Seen, "\x1b\n\u202e") || len(finding.Seen) > 2*maxText || !strings.Contains(finding.Seen, `\u001b[31mred`) {
			t.Errorf("%q", finding.Seen)
		}
	}
}

func TestWhoChecksWhat(t *testing.T) {
	for _, f := range Run(&Facts{}, InManager) {
		if slices.Contains([]string{NetworkPolicy, UserNamespace, Volumes, Processes, Clocks, Git, Providers, Room}, f.Check) {
			t.Errorf("the manager checks %s, which needs pods", f.Check)
		}
	}
	if got := Worst(Run(sound(), InPreflight)); got != OK {
		t.Error(got)
	}
}

func TestEntries(t *testing.T) {
	before := Entries(Run(sound(), InManager))
	if before[KubernetesVersion] != "ok: Kubernetes v1.36.3." {
		t.Errorf("%q", before[KubernetesVersion])
	}
	f := sound()
	f.Classes, f.Opened, f.Degraded, f.Version = nil, []string{"a/1"}, []string{"a/2"}, "v1.36.4"
	after := Entries(Run(f, InManager))
	if got := after[Features]; !strings.HasPrefix(got, "warning: another NetworkPolicy") || !strings.Contains(got, "a/2") {
		t.Errorf("%q", got)
	}
	for name, tc := range map[string]struct {
		before, after map[string]string
		want          []string
	}{
		"a new cluster that is sound":  {nil, before, nil},
		"a new cluster with faults":    {nil, after, []string{Features, DefaultClass}},
		"a cluster that loses a class": {before, after, []string{Features, DefaultClass}},
		"one that has it back":         {after, before, []string{Features, DefaultClass}},
		"nothing":                      {after, after, nil},
	} {
		if got := Changed(tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestOff(t *testing.T) {
	created := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct{ told, want time.Duration }{
		"in between": {2 * time.Second, 0}, "behind": {-90 * time.Second, -90 * time.Second}, "ahead": {30 * time.Second, 25 * time.Second},
	} {
		if got := Off(created, created.Add(tc.told), created.Add(5*time.Second)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestReportsFit: the largest report that a probe of servers makes is a termination message.
func TestReportsFit(t *testing.T) {
	long := strings.Repeat("x", 160)
	r := Report{Time: time.Now(), Targets: slices.Repeat([]Target{{Error: long, Untrusted: long, Private: true}}, 8)}
	if text, err := json.Marshal(r); err != nil || len(text) > MaxReport {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

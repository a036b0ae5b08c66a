// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// IDs of checks.
const (
	KubernetesVersion = "kubernetes-version"
	NetworkPolicy     = "network-policy"
	UserNamespace     = "user-namespaces"
	DefaultClass      = "storage-class"
	Volumes           = "volumes"
	Processes         = "processes"
	Clocks            = "clock"
	PodSecurityLevel  = "pod-security"
	Git               = "git"
	Providers         = "providers"
	Room              = "room"
	Gateway           = "gateway"
	Features          = "features"
)

// Check is a row of the table of checks.
type Check struct {
	ID string
	// Doc says what the check looks at, and why it matters.
	Doc string
	// Page of the documentation that helps if it does not pass.
	Page string
	// Preflight and Manager say who makes the check.
	Preflight, Manager bool
	find               func(*Facts) []verdict
}

// InPreflight and InManager select checks for Run.
func InPreflight(c Check) bool { return c.Preflight }

// InManager selects the checks of the manager, which need no pods.
func InManager(c Check) bool { return c.Manager }

// Checks lists all checks, in the order in which users read them.
func Checks() []Check {
	const (
		platforms = "docs/operate/platforms.md"
		storage   = "docs/operate/storage.md"
		processes = "docs/security/agent-processes.md"
		trouble   = "docs/operate/troubleshooting.md"
	)
	return []Check{
		{ID: KubernetesVersion, Doc: fmt.Sprintf("The version of the API server. Tidewaiter supports %s to %s. An older version fails the check, a newer one gives a warning.", Oldest, newest), Page: "docs/get-started/requirements.md", Preflight: true, Manager: true, find: version},
		{ID: NetworkPolicy, Doc: "The network plugin enforces NetworkPolicy, from the first moment of a pod. A pod that a policy forbids every connection tries to connect, and a pod that a policy allows one connection makes it.", Page: platforms, Preflight: true, find: network},
		{ID: UserNamespace, Doc: "A pod with `hostUsers: false` runs, has a mapped `/proc/self/uid_map`, and can use a volume. If nodes report no user namespaces, Tidewaiter does without them, and you get a warning.", Page: processes, Preflight: true, find: userNamespaces},
		{ID: DefaultClass, Doc: "There is exactly one default StorageClass, and its binding mode fits the cluster: with more than one zone, volumes have to wait for the pod.", Page: storage, Preflight: true, Manager: true, find: storageClass},
		{ID: Volumes, Doc: "A claim of the default StorageClass gets a volume, and a pod can write to it as a Feature's user. The pod tests what the watchdog assumes of a workspace: `openat2`, inotify, leases, and times that change with each write.", Page: storage, Preflight: true, find: volumes},
		{ID: Processes, Doc: "The programs of a Feature's pod can do what they do at their start: they have a process namespace of their own with a readable `/proc`, the runtime's seccomp profile is in effect, the kernel takes Tidewaiter's filter of system calls, and PID 1 can stop, continue and end processes.", Page: processes, Preflight: true, find: processSteps},
		{ID: Clocks, Doc: fmt.Sprintf("The clocks of this machine, the API server and the nodes agree. More than %s gives a warning, more than %s fails the check: certificates, tokens and Leases have times.", clockWarning, clockLimit), Page: platforms, Preflight: true, find: clocks},
		{ID: PodSecurityLevel, Doc: "A namespace that enforces Pod Security `restricted` accepts the pods of Tidewaiter, and refuses a privileged one. The manager looks at the level of its own namespace.", Page: platforms, Preflight: true, Manager: true, find: podSecurity},
		{ID: Git, Doc: "A pod reaches the Git server of each `--git` over HTTPS. The gateway connects to it in the same way.", Page: "docs/tasks/git-credentials.md", Preflight: true, find: git},
		{ID: Providers, Doc: "A pod reaches each model provider: the ones of `--provider`, or else the backends of the gateway's configuration.", Page: "docs/tasks/connect-a-provider.md", Preflight: true, find: providers},
		{ID: Room, Doc: "A node has room for the pod of one Feature, and for Tidewaiter itself if it is not installed yet.", Page: "docs/operate/sizing.md", Preflight: true, find: room},
		{ID: Gateway, Doc: "The gateway answers the manager over TLS.", Page: trouble, Manager: true, find: gateway},
		{ID: Features, Doc: "No Feature reports that another NetworkPolicy opens its network, or that its watchdog works around a problem.", Page: trouble, Manager: true, find: features},
	}
}

// minor is a minor version of Kubernetes 1.
type minor int

func (m minor) String() string { return "1." + strconv.Itoa(int(m)) }

// Oldest and newest are the bounds of the versions that Tidewaiter supports. The chart has Oldest as its kubeVersion.
const (
	Oldest minor = 34
	newest minor = 36
)

func version(f *Facts) []verdict {
	major, rest, _ := strings.Cut(strings.TrimPrefix(f.Version, "v"), ".")
	digits := strings.IndexFunc(rest+".", func(r rune) bool { return r < '0' || r > '9' })
	is, err := strconv.Atoi(rest[:digits])
	seen := "Kubernetes " + f.Version
	switch {
	case major != "1" || err != nil:
		return []verdict{fail(fmt.Sprintf("the version is %q, which is not a version 1.x", f.Version), fmt.Sprintf("Use Kubernetes %s to %s", Oldest, newest))}
	case minor(is) < Oldest:
		return []verdict{fail(
			fmt.Sprintf("%s is older than %s. Tidewaiter needs sidecar containers, user namespaces and admission policies as later versions have them, and is not tested with older ones", seen, Oldest),
			fmt.Sprintf("Upgrade the cluster to %s or later", Oldest))}
	case minor(is) > newest:
		return []verdict{warn(fmt.Sprintf("%s is newer than %s, the newest version that Tidewaiter is tested with", seen, newest), "Look for a newer version of Tidewaiter")}
	}
	return []verdict{ok(seen)}
}

func network(f *Facts) []verdict {
	const plugin = "Install a network plugin that enforces NetworkPolicy, or switch its enforcement on. Without it, agents reach the whole network"
	n := f.Network
	last := map[string]Connection{}
	var early string
	for _, c := range n.Forbidden {
		if c.Through {
			early = c.To
		}
		last[c.To] = c
	}
	for _, c := range n.Forbidden {
		if last[c.To].Through {
			return []verdict{fail("NetworkPolicy is not enforced: a pod that a policy forbids every connection reaches "+c.To, plugin)}
		}
	}
	switch {
	case !n.Allowed.Through:
		return []verdict{fail(fmt.Sprintf("a pod cannot connect to %s, which a NetworkPolicy allows: %s", n.Allowed.To, n.Allowed.Error), "Repair the network between pods, or the network plugin's enforcement of NetworkPolicy. Without it, pods of Features do not reach intake and gateway")}
	case n.Elsewhere.Through:
		return []verdict{fail("NetworkPolicy is not enforced for ports: a pod reaches "+n.Elsewhere.To+", and its policy allows another port only", plugin)}
	case len(n.Forbidden) == 0:
		return []verdict{fail("no pod tried to connect against a policy", "Run the checks again")}
	case early != "":
		return []verdict{warn("NetworkPolicy is enforced late: a new pod reached "+early+" before its policy was in effect", "Use a network plugin that enforces policies before a pod starts")}
	}
	return []verdict{ok("a forbidden connection is refused, an allowed one gets through")}
}

func userNamespaces(f *Facts) []verdict {
	const off = "Enable user namespaces on the nodes (kernel, container runtime, /proc/sys/user/max_user_namespaces), or set --user-namespaces=false of the manager"
	u := f.UserNamespaces
	reporting := 0
	for _, n := range f.Nodes {
		if n.UserNamespaces {
			reporting++
		}
	}
	ids := strings.Fields(u.Map)
	mapped := u.Error == "" && len(ids) >= 3 && ids[1] != "0"
	switch {
	case len(f.Nodes) == 0:
		return []verdict{fail("no node may run pods of Features", "Add a Linux node without a taint")}
	case reporting < len(f.Nodes) && mapped:
		return []verdict{warn(fmt.Sprintf("a pod got a user namespace, but only %d of %d nodes report them, so Tidewaiter does without", reporting, len(f.Nodes)), "Choose nodes that have user namespaces (agents.scheduling of a policy), or set --user-namespaces=true of the manager")}
	case reporting < len(f.Nodes):
		return []verdict{warn(fmt.Sprintf("only %d of %d nodes report user namespaces, so Tidewaiter does without: users of a pod are users of its node", reporting, len(f.Nodes)), "Use a container runtime and a kernel that have them")}
	case u.Error != "":
		return []verdict{fail("nodes report user namespaces, and no pod with hostUsers: false gets one: "+u.Error, off)}
	case !mapped:
		return []verdict{fail(fmt.Sprintf("a pod with hostUsers: false has the map %q, which maps no user", u.Map), off)}
	case u.Volume != "":
		return []verdict{fail("a pod with a user namespace cannot use a volume of the default StorageClass: "+u.Volume, "Use a file system that can be mounted with mapped users, or set --user-namespaces=false of the manager")}
	}
	return []verdict{ok("a pod with hostUsers: false has the map " + u.Map)}
}

func storageClass(f *Facts) []verdict {
	const mark = `Mark one: kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true`
	var defaults, others []string
	var class StorageClass
	for _, c := range f.Classes {
		if c.Default {
			defaults, class = append(defaults, c.Name), c
		} else {
			others = append(others, c.Name)
		}
	}
	zones := map[string]bool{}
	for _, n := range f.Nodes {
		zones[n.Zone] = true
	}
	mode := "Immediate"
	if class.Waits {
		mode = "WaitForFirstConsumer"
	}
	seen := fmt.Sprintf("%s is the default, of %s, with %s", class.Name, class.Provisioner, mode)
	switch {
	case len(defaults) == 0 && len(others) == 0:
		return []verdict{fail("there is no StorageClass", "Install a provisioner of volumes with a default StorageClass")}
	case len(defaults) == 0:
		return []verdict{fail("no StorageClass is the default; there are "+strings.Join(others, ", "), mark)}
	case len(defaults) > 1:
		return []verdict{warn("more than one StorageClass is the default: "+strings.Join(defaults, ", "), "Keep one, so that you know which class the volumes have")}
	case !class.Waits && len(zones) > 1:
		return []verdict{warn(fmt.Sprintf("%s, and the nodes are in %d zones: the volumes of one pod may be in different ones", seen, len(zones)), "Use a class with volumeBindingMode: WaitForFirstConsumer")}
	}
	return []verdict{ok(seen)}
}

func volumes(f *Facts) []verdict {
	switch v := f.Volume; {
	case v.Error != "":
		return []verdict{fail("a pod cannot use a volume of the default StorageClass: "+v.Error, "Repair the provisioner, or use another class")}
	case len(v.Notes) > 0:
		return []verdict{warn(fmt.Sprintf("a volume of %s works, and the watchdog works around a limit: %s", v.Class, strings.Join(v.Notes, "; ")), "Use another StorageClass if checkpoints take too long")}
	default:
		return []verdict{ok(fmt.Sprintf("a claim got a volume of %s, and a pod wrote to it", v.Class))}
	}
}

func processSteps(f *Facts) []verdict {
	var done []string
	for _, s := range f.Processes {
		if s.Error != "" {
			return []verdict{fail(s.Name+": "+s.Error, "Use a kernel, a container runtime and a seccomp profile that allow it; agents do not start without it")}
		}
		done = append(done, s.Name)
	}
	if len(done) == 0 {
		return []verdict{fail("the probe tried nothing", "Run the checks again")}
	}
	return []verdict{ok(strings.Join(done, ", "))}
}

// What clocks may differ by. Times that are compared have a second of their own, or are of a minute and more.
const (
	clockWarning = 5 * time.Second
	clockLimit   = time.Minute
)

func clocks(f *Facts) []verdict {
	worst, whose := f.Clock.Here.Abs(), "this machine"
	var nodes []string
	for _, n := range f.Clock.Nodes {
		nodes = append(nodes, n.Node)
		if n.Off.Abs() > worst {
			worst, whose = n.Off.Abs(), "node "+n.Node
		}
	}
	seen := fmt.Sprintf("the clock of %s differs from the API server's by %s", whose, worst.Round(time.Second))
	const fix = "Synchronize the clocks by NTP"
	switch {
	case worst > clockLimit:
		return []verdict{fail(seen, fix)}
	case worst > clockWarning:
		return []verdict{warn(seen, fix)}
	case len(nodes) == 0:
		return []verdict{warn("the clock of this machine agrees with the API server's; no node told its time", "Repair what keeps pods from running")}
	}
	return []verdict{ok(fmt.Sprintf("this machine, the API server and %s agree within %s", strings.Join(nodes, ", "), clockWarning))}
}

func podSecurity(f *Facts) []verdict {
	switch p := f.PodSecurity; {
	case p.Error != "":
		return []verdict{fail("a namespace with Pod Security restricted does not run pods that fulfil it: "+p.Error, "Change what refuses it: an admission policy or webhook, or the range of users of the platform")}
	case f.SystemLevel != "" && f.SystemLevel != restricted:
		return []verdict{warn("Tidewaiter's namespace enforces Pod Security "+f.SystemLevel, "Apply the manifest of this version again: its namespace enforces restricted")}
	case !p.Enforced && f.SystemLevel == "":
		return []verdict{warn("nothing refuses a privileged pod in a namespace with Pod Security restricted", "Switch the admission plugin PodSecurity on")}
	}
	return []verdict{ok("pods of Tidewaiter fulfil restricted")}
}

// restricted is the level that the namespaces of Tidewaiter enforce.
const restricted = "restricted"

func git(f *Facts) []verdict {
	if len(f.Git) == 0 {
		return []verdict{warn("no Git server was tried", "Name a repository with --git URL")}
	}
	var all []verdict
	for _, t := range f.Git {
		answers := fmt.Sprintf("%s answers with %s", t.URL, t.Answer)
		switch {
		case t.Error != "":
			all = append(all, fail(fmt.Sprintf("a pod does not reach the Git server of %s: %s", t.URL, t.Error), "Let pods of tidewaiter-system connect to it: name service, firewall, routes. The gateway uses no proxy for Git"))
			continue
		case t.Untrusted == "" && !t.Private:
			all = append(all, ok(answers))
		}
		if t.Untrusted != "" {
			all = append(all, warn(answers+", and its certificate is not of a public CA: "+t.Untrusted, "Give the CA as ca.crt of the Git Secret"))
		}
		if t.Private {
			all = append(all, warn(answers+", at a private address", "Name the host in egress.git of a SupervisorPolicy, with allowPrivate: true"))
		}
	}
	return all
}

func providers(f *Facts) []verdict {
	if len(f.Providers) == 0 {
		return []verdict{warn("no model provider was tried", "Name one with --provider URL, or configure a backend of the gateway")}
	}
	var all []verdict
	for _, t := range f.Providers {
		switch {
		case t.Error != "":
			all = append(all, fail(fmt.Sprintf("a pod does not reach the provider %s: %s", t.URL, t.Error), "Let pods of tidewaiter-system connect to it, or name a proxy in the backend"))
		case t.Untrusted != "":
			all = append(all, warn(fmt.Sprintf("%s answers with %s, and its certificate is not trusted: %s", t.URL, t.Answer, t.Untrusted), "Give its CA in ca of the backend"))
		default:
			all = append(all, ok(fmt.Sprintf("%s answers with %s", t.URL, t.Answer)))
		}
	}
	return all
}

// What the pod of a Feature requests next to the agent, and what the pods of Tidewaiter request: docs/operate/sizing.md. CPU is in thousandths of a core.
const (
	featureCPU    = 10
	featureMemory = protocol.WatchdogMemory
	// systemCPU, systemMemory and systemPods are the sums of two managers and a gateway.
	systemCPU    = 3 * 50
	systemMemory = (2*128 + 64) << 20
	systemPods   = 3
)

func room(f *Facts) []verdict {
	var best Node
	var cpu, memory, pods int64
	for _, n := range f.Nodes {
		cpu, memory, pods = cpu+max(n.CPU, 0), memory+max(n.Memory, 0), pods+max(n.Pods, 0)
		if n.Pods > 0 && n.CPU >= featureCPU && n.Memory > best.Memory {
			best = n
		}
	}
	needCPU, needMemory, needPods := int64(featureCPU), int64(featureMemory), int64(1)
	what := "one Feature"
	if !f.Installed {
		needCPU, needMemory, needPods, what = needCPU+systemCPU, needMemory+systemMemory, needPods+systemPods, "Tidewaiter and one Feature"
	}
	seen := fmt.Sprintf("node %s has %s of CPU, %d MiB of memory and %d pods that nobody requests", best.Name, cores(best.CPU), best.Memory>>20, best.Pods)
	switch {
	case best.Name == "" || best.Memory < featureMemory || cpu < needCPU || memory < needMemory || pods < needPods:
		return []verdict{fail(fmt.Sprintf("no room for %s: needed are %s of CPU, %d MiB of memory and %d pods, and what the agent requests; the nodes have %s, %d MiB and %d pods that nobody requests",
			what, cores(needCPU), needMemory>>20, needPods, cores(cpu), memory>>20, pods), "Add a node, or remove pods")}
	case best.Memory < protocol.WatchdogMemoryLimit:
		return []verdict{warn(seen+fmt.Sprintf(": less than the %d MiB that a watchdog may use for a large workspace", protocol.WatchdogMemoryLimit>>20), "Add a larger node")}
	}
	return []verdict{ok(seen)}
}

// cores of thousandths.
func cores(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) + " cores"
}

// gateway has an answer: without one, nobody could look.
func gateway(*Facts) []verdict { return []verdict{ok("the gateway answers")} }

func features(f *Facts) []verdict {
	var all []verdict
	if len(f.Opened) > 0 {
		all = append(all, warn("another NetworkPolicy opens the network of "+some(f.Opened), "Leave Features out of the podSelector that the condition Isolated names"))
	}
	if len(f.Degraded) > 0 {
		all = append(all, warn("the watchdog works around a problem of "+some(f.Degraded), "Read the message of the condition Supervised"))
	}
	if len(all) == 0 {
		all = append(all, ok("no Feature reports an open network or a problem of its watchdog"))
	}
	return all
}

// some names of a list, and how many more there are.
func some(names []string) string {
	const most = 3
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterbench measures on a real cluster what Features cost.
package clusterbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	// kubeconfigEnv and imageEnv say which cluster is measured and which image agents have: `make bench-cluster` sets them.
	kubeconfigEnv, imageEnv = "TIDEWAITER_KUBECONFIG", "TIDEWAITER_TESTBED"
	// benchProject and benchGit are the namespaces that are made.
	benchProject, benchGit = "tidewaiter-bench", "tidewaiter-bench-git"
	// clusterTime bounds all that is done on the cluster.
	clusterTime = 20 * time.Minute
	// crowd is how many Features and pods start at once.
	crowd = 30
	// quiet is how long nothing is done to see what is asked of the API server anyway, and how long what has ended is given to end.
	quiet = 15 * time.Second
	// counted is how many Features the requests are counted of.
	counted = 5
)

// TestRequests measures what a Feature costs the API server in requests.
func TestRequests(t *testing.T) {
	newSite(t).requests(&board.Board{Print: true})
}

// TestStarts measures how long Features take to start, beside pods of the same shape that nobody supervises.
func TestStarts(t *testing.T) {
	s, b := newSite(t), &board.Board{Print: true}
	s.delivered(s.feature("first", 1))
	s.keepShape("first")
	s.starts(b, 1, 1.4)
	s.starts(b, crowd, 2)
}

// site is a cluster with a project and a repository.
type site struct {
	*cluster.Cluster

	t     *testing.T
	ctx   context.Context
	watch client.WithWatch
	git   *cluster.GitServer
	token string
	// pod is the shape of a Feature's pod.
	pod *corev1.Pod
	// claims are the sizes of its volumes.
	claims []corev1.PersistentVolumeClaim
}

func newSite(t *testing.T) *site {
	ctx, cancel := context.WithTimeout(t.Context(), clusterTime)
	t.Cleanup(cancel)
	s := &site{t: t, ctx: ctx}
	var err error
	s.Cluster, err = cluster.Connect(os.Getenv(kubeconfigEnv), os.Getenv(imageEnv))
	s.must(err)
	s.watch, err = client.NewWithWatch(s.Config, client.Options{Scheme: s.Scheme()})
	s.must(err)
	dir := t.TempDir()
	s.must(s.DeleteProject(ctx, benchProject))
	s.git, err = s.StartGitServer(ctx, benchGit, dir)
	s.must(err)
	s.must(s.Project(ctx, benchProject))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
		defer cancel()
		for _, name := range []string{benchProject, benchGit} {
			if err := s.DeleteProject(ctx, name); err != nil {
				t.Error(err)
			}
		}
	})
	work := filepath.Join(dir, "shop")
	s.must(os.MkdirAll(work, 0o755))
	s.must(os.WriteFile(filepath.Join(work, "README.md"), []byte("# Shop\n"), 0o600))
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Shop", "-c", "user.email=shop@example.com", "commit", "--quiet", "--message", "Open the shop"},
	} {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = work
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	s.must(s.git.Publish(ctx, work, "shop"))
	s.must(s.Create(ctx, s.git.Secret(benchProject, cluster.GitSecret)))
	s.must(s.AllowGit(ctx, benchProject, s.git.Host))
	s.token, err = s.Scraper(ctx, benchProject)
	s.must(err)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// feature whose agent writes a file between two pauses.
func (s *site) feature(name string, pause int) *v1alpha1.Feature {
	f := s.Script(benchProject, name, s.git.URL("shop"), fmt.Sprintf("sleep %d; echo '<form>' > login.html; sleep %d", pause, pause))
	f.Spec.Delivery = &v1alpha1.Delivery{Branch: "tidewaiter/" + name}
	return f
}

// requests counts what a Feature of some ten seconds with one checkpoint costs the API server, on the average of some that follow each other.
func (s *site) requests(b *board.Board) {
	// The images are there, and so is what is made once for each project.
	s.delivered(s.feature("first", 1))
	time.Sleep(quiet)
	began, before := time.Now(), s.count()
	time.Sleep(quiet)
	idle, seconds := s.count().minus(before), time.Since(began).Seconds()
	began, before = time.Now(), s.count()
	for i := range counted {
		s.delivered(s.feature(fmt.Sprintf("counted-%d", i), 4))
		time.Sleep(quiet / counted)
	}
	used := s.count().minus(before)
	share := time.Since(began).Seconds() / seconds
	if testing.Verbose() {
		for _, k := range used.keys() {
			fmt.Fprintf(os.Stderr, "%-60s %6.1f (idle %.1f)\n", k, used[k]/counted, idle[k]*share/counted)
		}
	}
	each := func(key string) float64 { return used[key] / counted }
	b.Figure("cluster-status-applies", each("APPLY features/status"), "", board.AtMost(10))
	b.Figure("cluster-live-gets", each("GET features"), "", board.AtMost(6))
	b.Figure("cluster-policy-lists", each("LIST supervisorpolicies"), "", board.AtMost(0))
	b.Add("cluster-requests", board.Number(each(ours)), board.Number(idle[ours]*share/counted), each(ours)-idle[ours]*share/counted, board.AtMost(60))
}

// ours is the sum of what managers and gateways have asked.
const ours = "all of ours"

// counts are numbers of requests, by verb and resource.
type counts map[string]float64

func (c counts) minus(before counts) counts {
	out := counts{}
	for k, n := range c {
		out[k] = n - before[k]
	}
	return out
}

func (c counts) keys() []string {
	var keys []string
	for k, n := range c {
		if n > 0 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// count the requests that the API server has had, and those that managers and gateways have made.
func (s *site) count() counts {
	c := counts{}
	text, err := s.Clientset.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(s.ctx)
	s.must(err)
	for _, m := range s.family(text, "apiserver_request_total") {
		l := labelsOf(m)
		what := l["verb"] + " " + strings.TrimSuffix(l["resource"]+"/"+l["subresource"], "/")
		c[what] += m.GetCounter().GetValue()
		if l["code"] == "409" { // somebody else wrote first
			c[what+" (conflicts)"] += m.GetCounter().GetValue()
		}
	}
	var pods corev1.PodList
	s.must(s.List(s.ctx, &pods, client.InNamespace(cluster.SystemNamespace)))
	for i := range pods.Items {
		p := &pods.Items[i]
		certificate := cluster.ManagerCertificate
		if strings.Contains(p.Name, "gateway") {
			certificate = cluster.GatewayCertificate
		}
		_, text, err := s.Metrics(s.ctx, p.Name, certificate, s.token)
		s.must(err)
		for _, m := range s.family([]byte(text), "rest_client_requests_total") {
			c[ours] += m.GetCounter().GetValue()
		}
	}
	return c
}

func (s *site) family(text []byte, name string) []*dto.Metric {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	s.must(err)
	if families[name] == nil {
		s.t.Fatalf("there is no metric %s", name)
	}
	return families[name].GetMetric()
}

func labelsOf(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// delivered makes a Feature and waits until it is delivered. It watches: it asks for nothing that is counted.
func (s *site) delivered(f *v1alpha1.Feature) {
	s.t.Helper()
	s.must(s.Create(s.ctx, f))
	w, err := s.watch.Watch(s.ctx, &v1alpha1.FeatureList{}, client.InNamespace(f.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", f.Name)})
	s.must(err)
	defer w.Stop()
	for event := range w.ResultChan() {
		now, ok := event.Object.(*v1alpha1.Feature)
		switch {
		case !ok:
		case now.Status.Phase == v1alpha1.PhaseDelivered:
			return
		case now.Status.Phase == v1alpha1.PhaseBlocked, now.Status.Phase == v1alpha1.PhaseFailed:
			s.t.Fatalf("Feature %s: %s: %s", f.Name, now.Status.Phase, cluster.Message(now, v1alpha1.ConditionReady))
		}
	}
	s.t.Fatalf("Feature %s is not delivered: %v", f.Name, context.Cause(s.ctx))
}

// keepShape of a Feature's pod, and of its volumes.
func (s *site) keepShape(feature string) {
	var pods corev1.PodList
	s.must(s.List(s.ctx, &pods, client.InNamespace(benchProject), client.MatchingLabels{v1alpha1.LabelFeature: feature}))
	if len(pods.Items) != 1 {
		s.t.Fatalf("Feature %s has %d pods", feature, len(pods.Items))
	}
	s.pod = &pods.Items[0]
	var claims corev1.PersistentVolumeClaimList
	s.must(s.List(s.ctx, &claims, client.InNamespace(benchProject), client.MatchingLabels{v1alpha1.LabelFeature: feature}))
	s.claims = claims.Items
}

// bare is a pod with the containers and volumes of a Feature's, and nothing of ours in it: what comes before its container ends at once, sidecars sleep, and
// the container does what a script says. The pod is the last of the objects.
func (s *site) bare(name, script string) []client.Object {
	spec := s.pod.Spec.DeepCopy()
	spec.NodeName, spec.ServiceAccountName, spec.DeprecatedServiceAccount, spec.AutomountServiceAccountToken = "", "", "", nil
	var objects []client.Object
	for i := range spec.Volumes {
		source := spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		for j := range s.claims {
			if is := &s.claims[j]; is.Name == source.ClaimName {
				source.ClaimName = fmt.Sprintf("%s-%d", name, i)
				objects = append(objects, &corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: benchProject, Name: source.ClaimName},
					Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: is.Spec.AccessModes, StorageClassName: is.Spec.StorageClassName,
						Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: is.Spec.Resources.Requests[corev1.ResourceStorage]}},
					},
				})
			}
		}
	}
	idle := func(c *corev1.Container, script string) {
		c.Image, c.Command, c.Args, c.Lifecycle, c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = s.Image, []string{"bash", "-c", script}, nil, nil, nil, nil, nil
	}
	for i := range spec.InitContainers {
		before := "true"
		if p := spec.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			before = "trap exit TERM; sleep 600 & wait"
		}
		idle(&spec.InitContainers[i], before)
	}
	for i := range spec.Containers {
		idle(&spec.Containers[i], script)
	}
	return append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: benchProject, Name: name, Labels: map[string]string{bareLabel: "true"}}, Spec: *spec})
}

// agentContainer is the name of the container that the agent is in, as internal/kube/desired has it.
const agentContainer = "agent"

// bareLabel marks pods that nobody supervises.
const bareLabel = "bench.tidewaiter.dev/bare"

// starts measures the time until the agents of so many Features run that are made at once, beside that of as many bare pods.
func (s *site) starts(b *board.Board, number int, limit float64) {
	rounds := max(1, 5/number)
	var features, pods []time.Duration
	for round := range rounds {
		features = append(features, s.started(number, agentContainer, client.MatchingLabels{v1alpha1.LabelRun: v1alpha1.RunAgent}, func(i int) []client.Object {
			return []client.Object{s.feature(fmt.Sprintf("f%d-%d-%d", number, round, i), 300)}
		}))
		s.clear(&v1alpha1.Feature{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{})
		pods = append(pods, s.started(number, agentContainer, client.MatchingLabels{bareLabel: "true"}, func(i int) []client.Object {
			return s.bare(fmt.Sprintf("p%d-%d-%d", number, round, i), "exec sleep 600")
		}))
		s.clear(&corev1.Pod{}, &corev1.PersistentVolumeClaim{})
	}
	b.Ratio(fmt.Sprintf("cluster-start/features=%d", number), board.Median(features), board.Median(pods), board.AtMost(limit))
}

// started makes objects and gives the time until as many pods have a container with this name running.
func (s *site) started(number int, container string, which client.ListOption, of func(i int) []client.Object) time.Duration {
	w, err := s.watch.Watch(s.ctx, &corev1.PodList{}, client.InNamespace(benchProject), which)
	s.must(err)
	defer w.Stop()
	began := time.Now()
	for i := range number {
		for _, o := range of(i) {
			s.must(s.Create(s.ctx, o))
		}
	}
	running := map[string]bool{}
	for event := range w.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == container && c.State.Running != nil {
				running[p.Name] = true
			}
		}
		if len(running) == number {
			return time.Since(began)
		}
	}
	s.t.Fatalf("%d of %d pods run: %v", len(running), number, context.Cause(s.ctx))
	return 0
}

// clear deletes all objects of these kinds and waits until they are gone.
func (s *site) clear(kinds ...client.Object) {
	for _, kind := range kinds {
		s.must(s.DeleteAllOf(s.ctx, kind, client.InNamespace(benchProject), client.GracePeriodSeconds(0)))
	}
	s.must(cluster.Until(s.ctx, "pods and volumes to go", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		if err := s.List(ctx, &pods, client.InNamespace(benchProject)); err != nil {
			return false, err
		}
		err := s.List(ctx, &claims, client.InNamespace(benchProject))
		return len(pods.Items) == 0 && len(claims.Items) == 0, err
	}))
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/schema"
)

// head is the commit that every run in these tests promotes.
const head = "1111111111111111111111111111111111111111"

// The API server of this package's tests, and who acts on it: a client takes a while to find out what there is.
var (
	env           *kubetest.Env
	manager       client.Client
	jobController client.Client
)

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) {
		env = e
		var managerErr, jobErr error
		manager, managerErr = client.New(e.ConfigAs(kubetest.Manager), client.Options{Scheme: e.Scheme})
		jobController, jobErr = client.New(e.ConfigAs(kubetest.JobController, "system:masters"), client.Options{Scheme: e.Scheme})
		if err := errors.Join(managerErr, jobErr); err != nil {
			panic(err)
		}
	}))
}

// harness is a project with a controller that is called by hand. Job controller, kubelet and intake are played by the
// test; the controller acts with the rights that the manager is shipped with.
type harness struct {
	*testing.T
	project string
	// repository of its Features: each project has its own.
	repository string
	clock      *clocktesting.FakePassiveClock
	// user sees and does everything.
	user client.Client
	// manager has the manager's rights.
	manager client.Client
	// writes is what the controller writes through; a test may put something in between.
	writes client.Client
	// lags is true while the cache shows no network policies of others.
	lags bool
	// locks stands for the process: what it remembers of Leases outlives a reconcile.
	locks    *leases.Keeper
	recorder *events.FakeRecorder
	// justStarted controllers know nothing of the time before.
	justStarted bool
	bundle      []byte
	results     map[string]ctrl.Result
	// gateways that renew what they have in force, by name.
	gateways models.Fleet
	// userNamespaces is the manager's flag.
	userNamespaces nodes.Setting
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	project := env.Project(t)
	r := &harness{
		T: t, project: project, repository: "https://git.example.com/" + project + ".git", user: env.Client, manager: manager, writes: manager,
		clock:    clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)),
		recorder: events.NewFakeRecorder(1000),
		bundle:   []byte("-----BEGIN CERTIFICATE-----\n"),
		results:  map[string]ctrl.Result{},
		locks:    &leases.Keeper{Namespace: kubetest.SystemNamespace, Live: manager},
		gateways: models.Fleet{"gateway-a": {}}, userNamespaces: nodes.Auto,
	}
	r.announce()
	t.Cleanup(func() { r.must(r.sayInForce(nil), "take back what gateways have in force") })
	return r
}

// Bundle, OnChange and Addresses are what the manager's own parts would say.
func (r *harness) Bundle() []byte  { return r.bundle }
func (r *harness) OnChange(func()) {}
func (r *harness) Addresses(context.Context) (intake, gateway netip.Addr, err error) {
	return netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.96.0.11"), nil
}

// reconciler is a controller that has just started: it remembers nothing.
func (r *harness) reconciler() *Reconciler {
	r.locks.Client = r.writes
	c := &Reconciler{
		Locks:  r.locks,
		Client: indexed{r.writes, r.lags}, Live: r.manager, Recorder: r.recorder, Clock: clock.PassiveClock(r.clock), CABundle: r, Endpoints: r,
		SystemNamespace: kubetest.SystemNamespace, Image: "example.com/tidewaiter:1", UserNamespaces: r.userNamespaces,
	}
	if !r.justStarted {
		c.process.began.Do(func() {}) // it has looked at everything long ago
	}
	return c
}

// indexed stands for the manager's cache: it knows which network policies open anything and which Features have delivered, which the API server
// does not.
type indexed struct {
	client.Client
	lags bool
}

func (c indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	networks, ok := list.(*networkingv1.NetworkPolicyList)
	if !ok {
		features, are := list.(*v1alpha1.FeatureList)
		if !are || options.FieldSelector == nil {
			return c.Client.List(ctx, list, opts...)
		}
		on, by := options.FieldSelector.RequiresExactMatch(indexDelivered)
		if !by {
			return c.Client.List(ctx, list, opts...)
		}
		err := c.Client.List(ctx, features, client.InNamespace(options.Namespace))
		features.Items = slices.DeleteFunc(features.Items, func(f v1alpha1.Feature) bool { return !slices.Contains(deliveredTo(&f), on) })
		return err
	}
	if c.lags {
		return nil
	}
	if err := c.Client.List(ctx, networks, client.InNamespace(options.Namespace)); err != nil {
		return err
	}
	controller := (&Reconciler{SystemNamespace: kubetest.SystemNamespace}).waker()
	networks.Items = slices.DeleteFunc(networks.Items, func(p networkingv1.NetworkPolicy) bool { return len(controller.opens(&p)) == 0 })
	return nil
}

// reconcile calls the controller once.
func (r *harness) reconcile(name string) error {
	key := client.ObjectKey{Namespace: r.project, Name: name}
	result, err := r.reconciler().overFeatures(r.writes).Reconcile(log.IntoContext(r.Context(), testr.New(r.T)), ctrl.Request{NamespacedName: key})
	r.results[name] = result
	return err
}

// settle lets controller, Job controller and kubelet do what they can, until nothing changes any more.
func (r *harness) settle(names ...string) {
	r.Helper()
	before := r.world()
	for range 12 {
		died := false
		for _, name := range names {
			err := r.reconcile(name)
			if died = died || errors.Is(err, errDied); !errors.Is(err, errDied) {
				r.must(err, "reconcile %s", name)
			}
		}
		r.makePods()
		if n := len(r.pods()); n > len(names) {
			r.Fatalf("%d pods are there for %d Features", n, len(names))
		}
		r.endDeleted()
		after := r.world()
		if after == before && !died {
			return
		}
		before = after
	}
	r.Fatalf("it does not come to rest:\n%s", r.world())
}

// world is everything of the project that the controller may write, with versions.
func (r *harness) world() string {
	r.Helper()
	text := ""
	for _, list := range []client.ObjectList{
		&v1alpha1.FeatureList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ConfigMapList{},
	} {
		r.must(r.user.List(r.Context(), list, client.InNamespace(r.project)), "list %T", list)
		r.must(meta.EachListItem(list, func(o runtime.Object) error {
			a, err := meta.Accessor(o)
			if err == nil {
				text += fmt.Sprintf("%T %s %s\n", o, a.GetName(), a.GetResourceVersion())
			}
			return err
		}), "walk %T", list)
	}
	for _, l := range r.leases() {
		text += fmt.Sprintf("%T %s %s\n", l, l.Annotations[v1alpha1.AnnotationContract], l.ResourceVersion)
	}
	return text
}

// feature makes a Feature; change may adjust it first.
func (r *harness) feature(name string, change func(*v1alpha1.Feature)) {
	r.Helper()
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.project},
		Spec: v1alpha1.FeatureSpec{
			Prompt:     "Add a login page.",
			Repository: v1alpha1.Repository{URL: r.repository, Revision: "main"},
			Agent:      v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
			MaxRetries: ptr.To[int32](1),
		},
	}
	if change != nil {
		change(f)
	}
	r.must(r.user.Create(r.Context(), f), "create Feature %s", name)
}

func (r *harness) get(name string) *v1alpha1.Feature {
	r.Helper()
	var f v1alpha1.Feature
	r.must(r.user.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: name}, &f), "read Feature %s", name)
	schema.Check(r, &f)
	return &f
}

// change edits a Feature's spec like a person would.
func (r *harness) change(name string, edit func(*v1alpha1.FeatureSpec)) {
	r.Helper()
	f := r.get(name)
	before := f.DeepCopy()
	edit(&f.Spec)
	r.must(r.user.Patch(r.Context(), f, client.MergeFrom(before)), "change Feature %s", name)
}

// makePods is the Job controller: one pod for each Job that has none and never had.
func (r *harness) makePods() {
	r.Helper()
	for _, j := range r.jobs() {
		if j.Status.Active+j.Status.Failed+j.Status.Succeeded > 0 || j.DeletionTimestamp != nil {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: j.Spec.Template.ObjectMeta, Spec: j.Spec.Template.Spec}
		pod.Namespace, pod.GenerateName = r.project, j.Name+"-"
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = "node-1", "default" // Scheduler and admission say so.
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&j, batchv1.SchemeGroupVersion.WithKind("Job"))}
		r.must(jobController.Create(r.Context(), pod), "create the pod of Job %s", j.Name)
		j.Status.Active = 1
		r.must(r.user.Status().Update(r.Context(), &j), "note the pod of Job %s", j.Name)
		r.status(pod, func(s *corev1.PodStatus) {
			s.Phase = corev1.PodRunning
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
	}
}

// endDeleted is the kubelet and the garbage collector: pods that are to go are gone, and so are those whose Job is gone.
func (r *harness) endDeleted() {
	r.Helper()
	jobs := r.jobs()
	for _, p := range r.pods() {
		owner := metav1.GetControllerOf(&p)
		owned := owner == nil || owner.Kind != "Job" || slices.ContainsFunc(jobs, func(j batchv1.Job) bool { return j.UID == owner.UID })
		if p.DeletionTimestamp != nil || !owned {
			r.losePod(&p)
		}
	}
}

// losePod takes a pod away at once.
func (r *harness) losePod(p *corev1.Pod) {
	r.Helper()
	r.must(r.user.Delete(r.Context(), p, client.GracePeriodSeconds(0)), "delete pod %s", p.Name)
}

// endPod lets a pod end by itself, and its Job notice.
func (r *harness) endPod(name string) {
	r.Helper()
	for _, p := range r.pods() {
		if p.Labels[v1alpha1.LabelFeature] == name {
			r.status(&p, func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded })
		}
	}
}

func (r *harness) status(p *corev1.Pod, change func(*corev1.PodStatus)) {
	r.Helper()
	before := p.DeepCopy()
	change(&p.Status)
	r.must(r.user.Status().Patch(r.Context(), p, client.MergeFrom(before)), "set the status of pod %s", p.Name)
}

func (r *harness) jobs() []batchv1.Job {
	r.Helper()
	var list batchv1.JobList
	r.must(r.user.List(r.Context(), &list, client.InNamespace(r.project)), "list Jobs")
	return list.Items
}

func (r *harness) pods() []corev1.Pod {
	r.Helper()
	var list corev1.PodList
	r.must(r.user.List(r.Context(), &list, client.InNamespace(r.project)), "list pods")
	return list.Items
}

// report is intake: it records what the pinned pod says.
func (r *harness) report(name string, change func(*applyv1alpha1.RunStatusApplyConfiguration)) {
	r.Helper()
	f := r.get(name)
	if f.Status.Job == nil || f.Status.Job.PodUID == "" {
		r.Fatalf("no pod may report for Feature %s: %+v", name, f.Status.Job)
	}
	run := applyv1alpha1.RunStatus().WithEpoch(f.Status.Attempt)
	change(run)
	config := applyv1alpha1.Feature(name, r.project).WithStatus(applyv1alpha1.FeatureStatus().WithRun(run))
	r.must(r.manager.Status().Apply(r.Context(), config, client.FieldOwner("tidewaiter-intake"), client.ForceOwnership), "report for Feature %s", name)
}

func (r *harness) reportRunning(name string) {
	r.Helper()
	r.report(name, func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithConnected(true).WithConnectionTransitionTime(metav1.NewTime(r.clock.Now())).
			WithReport(applyv1alpha1.RunReport().WithWorkspaceReady(true).WithAgentRunning(true).WithTask(name).WithHead(head))
	})
}

// final is the last word of the pinned pod, which then ends.
func (r *harness) final(name, outcome, reason, message string) {
	r.Helper()
	r.report(name, func(run *applyv1alpha1.RunStatusApplyConfiguration) {
		run.WithConnected(false).WithConnectionTransitionTime(metav1.NewTime(r.clock.Now())).
			WithReport(applyv1alpha1.RunReport().WithWorkspaceReady(true).WithHead(head)).
			WithFinal(applyv1alpha1.FinalReport().WithEpoch(r.get(name).Status.Attempt).
				WithOutcome(outcome).WithReason(reason).WithMessage(message).WithHead(head))
	})
	r.endPod(name)
}

// pass lets time pass.
func (r *harness) pass(d time.Duration) {
	r.clock.SetTime(r.clock.Now().Add(d))
	r.announce()
}

// announce what the gateways have in force, as they do. What others have said before stays.
func (r *harness) announce() {
	r.Helper()
	said := map[string]any{}
	for name, in := range r.gateways {
		in.Renewed = r.clock.Now()
		text, err := json.Marshal(in)
		r.must(err, "say what is in force")
		said[protocol.InForcePrefix+name] = string(text)
	}
	r.must(r.sayInForce(said), "say what is in force")
}

// sayInForce writes annotations of the gateways' Lease; nil takes all back.
func (r *harness) sayInForce(said map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": said}})
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.GatewayLease}}
	return r.user.Patch(context.WithoutCancel(r.Context()), lease, client.RawPatch(types.MergePatchType, patch))
}

// want checks phase and reason.
func (r *harness) want(name string, phase v1alpha1.Phase, reason string) *v1alpha1.Feature {
	r.Helper()
	f := r.get(name)
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil {
		r.Fatalf("Feature %s has no status", name)
	}
	if f.Status.Phase != phase || c.Reason != reason {
		r.Fatalf("Feature %s is %s/%s (%s), want %s/%s", name, f.Status.Phase, c.Reason, c.Message, phase, reason)
	}
	return f
}

// wantCondition checks a condition and returns its message.
func (r *harness) wantCondition(name, condition string, status metav1.ConditionStatus, reason string) string {
	r.Helper()
	c := meta.FindStatusCondition(r.get(name).Status.Conditions, condition)
	if c == nil {
		r.Fatalf("Feature %s has no condition %s", name, condition)
	}
	if c.Status != status || c.Reason != reason {
		r.Fatalf("condition %s of Feature %s is %s/%s (%s), want %s/%s", condition, name, c.Status, c.Reason, c.Message, status, reason)
	}
	return c.Message
}

// wantJobs checks which Jobs are there.
func (r *harness) wantJobs(want ...string) {
	r.Helper()
	got := []string{}
	for _, j := range r.jobs() {
		got = append(got, j.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.Fatalf("Jobs are %v, want %v", got, want)
	}
}

// events takes the events that were sent so far.
func (r *harness) events() []string {
	var list []string
	for {
		select {
		case e := <-r.recorder.Events:
			list = append(list, e)
		default:
			return list
		}
	}
}

func (r *harness) must(err error, format string, args ...any) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
	"github.com/tidewaiter/tidewaiter/internal/testkit/schema"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// replica is intake as one manager replica serves it: with caches of its own.
type replica struct {
	server   *Server
	url      string
	client   *http.Client
	recorder *events.FakeRecorder
	stop     context.CancelFunc
	stopped  chan error
	// failing is how many writes of a status fail from now on, as if the replica died before them.
	failing *atomic.Int32

	// late caches show a Feature and the policies as they once were; nil ones show what there is.
	late atomic.Pointer[lateCache]
	// live counts what is asked of the API server.
	live *counting

	mu       sync.Mutex
	observed []string
}

// counting counts Features that are read, and lists of policies.
type counting struct {
	client.Reader

	features, policies atomic.Int32
}

// Get implements client.Reader.
func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, ok := o.(*v1alpha1.Feature); ok {
		c.features.Add(1)
	}
	return c.Reader.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (c *counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.SupervisorPolicyList); ok {
		c.policies.Add(1)
	}
	return c.Reader.List(ctx, list, options...)
}

// lateCache is what a cache shows that is behind.
type lateCache struct {
	feature   *v1alpha1.Feature
	namespace *metav1.PartialObjectMetadata
	// policies by namespace.
	policies map[client.InNamespace]*v1alpha1.SupervisorPolicyList
	// version up to which the cache knows the policies.
	version string
}

// LastStoreSyncResourceVersion is that of the store that a cache has.
func (l *lateCache) LastStoreSyncResourceVersion() string { return l.version }

// stopWatching leaves the replica's caches as they are now.
func (r *replica) stopWatching(t *testing.T, f *v1alpha1.Feature) {
	t.Helper()
	late := &lateCache{feature: read(t, f), namespace: identity.Namespace(), policies: map[client.InNamespace]*v1alpha1.SupervisorPolicyList{}}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: f.Namespace}, late.namespace); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []client.InNamespace{client.InNamespace(f.Namespace), kubetest.SystemNamespace} {
		list := &v1alpha1.SupervisorPolicyList{}
		if err := env.Client.List(t.Context(), list, namespace); err != nil {
			t.Fatal(err)
		}
		late.version = list.ResourceVersion
		list.ResourceVersion = "" // as caches answer
		late.policies[namespace] = list
	}
	r.server.policies = late
	r.late.Store(late)
}

// ordersURL is where orders are asked for.
func (r *replica) ordersURL() string {
	return r.url + protocol.OrdersPath + "?" + protocol.VersionQuery + "=" + strconv.Itoa(protocol.OrdersVersion)
}

// newest orders, without waiting, for one who has seen others.
func (r *replica) newest(t *testing.T, token, etag, seen string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.ordersURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	if seen != "" {
		request.Header.Set(protocol.RevisionHeader, seen)
	}
	return r.do(t, token, request)
}

func (r *replica) observe(_ string, stored []protocol.Report, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range stored {
		r.observed = append(r.observed, fmt.Sprintf("%d/%02d", s.Epoch, s.Sequence))
	}
}

// wantObserved: metrics have counted these reports, each once, whichever replica did.
func wantObserved(t *testing.T, replicas []*replica, want ...string) {
	t.Helper()
	var got []string
	for _, r := range replicas {
		r.mu.Lock()
		got = append(got, r.observed...)
		r.mu.Unlock()
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed reports (-want +got)\n%s", diff)
	}
}

// newReplica starts a replica with the rights of the manager.
func newReplica(t *testing.T, name string, clock *clocktesting.FakeClock) *replica {
	t.Helper()
	const manager = "system:serviceaccount:" + kubetest.SystemNamespace + ":tidewaiter-manager"
	config := env.ConfigAs(manager, "system:serviceaccounts", "system:serviceaccounts:"+kubetest.SystemNamespace)
	informers, err := cache.New(config, cache.Options{
		Scheme: env.Scheme, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{kubetest.SystemNamespace: {}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sound, err := client.NewWithWatch(config, client.Options{Scheme: env.Scheme, Cache: &client.CacheOptions{Reader: informers}})
	if err != nil {
		t.Fatal(err)
	}
	failing := &atomic.Int32{}
	r := &replica{failing: failing, recorder: events.NewFakeRecorder(100), stopped: make(chan error, 1)}
	cached := interceptor.NewClient(sound, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if f, ok := o.(*v1alpha1.Feature); ok && r.late.Load() != nil {
				r.late.Load().feature.DeepCopyInto(f)
				return nil
			}
			if n, ok := o.(*metav1.PartialObjectMetadata); ok && r.late.Load() != nil {
				r.late.Load().namespace.DeepCopyInto(n)
				return nil
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			late := r.late.Load()
			if p, ok := list.(*v1alpha1.SupervisorPolicyList); ok && late != nil {
				for namespace, known := range late.policies {
					if slices.Contains(options, client.ListOption(namespace)) {
						known.DeepCopyInto(p)
					}
				}
				return nil
			}
			return c.List(ctx, list, options...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, subResource string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			if failing.Add(-1) >= 0 {
				return errors.New("the replica dies here")
			}
			return c.SubResource(subResource).Apply(ctx, o, options...)
		},
	})
	live := &counting{Reader: env.As(t, manager)}
	r.live = live
	authenticator, err := identity.New(identity.Options{Client: cached, Live: live, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	// It has a certificate that its own client trusts.
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	r.server, err = New(Options{
		Observe: r.observe,
		Client:  cached, Live: live, Authenticator: authenticator, Recorder: r.recorder, Clock: clock, SystemNamespace: kubetest.SystemNamespace,
		Errands: errands{}, Replica: name, TLS: &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}, Logger: logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r.stop = cancel
	if err := r.server.Watch(ctx, informers); err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	if !informers.WaitForCacheSync(ctx) {
		t.Fatal("the caches do not fill")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.stopped <- r.server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.stopped; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	r.url = "https://" + listener.Addr().String()
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, Timeout: time.Minute}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// logger is not the test's own log: what a test started may end a little later than the test.
func logger() logr.Logger { return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)) }

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a answer) orders(t *testing.T) protocol.Orders {
	t.Helper()
	var o protocol.Orders
	a.decode(t, &o)
	return o
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if a.code != http.StatusOK {
		t.Fatalf("answered %d: %s", a.code, a.body)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatal(err)
	}
}

func (r *replica) do(t *testing.T, token string, request *http.Request) answer {
	t.Helper()
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{code: response.StatusCode, header: response.Header, body: body}
}

// get asks for orders; with an ETag it waits.
func (r *replica) get(t *testing.T, token, etag string) answer {
	t.Helper()
	url := r.ordersURL()
	if etag != "" {
		url += "&" + protocol.WaitQuery + "=30"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	return r.do(t, token, request)
}

// poll is get that can be waited for.
func (r *replica) poll(t *testing.T, token, etag string) <-chan answer {
	t.Helper()
	before := r.open()
	answered := make(chan answer, 1)
	go func() { answered <- r.get(t, token, etag) }()
	until(t, "the poll is open", func() bool { return r.open() > before || len(answered) > 0 })
	return answered
}

// open is how many polls wait for a change.
func (r *replica) open() int {
	r.server.hub.mu.Lock()
	defer r.server.hub.mu.Unlock()
	n := 0
	for _, project := range r.server.hub.waiting {
		for _, polls := range project {
			n += len(polls)
		}
	}
	return n
}

func (r *replica) post(t *testing.T, token string, all ...protocol.Report) answer {
	t.Helper()
	return r.postBody(t, token, reports.Encode(t, all...))
}

func (r *replica) postBody(t *testing.T, token string, body []byte) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+protocol.ReportsPath, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r.do(t, token, request)
}

func run(t *testing.T, f *v1alpha1.Feature) v1alpha1.RunStatus {
	t.Helper()
	return runOf(read(t, f))
}

func read(t *testing.T, f *v1alpha1.Feature) *v1alpha1.Feature {
	t.Helper()
	now := &v1alpha1.Feature{}
	if err := env.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(f), now); err != nil {
		t.Fatal(err)
	}
	schema.Check(t, now)
	return now
}

func checkpoints(t *testing.T, f *v1alpha1.Feature) []v1alpha1.Checkpoint {
	t.Helper()
	list := &v1alpha1.CheckpointList{}
	if err := env.Client.List(t.Context(), list, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelFeature: f.Name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// until waits for something that another goroutine brings about.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	gomega.NewWithT(t).Eventually(done, 20*time.Second, 5*time.Millisecond).Should(gomega.BeTrue(), what)
}

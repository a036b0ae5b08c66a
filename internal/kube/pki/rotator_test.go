// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// system is a namespace with the Services that certificates are for.
func system(t *testing.T) string {
	t.Helper()
	namespace := env.Project(t)
	services(t, namespace)
	return namespace
}

func services(t *testing.T, namespace string) {
	t.Helper()
	for name, port := range map[string]int32{protocol.IntakeService: protocol.IntakePort, protocol.GatewayService: protocol.GatewayPort} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
		if err := env.Client.Create(t.Context(), service); err != nil {
			t.Fatal(err)
		}
	}
}

func newRotator(t *testing.T, namespace string, clock *clocktesting.FakeClock) *Rotator {
	t.Helper()
	return NewRotator(Options{Live: env.Client, Namespace: namespace, Clock: clock, Logger: testr.New(t)})
}

func syncNow(t *testing.T, s interface{ Sync(context.Context) error }) {
	t.Helper()
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestReplicasAgree: the first one makes the CA, and all serve what it vouches for.
func TestReplicasAgree(t *testing.T) {
	namespace, clock := system(t), clocktesting.NewFakeClock(time.Now())
	rotators := make([]*Rotator, 4)
	var all sync.WaitGroup
	for i := range rotators {
		rotators[i] = newRotator(t, namespace, clock)
		all.Go(func() {
			if err := rotators[i].Sync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range rotators {
		syncNow(t, k) // who lost the race for a serving certificate has the winner's by now
		if string(k.Bundle()) != string(rotators[0].Bundle()) {
			t.Error("two replicas have two CAs")
		}
		if !k.intake.current.Load().Leaf.Equal(rotators[0].intake.current.Load().Leaf) {
			t.Error("two replicas serve two certificates")
		}
	}
}

// TestAClientLivesThroughRenewals: a watchdog that reads the bundle as its kubelet brings it reaches intake and gateway,
// by name and by address, through three years of renewals, without either of them being restarted.
func TestAClientLivesThroughRenewals(t *testing.T) {
	namespace, clock := system(t), clocktesting.NewFakeClock(time.Now())
	rotator, other := newRotator(t, namespace, clock), newRotator(t, namespace, clock)
	follower := NewFollower(Options{Live: env.Client, Namespace: namespace, Clock: clock, Logger: testr.New(t)}, GatewaySecret)
	if rotator.Intake().Check(nil) == nil || follower.Check(nil) == nil {
		t.Error("ready without a certificate")
	}
	if err := follower.Sync(t.Context()); err == nil {
		t.Error("a gateway does not mind that there is no certificate")
	}
	var changes atomic.Int32
	rotator.OnChange(func() { changes.Add(1) })
	syncNow(t, rotator)
	syncNow(t, follower)
	if err := rotator.Intake().Check(nil); err != nil {
		t.Error(err)
	}
	servers := map[string]string{
		protocol.IntakeService: serve(t, rotator.Intake().TLS()), protocol.GatewayService: serve(t, follower.TLS()),
	}
	bundle := rotator.Bundle()
	for month := range 36 {
		for _, service := range []string{protocol.IntakeService, protocol.GatewayService} {
			for _, name := range []string{service + "." + namespace + ".svc", clusterIP(t, namespace, service)} {
				if err := reach(t, servers[service], name, bundle, clock.Now()); err != nil {
					t.Fatalf("month %d: %s: %v", month, name, err)
				}
			}
		}
		// The replicas take turns in looking first; in between the pod's bundle is one look behind.
		for day := range 30 {
			bundle = rotator.Bundle()
			clock.Step(24 * time.Hour)
			if day%2 == 0 {
				syncNow(t, other)
			}
			syncNow(t, rotator)
			syncNow(t, follower)
		}
	}
	if got := changes.Load(); got < 10 {
		t.Errorf("the bundle changed %d times in three years", got)
	}
}

func TestANewAddressIsServed(t *testing.T) {
	namespace, clock := system(t), clocktesting.NewFakeClock(time.Now())
	rotator := newRotator(t, namespace, clock)
	syncNow(t, rotator)
	old := clusterIP(t, namespace, protocol.IntakeService)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: protocol.IntakeService}}
	if err := env.Client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if err := rotator.Sync(t.Context()); err == nil {
		t.Error("nobody minds that intake has no Service")
	}
	// Somebody else takes the old address, so that the new Service gets another one.
	for _, next := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, Spec: corev1.ServiceSpec{ClusterIP: old}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: protocol.IntakeService}},
	} {
		next.Spec.Ports = []corev1.ServicePort{{Port: protocol.IntakePort}}
		if err := env.Client.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	syncNow(t, rotator)
	address := serve(t, rotator.Intake().TLS())
	if err := reach(t, address, clusterIP(t, namespace, protocol.IntakeService), rotator.Bundle(), clock.Now()); err != nil {
		t.Error(err)
	}
	if err := reach(t, address, old, rotator.Bundle(), clock.Now()); err == nil {
		t.Errorf("it still vouches for %s, which is another Service's by now", old)
	}
}

// TestItKeepsLooking: what fails is tried again soon, and what is well is looked at again.
func TestItKeepsLooking(t *testing.T) {
	namespace, clock := env.Project(t), clocktesting.NewFakeClock(time.Now())
	rotator := newRotator(t, namespace, clock)
	follower := NewFollower(Options{Live: env.Client, Namespace: namespace, Clock: clock, Logger: testr.New(t)}, GatewaySecret)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for _, work := range []func(context.Context) error{rotator.Start, follower.Start} {
		working.Go(func() {
			if err := work(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer working.Wait()
	defer stop()
	ready := func(pause time.Duration, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(func() bool {
			clock.Step(pause)
			return done()
		}, 30*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	}
	services(t, namespace) // too late for the first look
	ready(retryEvery, func() bool { return rotator.Intake().Check(nil) == nil && follower.Check(nil) == nil })
	first := follower.current.Load()
	ready(24*time.Hour, func() bool { return follower.current.Load() != nil && !follower.current.Load().Leaf.Equal(first.Leaf) })
}

// TestABrokenAuthorityIsNotReplaced: every running pod trusts it. Saying so is all that may be done.
func TestABrokenAuthorityIsNotReplaced(t *testing.T) {
	namespace, clock := system(t), clocktesting.NewFakeClock(time.Now())
	syncNow(t, newRotator(t, namespace, clock))
	secret := &corev1.Secret{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: AuthoritySecret}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data[corev1.TLSPrivateKeyKey] = []byte("oops")
	if err := env.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := newRotator(t, namespace, clock).Sync(t.Context()); err == nil {
		t.Error("a CA without its key was accepted")
	}
	after := &corev1.Secret{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), after); err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != secret.ResourceVersion {
		t.Error("the Secret was changed")
	}
}

// TestAGatewaySeesNoKeyOfTheCA: neither in its Secret, nor by its rights.
func TestAGatewaySeesNoKeyOfTheCA(t *testing.T) {
	rotator := newRotator(t, kubetest.SystemNamespace, clocktesting.NewFakeClock(time.Now()))
	syncNow(t, rotator)
	gateway := env.As(t, "system:serviceaccount:"+kubetest.SystemNamespace+":tidewaiter-gateway")
	follower := NewFollower(Options{Live: gateway, Namespace: kubetest.SystemNamespace, Clock: clocktesting.NewFakeClock(time.Now()), Logger: testr.New(t)}, GatewaySecret)
	syncNow(t, follower)
	for _, name := range []string{AuthoritySecret, IntakeSecret} {
		if err := gateway.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: name}, &corev1.Secret{}); err == nil {
			t.Errorf("the gateway may read %s", name)
		}
	}
}

func serve(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients here hang up after the handshake
	server.Listener = tls.NewListener(listener, config)
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

func reach(t *testing.T, address, name string, bundle []byte, now time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, ServerName: name, Time: func() time.Time { return now }, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	return conn.Close()
}

func clusterIP(t *testing.T, namespace, name string) string {
	t.Helper()
	service := &corev1.Service{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

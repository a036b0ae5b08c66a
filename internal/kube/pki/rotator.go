// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Secrets in the system namespace.
const (
	// AuthoritySecret holds the CA and its key. Only managers read it.
	AuthoritySecret = "tidewaiter-ca"
	// IntakeSecret and GatewaySecret hold serving certificates.
	IntakeSecret  = "tidewaiter-intake-tls"
	GatewaySecret = "tidewaiter-gateway-tls"
)

// Keys of the CA's Secret beside those of kubernetes.io/tls.
const (
	keyNextCertificate = "next.crt"
	keyNextKey         = "next.key"
	keyRetired         = "retired.crt"
)

const (
	// checkEvery bounds how long another replica's renewal, or a new address of a Service, stays unnoticed.
	checkEvery = time.Minute
	// retryEvery is the pause after a failure, and while there is no certificate to serve.
	retryEvery = 2 * time.Second
	// conflictRetries bounds how often another replica may get in first.
	conflictRetries = 5
)

// errOvertaken says that another replica wrote meanwhile.
var errOvertaken = errors.New("another replica wrote first")

// Options of a Rotator; all are required.
type Options struct {
	// Live reads and writes the API server without a cache: Secrets are not watched.
	Live client.Client
	// Namespace of the system.
	Namespace string
	Clock     clock.Clock
	Logger    logr.Logger
}

// Rotator renews the CA and the serving certificates of intake and gateway, together with the other replicas. Each looks every minute, and
// renews what is due with the version that it has read.
type Rotator struct {
	options Options
	intake  Certificate

	mu       sync.Mutex
	bundle   []byte
	onChange []func()
}

// NewRotator makes a Rotator; Start lets it work until the context ends.
func NewRotator(options Options) *Rotator { return &Rotator{options: options} }

// Bundle is the PEM of every CA that may vouch for intake and gateway; nil until it is known.
func (r *Rotator) Bundle() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bundle
}

// OnChange has f called after the bundle has changed. f must not block.
func (r *Rotator) OnChange(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onChange = append(r.onChange, f)
}

// Intake is intake's serving certificate.
func (r *Rotator) Intake() *Certificate { return &r.intake }

// NeedLeaderElection is false: each replica serves intake.
func (r *Rotator) NeedLeaderElection() bool { return false }

// Start looks after the certificates until the context ends.
func (r *Rotator) Start(ctx context.Context) error {
	return every(ctx, r.options.Clock, func() time.Duration {
		if err := r.Sync(ctx); err != nil {
			if ctx.Err() == nil {
				r.options.Logger.Error(err, "Cannot check or renew the certificates; trying again")
			}
			return retryEvery
		}
		return checkEvery
	})
}

// every calls work again and again, each time after the pause that it asks for.
func every(ctx context.Context, c clock.Clock, work func() time.Duration) error {
	for {
		timer := c.NewTimer(work())
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// Sync makes and renews certificates that are due, and takes over the ones that other replicas have renewed.
func (r *Rotator) Sync(ctx context.Context) error {
	state, err := r.authority(ctx)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	r.publish(state.bundle())
	// The same process serves the aggregated API, which an installation may leave out: there is a name for its Service,
	// whether that exists or not.
	intake, err := r.leaf(ctx, state, IntakeSecret, protocol.IntakeService, protocol.ViewService+"."+r.options.Namespace+".svc")
	if err != nil {
		return fmt.Errorf("certificate of intake: %w", err)
	}
	r.intake.set(intake)
	if _, err := r.leaf(ctx, state, GatewaySecret, protocol.GatewayService); err != nil {
		return fmt.Errorf("certificate of gateway: %w", err)
	}
	return nil
}

func (r *Rotator) publish(bundle []byte) {
	r.mu.Lock()
	changed := !bytes.Equal(bundle, r.bundle)
	r.bundle = bundle
	listeners := r.onChange
	r.mu.Unlock()
	if changed {
		for _, f := range listeners {
			f()
		}
	}
}

// authority reads the CA, renews it when that is due, and gives it as it is stored.
func (r *Rotator) authority(ctx context.Context) (authorityState, error) {
	var state authorityState
	err := r.renew(ctx, AuthoritySecret, corev1.SecretTypeOpaque, func(data map[string][]byte) (map[string][]byte, error) {
		var err error
		if state, err = decodeAuthority(data); err != nil {
			return nil, fmt.Errorf("%w (delete the Secret to start with a new CA)", err)
		}
		next, changed, err := advance(state, r.options.Clock.Now())
		if err != nil || !changed {
			return nil, err
		}
		state = next
		r.options.Logger.Info("Renewing the certificate authority", "signer", state.signer.certificate.Subject.CommonName,
			"announced", state.next != nil, "retired", len(state.retired))
		return encodeAuthority(state)
	})
	return state, err
}

// leaf reads the serving certificate of a Service, which has other names too, renews it when that is due, and gives it as it is stored.
func (r *Rotator) leaf(ctx context.Context, state authorityState, secret, service string, also ...string) (*keyPair, error) {
	wanted, err := r.names(ctx, service)
	if err != nil {
		return nil, err
	}
	wanted.dns = append(wanted.dns, also...)
	var pair *keyPair
	err = r.renew(ctx, secret, corev1.SecretTypeTLS, func(data map[string][]byte) (map[string][]byte, error) {
		// What cannot be read is replaced: a serving certificate can always be made again.
		pair, _ = decodePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
		reason := stale(pair, state, wanted, r.options.Clock.Now())
		if reason == "" {
			return nil, nil
		}
		r.options.Logger.Info("Renewing a serving certificate", "secret", secret, "because", reason)
		var err error
		if pair, err = newLeaf(state.signer, wanted, r.options.Clock.Now()); err != nil {
			return nil, err
		}
		key, err := encodeKey(pair.key)
		if err != nil {
			return nil, err
		}
		return map[string][]byte{
			corev1.TLSCertKey: encodeCertificate(pair.certificate), corev1.TLSPrivateKeyKey: key,
		}, nil
	})
	return pair, err
}

// names of a Service: the ways to spell it inside the cluster and its addresses, which pods without DNS use.
func (r *Rotator) names(ctx context.Context, service string) (names, error) {
	namespace := r.options.Namespace
	n := names{dns: []string{service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local", service + "." + namespace, service}}
	s := &corev1.Service{}
	if err := r.options.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: service}, s); err != nil {
		return n, fmt.Errorf("read Service %s/%s: %w", namespace, service, err)
	}
	for _, text := range s.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil {
			n.addresses = append(n.addresses, address)
		}
	}
	return n, nil
}

// renew gives a Secret's data to change, which returns the data to store instead or nil to leave it, and stores that
// unless another replica was faster: then it starts again from what the other has stored.
func (r *Rotator) renew(ctx context.Context, name string, kind corev1.SecretType, change func(map[string][]byte) (map[string][]byte, error)) error {
	for range conflictRetries {
		err := r.renewOnce(ctx, name, kind, change)
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return fmt.Errorf("secret %s: %w, %d times in a row", name, errOvertaken, conflictRetries)
}

func (r *Rotator) renewOnce(ctx context.Context, name string, kind corev1.SecretType, change func(map[string][]byte) (map[string][]byte, error)) error {
	secret := &corev1.Secret{}
	err := r.options.Live.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: name}, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read secret %s: %w", name, err)
	}
	data, err := change(secret.Data)
	if err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	if data == nil {
		return nil
	}
	if missing {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "tidewaiter"}},
			Type:       kind,
		}
		secret.Data = data
		err = r.options.Live.Create(ctx, secret)
	} else {
		secret.Data = data
		err = r.options.Live.Update(ctx, secret)
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && !missing:
		return errOvertaken
	default:
		return fmt.Errorf("write secret %s: %w", name, err)
	}
}

func decodeAuthority(data map[string][]byte) (authorityState, error) {
	var state authorityState
	var err error
	if state.signer, err = decodePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
		return state, fmt.Errorf("%s, %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	if state.next, err = decodePair(data[keyNextCertificate], data[keyNextKey]); err != nil {
		return state, fmt.Errorf("%s, %s: %w", keyNextCertificate, keyNextKey, err)
	}
	if state.retired, err = decodeCertificates(data[keyRetired]); err != nil {
		return state, fmt.Errorf("%s: %w", keyRetired, err)
	}
	return state, nil
}

func encodeAuthority(state authorityState) (map[string][]byte, error) {
	key, err := encodeKey(state.signer.key)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		corev1.TLSCertKey: encodeCertificate(state.signer.certificate), corev1.TLSPrivateKeyKey: key,
	}
	if state.next != nil {
		if data[keyNextKey], err = encodeKey(state.next.key); err != nil {
			return nil, err
		}
		data[keyNextCertificate] = encodeCertificate(state.next.certificate)
	}
	for _, old := range state.retired {
		data[keyRetired] = append(data[keyRetired], encodeCertificate(old)...)
	}
	return data, nil
}

// tlsCertificate is a pair as a TLS server takes it.
func (p *keyPair) tlsCertificate() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.certificate.Raw}, PrivateKey: p.key, Leaf: p.certificate}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
)

// authority signs certificates of front proxies.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key = a.sign(t, "a CA", true)
	return a
}

func (a *authority) sign(t *testing.T, name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: ca, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// asker answers every inquiry alike, and remembers the last one.
type asker struct {
	answer *intake.Answer
	err    error
	hold   chan struct{}

	key types.NamespacedName
	q   protocol.Inquiry
}

func (a *asker) Ask(ctx context.Context, key types.NamespacedName, q protocol.Inquiry) (*intake.Answer, func(), error) {
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
		}
		return nil, nil, intake.ErrUnanswered
	}
	a.key, a.q = key, q
	return a.answer, func() {}, a.err
}

func says(text, reason string) *intake.Answer {
	return &intake.Answer{Head: protocol.AnswerHead{Code: http.StatusOK}, Body: strings.NewReader(text), Reason: func() string { return reason }}
}

// harness is a server whose front proxy has the certificate proxy.
type harness struct {
	*Server
	proxy   *x509.Certificate
	asker   *asker
	allowed func(authorizer.Attributes) (authorizer.Decision, string, error)
	asked   authorizer.Attributes
}

// reviewer is the harness as an Authorizer, whose other methods nothing here calls.
type reviewer struct {
	authorizer.Authorizer
	harness *harness
}

// Authorize implements authorizer.Authorizer.
func (r reviewer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.harness.asked = a
	return r.harness.allowed(a)
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	trusted := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(trusted.certificate)
	r := &harness{asker: &asker{}, allowed: func(authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	}}
	r.proxy, _ = trusted.sign(t, "front-proxy-client", false)
	list := func(values ...string) headerrequest.StringSliceProvider {
		return headerrequest.StaticStringSlice(values)
	}
	r.Server = New(Options{
		Live: shop{}, Ledger: &record{}, Authorizer: reviewer{harness: r}, Asker: r.asker, Clock: clock.RealClock{}, Logger: logr.Discard(),
		Authenticator: headerrequest.NewDynamicVerifyOptionsSecure(
			func() (x509.VerifyOptions, bool) {
				return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
			},
			list("front-proxy-client"), list("X-Remote-User"), list("X-Remote-Uid"), list("X-Remote-Group"), list("X-Remote-Extra-")),
	})
	return r
}

// request as kube-apiserver forwards it for jane.
func (r *harness) request(method, target string) *http.Request {
	request := httptest.NewRequest(method, target, nil)
	request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{r.proxy}}
	request.Header.Set("X-Remote-User", "jane")
	request.Header.Set("X-Remote-Group", "shop")
	return request
}

func (r *harness) do(request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	r.Handler().ServeHTTP(recorder, request)
	return recorder
}

const base = "/apis/view.tidewaiter.dev/v1alpha1"
const ofFeature = base + "/namespaces/shop/features/add-login/"

// wantStatus checks a Status, as every API of Kubernetes answers with.
func wantStatus(t *testing.T, got *httptest.ResponseRecorder, code int, reason metav1.StatusReason, message string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil {
		t.Fatalf("no Status: %v in %q", err, got.Body)
	}
	if got.Code != code || int(status.Code) != code || status.Reason != reason || status.Kind != "Status" || !strings.Contains(status.Message, message) {
		t.Errorf("got %d %s, want %d %s with %q", got.Code, got.Body, code, reason, message)
	}
}

func TestOnlyTheFrontProxyIsBelieved(t *testing.T) {
	r := newHarness(t)
	r.asker.answer = says("all", "")
	stranger, _ := newAuthority(t).sign(t, "front-proxy-client", false)
	tests := map[string]func(*http.Request){
		"no connection of TLS":         func(q *http.Request) { q.TLS = nil },
		"no certificate":               func(q *http.Request) { q.TLS.PeerCertificates = nil },
		"a certificate of another CA":  func(q *http.Request) { q.TLS.PeerCertificates = []*x509.Certificate{stranger} },
		"the certificate, but no user": func(q *http.Request) { q.Header.Del("X-Remote-User") },
		"a token instead": func(q *http.Request) {
			q.TLS.PeerCertificates = nil
			q.Header.Set("Authorization", "Bearer token")
		},
	}
	for name, change := range tests {
		for _, target := range []string{ofFeature + "diff", "/apis", base, "/", "/healthz", base + "/namespaces/shop/checkpoints/c/diff"} {
			t.Run(name+" "+target, func(t *testing.T) {
				request := r.request(http.MethodGet, target)
				change(request)
				r.asked = nil
				wantStatus(t, r.do(request), http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "only kube-apiserver")
				if r.asked != nil {
					t.Error("access was reviewed of somebody unknown")
				}
			})
		}
	}
	if got := r.do(r.request(http.MethodGet, ofFeature+"diff")); got.Code != http.StatusOK || got.Body.String() != "all" {
		t.Errorf("the front proxy itself: %d %s", got.Code, got.Body)
	}
}

func TestANameThatIsNotAllowedIsNotBelieved(t *testing.T) {
	r := newHarness(t)
	other := newAuthority(t)
	certificate, _ := other.sign(t, "somebody", false)
	pool := x509.NewCertPool()
	pool.AddCert(other.certificate)
	list := func(values ...string) headerrequest.StringSliceProvider {
		return headerrequest.StaticStringSlice(values)
	}
	r.options.Authenticator = headerrequest.NewDynamicVerifyOptionsSecure(
		func() (x509.VerifyOptions, bool) {
			return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
		}, list("front-proxy-client"), list("X-Remote-User"), list(), list("X-Remote-Group"), list())
	r.proxy = certificate
	wantStatus(t, r.do(r.request(http.MethodGet, "/apis")), http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "only kube-apiserver")
}

func TestAccessIsReviewed(t *testing.T) {
	r := newHarness(t)
	r.allowed = func(authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "no rule", nil
	}
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"diff")), http.StatusForbidden, metav1.StatusReasonForbidden, `user "jane" may not get it: no rule`)
	a := r.asked
	got := []string{a.GetUser().GetName(), strings.Join(a.GetUser().GetGroups(), " "), a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetNamespace(), a.GetResource(), a.GetSubresource(), a.GetName()}
	if diff := cmp.Diff([]string{"jane", "shop", "get", Group, Version, "shop", "features", "diff", "add-login"}, got); diff != "" {
		t.Errorf("what was reviewed (-want +got):\n%s", diff)
	}
	wantStatus(t, r.do(r.request(http.MethodGet, base)), http.StatusForbidden, metav1.StatusReasonForbidden, "")
	if r.asked.IsResourceRequest() || r.asked.GetPath() != base {
		t.Errorf("discovery is reviewed as %v %s", r.asked.IsResourceRequest(), r.asked.GetPath())
	}
	r.allowed = func(authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", errors.New("boom")
	}
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"log")), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "try again")
}

func TestPathsAndParameters(t *testing.T) {
	r := newHarness(t)
	const notFound, bad = metav1.StatusReasonNotFound, metav1.StatusReasonBadRequest
	tests := map[string]struct {
		target, method string
		code           int
		reason         metav1.StatusReason
		message        string
	}{
		"another subresource":    {ofFeature + "exec", "", 404, notFound, "serves features/diff"},
		"the Feature itself":     {base + "/namespaces/shop/features/add-login", "", 404, notFound, "serves"},
		"all Features":           {base + "/features", "", 404, notFound, "serves"},
		"another version":        {"/apis/view.tidewaiter.dev/v1", "", 404, notFound, "serves"},
		"a write":                {ofFeature + "diff", http.MethodPost, 405, metav1.StatusReasonMethodNotAllowed, "read only"},
		"a deletion":             {base + "/namespaces/shop/features", http.MethodDelete, 405, metav1.StatusReasonMethodNotAllowed, "read only"},
		"an unknown parameter":   {ofFeature + "diff?path=/etc", "", 400, bad, `"path" is not known here: use from, to, patch`},
		"a parameter twice":      {ofFeature + "diff?to=1&to=2", "", 400, bad, `"to" is there more than once`},
		"no checkpoint":          {ofFeature + "diff?to=latest", "", 400, bad, `to: "latest" is not a checkpoint of add-login: give its number, or its name such as add-login-7`},
		"one of another Feature": {ofFeature + "diff?from=other-1", "", 400, bad, `from: "other-1" is not a checkpoint of add-login`},
		"a negative one":         {ofFeature + "diff?to=-1", "", 400, bad, "is not a checkpoint"},
		"no truth value":         {ofFeature + "diff?patch=yes", "", 400, bad, `patch is true or false, not "yes"`},
		"files of a diff":        {ofFeature + "diff?files=true", "", 400, bad, "not known"},
		"no commit":              {ofFeature + "verify?commit=HEAD", "", 400, bad, "40 hexadecimal digits"},
		"a long name":            {ofFeature + "gates?task=" + strings.Repeat("a", 200), "", 400, bad, "at most 127 characters"},
		"another format":         {ofFeature + "verify?output=yaml", "", 400, bad, "json or text"},
		"a broken query":         {ofFeature + "log?files=%zz", "", 400, bad, "cannot read the query"},
		"a long query":           {ofFeature + "log?files=" + strings.Repeat("a", 2000), "", 400, bad, "more than 1024 characters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.method == "" {
				test.method = http.MethodGet
			}
			wantStatus(t, r.do(r.request(test.method, test.target)), test.code, test.reason, test.message)
		})
	}
}

func TestWhatIsAsked(t *testing.T) {
	tests := map[string]protocol.Inquiry{
		"diff":                         {Kind: "diff"},
		"diff?to=7":                    {Kind: "diff", To: 7},
		"diff?to=add-login-7&from=5":   {Kind: "diff", To: 7, From: 5},
		"diff?from=base&patch=true":    {Kind: "diff", Base: true, Patch: true},
		"log":                          {Kind: "log"},
		"log?files=true":               {Kind: "log", Files: true},
		"gates":                        {Kind: "gates"},
		"gates?task=form/page&gate=a":  {Kind: "gates", Task: "form/page", Gate: "a"},
		"verify":                       {Kind: "verify", JSON: true},
		"verify?output=text":           {Kind: "verify"},
		"verify?commit=" + someCommit:  {Kind: "verify", JSON: true, Commit: someCommit},
		"verify?output=json&commit=":   {Kind: "verify", JSON: true},
		"diff?patch=false&from=&to=12": {Kind: "diff", To: 12},
	}
	for query, want := range tests {
		t.Run(query, func(t *testing.T) {
			r := newHarness(t)
			r.asker.answer = says("text", "")
			got := r.do(r.request(http.MethodGet, ofFeature+query))
			if got.Code != http.StatusOK || r.asker.key != (types.NamespacedName{Namespace: "shop", Name: "add-login"}) {
				t.Errorf("%d %s of %s", got.Code, got.Body, r.asker.key)
			}
			if diff := cmp.Diff(want, r.asker.q); diff != "" {
				t.Errorf("inquiry (-want +got):\n%s", diff)
			}
		})
	}
}

const someCommit = "0123456789abcdef0123456789abcdef01234567"

func TestAnswers(t *testing.T) {
	head := func(code int, message string) *intake.Answer {
		return &intake.Answer{Head: protocol.AnswerHead{Code: code, Message: message}, Body: strings.NewReader(""), Reason: func() string { return "" }}
	}
	tests := map[string]struct {
		answer  *intake.Answer
		err     error
		code    int
		reason  metav1.StatusReason
		message string
	}{
		"no such checkpoint":      {head(404, "there is no checkpoint 9"), nil, 404, metav1.StatusReasonNotFound, "checkpoint 9"},
		"a volume that is broken": {head(500, "git failed"), nil, 500, metav1.StatusReasonInternalError, "git failed"},
		"a code from nowhere":     {head(418, "tea"), nil, 500, metav1.StatusReasonInternalError, "tea"},
		"another is open":         {nil, intake.ErrBusy, 429, metav1.StatusReasonTooManyRequests, "another inquiry"},
		"not started":             {nil, intake.ErrNothing, 404, metav1.StatusReasonNotFound, "has not started"},
		"the volume is gone":      {nil, intake.ErrGone, 410, metav1.StatusReasonGone, "volume of this Feature is gone"},
		"nobody answers":          {nil, intake.ErrUnanswered, 503, metav1.StatusReasonServiceUnavailable, "no answer came in time"},
		"something else":          {nil, errors.New("the password is secret"), 500, metav1.StatusReasonInternalError, "see the log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.asker.answer, r.asker.err = test.answer, test.err
			got := r.do(r.request(http.MethodGet, ofFeature+"diff"))
			wantStatus(t, got, test.code, test.reason, test.message)
			if strings.Contains(got.Body.String(), "password") {
				t.Error("an error of ours is told to everybody")
			}
			if (got.Header().Get("Retry-After") != "") != (test.code == http.StatusTooManyRequests) {
				t.Errorf("Retry-After %q", got.Header().Get("Retry-After"))
			}
		})
	}
}

// TestAPartIsNotTakenForTheWhole: an answer that was cut says so, and the connection breaks off.
func TestAPartIsNotTakenForTheWhole(t *testing.T) {
	r := newHarness(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{r.proxy}}
		request.Header.Set("X-Remote-User", "jane")
		r.Handler().ServeHTTP(w, request)
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		answer *intake.Answer
		broken bool
		want   string
	}{
		"whole":      {says("all of it", ""), false, "all of it"},
		"cut":        {says("a part", "cut after 32 MiB"), true, "a part\ntidewaiter: this answer is not complete: cut after 32 MiB\n"},
		"broken off": {&intake.Answer{Head: protocol.AnswerHead{Code: 200}, Body: io.MultiReader(strings.NewReader("a part"), failing{}), Reason: func() string { return "" }}, true, "a part\ntidewaiter: this answer is not complete: it broke off: ask again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r.asker.answer = test.answer
			response, err := server.Client().Get(server.URL + ofFeature + "diff")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			got, err := io.ReadAll(response.Body)
			if (err != nil) != test.broken || string(got) != test.want {
				t.Errorf("got %q and %v, want %q", got, err, test.want)
			}
			if response.Header.Get("Content-Type") != "text/plain; charset=utf-8" || response.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", response.Header)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("boom") }

func TestRequestsAtATimeAreBounded(t *testing.T) {
	r := newHarness(t)
	r.asker.hold = make(chan struct{})
	done := make(chan int)
	ask := func(user string) {
		request := r.request(http.MethodGet, ofFeature+"diff")
		request.Header.Set("X-Remote-User", user)
		go func() { done <- r.do(request).Code }()
	}
	open := func() int {
		r.streams.mu.Lock()
		defer r.streams.mu.Unlock()
		return r.streams.open
	}
	until := func(n int) {
		for open() != n {
			time.Sleep(time.Millisecond)
		}
	}
	for n := range maxStreamsEach {
		ask("jane")
		until(n + 1)
	}
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"diff")), http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "you have too many")
	for n := maxStreamsEach; n < maxStreams; n++ {
		ask(strings.Repeat("x", n))
		until(n + 1)
	}
	request := r.request(http.MethodGet, ofFeature+"diff")
	request.Header.Set("X-Remote-User", "joe")
	wantStatus(t, r.do(request), http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests are open")
	close(r.asker.hold)
	for range maxStreams {
		if code := <-done; code != http.StatusServiceUnavailable {
			t.Errorf("a request that was let in got %d", code)
		}
	}
	if open() != 0 || len(r.streams.by) != 0 {
		t.Errorf("%d are open in the end: %v", open(), r.streams.by)
	}
}

func TestDiscovery(t *testing.T) {
	r := newHarness(t)
	read := func(target, accept string, into any) http.Header {
		t.Helper()
		request := r.request(http.MethodGet, target)
		request.Header.Set("Accept", accept)
		got := r.do(request)
		if err := json.Unmarshal(got.Body.Bytes(), into); err != nil || got.Code != http.StatusOK {
			t.Fatalf("%s: %d %v %s", target, got.Code, err, got.Body)
		}
		return got.Header()
	}
	var resources metav1.APIResourceList
	read(base, "application/json", &resources)
	var names []string
	for _, resource := range resources.APIResources {
		names = append(names, resource.Name)
		if !strings.Contains(resource.Name, "/") || !resource.Namespaced || len(resource.Verbs) != 1 || resource.Verbs[0] != "get" || resource.Kind == "" {
			t.Errorf("%+v could be taken for something that can be listed or deleted", resource)
		}
	}
	if diff := cmp.Diff([]string{"features/diff", "features/events", "features/gates", "features/history", "features/log", "features/prompt", "features/review", "features/steering", "features/turns", "features/verify", "checkpoints/diff"}, names); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	var groups metav1.APIGroupList
	read("/apis", "application/json", &groups)
	if len(groups.Groups) != 1 || groups.Groups[0].Name != Group || groups.Groups[0].PreferredVersion.GroupVersion != Group+"/"+Version {
		t.Errorf("groups %+v", groups)
	}
	var all apidiscoveryv2.APIGroupDiscoveryList
	header := read("/apis", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", &all)
	if header.Get("Content-Type") != aggregatedAccept || len(all.Items) != 1 || len(all.Items[0].Versions[0].Resources) != 2 {
		t.Errorf("aggregated discovery of type %s: %+v", header.Get("Content-Type"), all)
	}
	var old metav1.APIGroupList
	read("/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", &old)
	if old.Kind != "APIGroupList" {
		t.Errorf("who knows only the beta gets %+v", old)
	}
}

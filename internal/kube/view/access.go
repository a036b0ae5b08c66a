// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// Where kube-apiserver says how it vouches for others (k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust).
const (
	trustNamespace = "kube-system"
	trustConfigMap = "extension-apiserver-authentication"
)

const (
	// reviewTTL is how long the answer to an access review counts: as long as those of metrics.
	reviewTTL = 10 * time.Second
	// trustWorkers reload the trust when its ConfigMap changes.
	trustWorkers = 1
)

// FrontProxy authenticates kube-apiserver by its front-proxy certificate, and accepts its statement of who the caller is. It reads the
// trusted CA from kube-system and watches it, so that a rotated CA counts at once. It is a Runnable.
type FrontProxy struct {
	authenticator.Request
	ca      *dynamiccertificates.ConfigMapCAController
	headers *headerrequest.RequestHeaderAuthRequestController
}

// NewFrontProxy makes a FrontProxy; Start lets it follow its ConfigMap. Until it has read it, everybody is refused.
func NewFrontProxy(clients kubernetes.Interface) (*FrontProxy, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", trustNamespace, trustConfigMap, "requestheader-client-ca-file", clients)
	if err != nil {
		return nil, fmt.Errorf("follow the front proxy's CA: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(trustConfigMap, trustNamespace, clients,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	return &FrontProxy{
		ca: ca, headers: headers,
		Request: headerrequest.NewDynamicVerifyOptionsSecure(ca.VerifyOptions,
			headerrequest.StringSliceProviderFunc(headers.AllowedClientNames), headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
			headerrequest.StringSliceProviderFunc(headers.UIDHeaders), headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
			headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes)),
	}, nil
}

// NeedLeaderElection is false: every replica serves.
func (f *FrontProxy) NeedLeaderElection() bool { return false }

// Start follows the trust until the context ends.
func (f *FrontProxy) Start(ctx context.Context) error {
	go f.headers.Run(ctx, trustWorkers)
	f.ca.Run(ctx, trustWorkers)
	return nil
}

// NewAuthorizer asks the API server whether a user has a permission.
func NewAuthorizer(clients kubernetes.Interface) (authorizer.Authorizer, error) {
	a, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: clients.AuthorizationV1(), AllowCacheTTL: reviewTTL, DenyCacheTTL: reviewTTL,
		WebhookRetryBackoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("set up access reviews: %w", err)
	}
	return a, nil
}

// authenticated lets only those through whom kube-apiserver vouches for.
func (s *Server) authenticated(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, ok, err := s.options.Authenticator.AuthenticateRequest(r)
		if err != nil || !ok || answer == nil || answer.User == nil || answer.User.GetName() == "" {
			if err != nil {
				s.options.Logger.V(1).Info("Refused a request", "path", r.URL.Path, "cause", err.Error())
			}
			fail(w, apierrors.NewUnauthorized("only kube-apiserver may ask here: use kubectl get --raw"))
			return
		}
		handle(w, r.WithContext(request.WithUser(r.Context(), answer.User)))
	}
}

// what of a request has to be allowed.
type what func(*http.Request) authorizer.AttributesRecord

// path itself.
func path(r *http.Request) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Path: r.URL.Path}
}

// resource is a subresource of the object that the path names.
func resource(kind, sub string) what {
	return func(r *http.Request) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			ResourceRequest: true, APIGroup: Group, APIVersion: Version, Resource: kind, Subresource: sub,
			Namespace: r.PathValue("namespace"), Name: r.PathValue("name"), Path: r.URL.Path,
		}
	}
}

// authorized lets only those through who are authenticated and may do what they ask for.
func (s *Server) authorized(what what, handle http.HandlerFunc) http.HandlerFunc {
	return s.authenticated(func(w http.ResponseWriter, r *http.Request) {
		attributes := what(r)
		attributes.User, attributes.Verb = whoAsks(r), "get"
		decision, reason, err := s.options.Authorizer.Authorize(r.Context(), attributes)
		switch {
		case err != nil && decision != authorizer.DecisionAllow:
			s.options.Logger.Error(err, "Cannot review access", "path", r.URL.Path)
			fail(w, apierrors.NewServiceUnavailable("the manager cannot review now whether you may see this: try again"))
		case decision != authorizer.DecisionAllow:
			kind := schema.GroupResource{Group: attributes.APIGroup, Resource: attributes.Resource}
			if attributes.Subresource != "" {
				kind.Resource += "/" + attributes.Subresource
			}
			fail(w, apierrors.NewForbidden(kind, attributes.Name, fmt.Errorf("user %q may not get it%s", attributes.User.GetName(), because(reason))))
		default:
			handle(w, r)
		}
	})
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func whoAsks(r *http.Request) user.Info {
	if u, ok := request.UserFrom(r.Context()); ok {
		return u
	}
	return &user.DefaultInfo{}
}

// nothing is what is found at any other path.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
			Message: Group + " can be read only: use get",
		}})
		return
	}
	fail(w, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: Group + " serves features/diff, features/events, features/gates, features/history, features/log, features/prompt, features/review, features/steering, features/turns, features/verify and checkpoints/diff of a namespace",
	}})
}

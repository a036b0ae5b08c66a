// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group and Version of the API.
const (
	Group   = "view.tidewaiter.dev"
	Version = "v1alpha1"
	// APIService is the object that registers this API with kube-apiserver.
	APIService = Version + "." + Group
)

// subresource that is served. Its parent is not: there is nothing here to list, watch or delete, so that `kubectl get
// features` stays what it is, and garbage collection and the deletion of namespaces find no kind to look through.
type subresource struct{ parent, name, kind string }

func subresources() []subresource {
	return []subresource{
		{"features", "diff", "Diff"},
		{"features", "events", "FileEvents"},
		{"features", "gates", "Gates"},
		{"features", "history", "History"},
		{"features", "log", "Log"},
		{"features", "prompt", "Prompt"},
		{"features", "review", "Review"},
		{"features", "steering", "Steering"},
		{"features", "turns", "Turns"},
		{"features", "verify", "Verification"},
		{"checkpoints", "diff", "Diff"},
	}
}

func apiGroup() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: Group + "/" + Version, Version: Version}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: Group,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

// aggregatedAccept is what the aggregator accepts when it wants all of it in one document; the answer has this type.
const aggregatedAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func discoverGroups(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if wantsAggregated(r.Header.Get("Accept")) {
		send(w, aggregatedAccept, aggregated())
		return
	}
	group := apiGroup()
	group.TypeMeta = metav1.TypeMeta{}
	send(w, "application/json", metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}})
}

// wantsAggregated reads the media types of an Accept header, in whose parameters order and spaces do not count.
func wantsAggregated(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		parameters := strings.Split(strings.ReplaceAll(part, " ", ""), ";")
		if parameters[0] == "application/json" && slices.Contains(parameters, "g=apidiscovery.k8s.io") &&
			slices.Contains(parameters, "v=v2") && slices.Contains(parameters, "as=APIGroupDiscoveryList") {
			return true
		}
	}
	return false
}

func discoverGroup(w http.ResponseWriter, _ *http.Request) { send(w, "application/json", apiGroup()) }

func discoverResources(w http.ResponseWriter, _ *http.Request) {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: Group + "/" + Version,
	}
	for _, s := range subresources() {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: s.parent + "/" + s.name, Namespaced: true, Kind: s.kind, Verbs: metav1.Verbs{"get"}})
	}
	send(w, "application/json", list)
}

func aggregated() apidiscoveryv2.APIGroupDiscoveryList {
	var parents []apidiscoveryv2.APIResourceDiscovery
	for _, s := range subresources() {
		if len(parents) == 0 || parents[len(parents)-1].Resource != s.parent {
			parents = append(parents, apidiscoveryv2.APIResourceDiscovery{Resource: s.parent, Scope: apidiscoveryv2.ScopeNamespace})
		}
		last := &parents[len(parents)-1]
		last.Subresources = append(last.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: s.name, ResponseKind: &metav1.GroupVersionKind{Group: Group, Version: Version, Kind: s.kind}, Verbs: []string{"get"},
		})
	}
	return apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items: []apidiscoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: Group},
			Versions:   []apidiscoveryv2.APIVersionDiscovery{{Version: Version, Resources: parents, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}},
		}},
	}
}

// send writes a document.
func send(w http.ResponseWriter, contentType string, document any) {
	w.Header().Set("Content-Type", contentType)
	if err := json.NewEncoder(w).Encode(document); err != nil {
		return // a caller that hung up asks again
	}
}

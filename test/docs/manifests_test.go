// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

var (
	// block is a fenced block, with its language and text. A manifest in a list is indented.
	block = regexp.MustCompile("(?ms)^([ \t]*)```([^\n`]*)\n(.*?)^[ \t]*```[ \t]*$")
	// heredoc is what a command of a shell applies.
	heredoc = regexp.MustCompile(`(?ms)<<'?EOF'?\n(.*?)^\s*EOF$`)
	// patch is a patch of a Feature, or of one of our other kinds.
	patch = regexp.MustCompile(`(?s)kubectl [^\n]*?patch (\w+)(?:\.tidewaiter\.dev)? [^']*?--type[ =](merge|json) [^']*?'((?:[^']|'"?\$\w+"?')+)'`)
	// listed are lists of a Feature in a merge patch, and replaces is an operation of a JSON patch with one of them as a whole.
	listed   = regexp.MustCompile(`"(requests|directives|answers)"`)
	replaces = regexp.MustCompile(`"path":"/spec/(requests|directives|answers)"`)
	// variable is what a shell puts into a patch: a commit or a version.
	variable = regexp.MustCompile(`'"?\$\w+"?'`)
)

// TestManifests: the API server takes each object that a page shows whole, with no field that it does not know. A fragment is marked as one: ```yaml fragment.
func TestManifests(t *testing.T) {
	project := env.Project(t)
	strict := client.WithFieldValidation(client.NewDryRunClient(env.Client), "Strict")
	count := 0
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		for _, manifest := range manifests(text) {
			for document := range strings.SplitSeq(manifest, "\n---\n") {
				var o unstructured.Unstructured
				if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
					t.Errorf("%s: %v in\n%s", name, err, document)
					continue
				}
				if o.GetKind() == "" {
					if strings.TrimSpace(document) != "" {
						t.Errorf("%s: this has no kind; if it is a part of an object, mark it as ```yaml fragment:\n%s", name, document)
					}
					continue
				}
				if o.GetNamespace() != "tidewaiter-system" {
					o.SetNamespace(project)
				}
				count++
				if err := strict.Create(t.Context(), &o); err != nil {
					t.Errorf("%s: create %s %s: %v", name, o.GetKind(), o.GetName(), err)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d objects were found", count)
	}
}

// TestPatches: the API server takes each patch of our kinds that a page shows.
func TestPatches(t *testing.T) {
	project := env.Project(t)
	feature := &v1alpha1.Feature{}
	if err := yaml.Unmarshal([]byte(`
metadata: {name: patched}
spec:
  prompt: Add a login page.
  repository: {url: https://git.example.com/shop.git}
  agent: {runtime: worker}
  requests: [{id: first, checkpoint: {}}]
  directives: [{id: first, description: Be careful.}]
  answers: [{question: first, text: "Yes."}]
`), feature); err != nil {
		t.Fatal(err)
	}
	feature.Namespace = project
	if err := env.Client.Create(t.Context(), feature); err != nil {
		t.Fatal(err)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(env.Client), "Strict")
	count := 0
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		for _, match := range patch.FindAllStringSubmatch(text, -1) {
			if match[1] != "feature" && match[1] != "features" && match[1] != "feat" {
				continue
			}
			count++
			kind := types.MergePatchType
			if match[2] == "json" {
				kind = types.JSONPatchType
			}
			data := variable.ReplaceAllStringFunc(match[3], func(name string) string {
				if strings.Contains(name, "$version") {
					return feature.ResourceVersion
				}
				return strings.Repeat("a", 40)
			})
			if kind == types.MergePatchType && listed.MatchString(data) || kind == types.JSONPatchType && replaces.MatchString(data) && !strings.Contains(data, `"op":"test","path":"/metadata/resourceVersion"`) {
				t.Errorf("%s: this patch replaces a whole list, also one that another user has made: %s", name, data)
			}
			if err := strict.Patch(t.Context(), feature.DeepCopy(), client.RawPatch(kind, []byte(data))); err != nil {
				t.Errorf("%s: %s: %v", name, data, err)
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d patches were found", count)
	}
}

// TestRuntimePages: the page of a runtime shows a Feature of that runtime.
func TestRuntimePages(t *testing.T) {
	count := 0
	for name, text := range pages(t) {
		runtime, ok := strings.CutPrefix(strings.TrimSuffix(name, ".md"), "docs/reference/runtimes/")
		if !ok {
			continue
		}
		count++
		shown := manifests(text)
		var feature v1alpha1.Feature
		if len(shown) == 0 {
			t.Errorf("%s shows no Feature", name)
		} else if err := yaml.Unmarshal([]byte(shown[0]), &feature); err != nil || feature.Spec.Agent.Runtime != runtime {
			t.Errorf("%s shows one of the runtime %q: %v", name, feature.Spec.Agent.Runtime, err)
		}
	}
	if count == 0 {
		t.Error("there are no pages of runtimes")
	}
}

// manifests that a page shows, in blocks of YAML and in commands of a shell.
func manifests(page string) []string {
	var all []string
	for _, match := range block.FindAllStringSubmatch(page, -1) {
		indent, language, text := match[1], strings.TrimSpace(match[2]), match[3]
		text = strings.ReplaceAll("\n"+text, "\n"+indent, "\n")
		switch language {
		case "yaml":
			if strings.Contains(text, "apiVersion:") {
				all = append(all, text)
			}
		case "sh", "bash", "shell":
			for _, here := range heredoc.FindAllStringSubmatch(text, -1) {
				if strings.Contains(here[1], "apiVersion:") {
					all = append(all, here[1])
				}
			}
		}
	}
	return all
}

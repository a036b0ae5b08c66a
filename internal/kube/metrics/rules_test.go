// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
)

func readConfig(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestTheOperatorsRulesAreTheSame(t *testing.T) {
	var plain struct{ Groups any }
	var object struct{ Spec struct{ Groups any } }
	readConfig(t, "rules.yaml", &plain)
	readConfig(t, "prometheusrule.yaml", &object)
	if diff := cmp.Diff(plain.Groups, object.Spec.Groups); diff != "" || plain.Groups == nil {
		t.Errorf("prometheusrule.yaml is not rules.yaml (-rules +object):\n%s", diff)
	}
}

var (
	selector = regexp.MustCompile(`(tidewaiter_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z]+)(=~|=)"([^"]*)"`)
)

// TestWhatIsAskedForExists: alerts and dashboard ask for metrics, labels and buckets that there are.
func TestWhatIsAskedForExists(t *testing.T) {
	known := map[string]metrics.Definition{}
	for _, d := range slices.Concat(metrics.Manager(), metrics.Gateway()) {
		known[d.Name] = d
	}
	for _, name := range []string{"rules.yaml", "dashboard.json"} {
		var content any
		readConfig(t, name, &content)
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(string(text), `\"`, `"`)
		asked := selector.FindAllStringSubmatch(plain, -1)
		if len(asked) < 10 {
			t.Errorf("%s asks for %d metrics", name, len(asked))
		}
		for _, a := range asked {
			d, found := known[a[1]]
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				if base, is := known[strings.TrimSuffix(a[1], part)]; !found && is && base.Kind == metrics.Histogram {
					d, found = base, true
				}
			}
			if !found {
				t.Errorf("%s asks for %s, which there is not", name, a[1])
				continue
			}
			for _, m := range matcher.FindAllStringSubmatch(a[2], -1) {
				checkMatcher(t, name, d, m[1], m[3])
			}
		}
	}
}

// checkMatcher holds a label against its definition, and a bound against the buckets.
func checkMatcher(t *testing.T, name string, d metrics.Definition, label, value string) {
	t.Helper()
	if label == "le" {
		bound, err := strconv.ParseFloat(strings.TrimSuffix(value, "([.]0)?"), 64)
		if err != nil || !slices.Contains(d.Buckets, bound) {
			t.Errorf("%s asks for the bucket %s of %s, which has %v", name, value, d.Name, d.Buckets)
		}
		return
	}
	i := slices.IndexFunc(d.Labels, func(l metrics.Label) bool { return l.Name == label })
	if i < 0 {
		t.Errorf("%s asks for the label %s of %s", name, label, d.Name)
		return
	}
	for v := range strings.SplitSeq(value, "|") {
		if !strings.Contains(d.Labels[i].Values, v) {
			t.Errorf("%s asks for %s=%q of %s, which takes %s", name, label, v, d.Name, d.Labels[i].Values)
		}
	}
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestArchitecture reads every Go file of the module itself: a test that asked `go list` would be answered from the
// test cache after a violation was added, because the go command tracks files that a test opens, not what it runs.
func TestArchitecture(t *testing.T) {
	for _, problem := range check(rows(), readModule(t, "../..")) {
		t.Error(problem)
	}
}

// TestPodsLinkNoKubernetes follows imports from the programs that run in a Feature's pod: an API client beside the agent
// is a way to the API server, and 20 MB.
func TestPodsLinkNoKubernetes(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range readModule(t, "../..") {
		if !s.test() {
			imports[module+s.pkg] = append(imports[module+s.pkg], s.imports...)
		}
	}
	for _, program := range []string{"cmd/runner", "cmd/watchdog"} {
		if problem := reaches(imports, module+program, kubernetes); problem != "" {
			t.Errorf("%s must not link Kubernetes: %s", program, problem)
		}
	}
}

// gatewayLinks is what of ours the gateway is made of. Nothing of it is about the life of a Feature or about an agent beyond its traffic:
// what the gateway links can break it.
var gatewayLinks = []string{
	"api/v1alpha1", "cmd/gateway",
	"internal/app/gateway", "internal/app/process",
	"internal/core/answers", "internal/core/bounds", "internal/core/checks", "internal/core/compose", "internal/core/conversation", "internal/core/dialect",
	"internal/core/egress", "internal/core/failures", "internal/core/judge", "internal/core/ledger", "internal/core/models", "internal/core/plain",
	"internal/core/policy", "internal/core/protocol", "internal/core/secrets", "internal/core/sidecalls",
	"internal/gateway/backends", "internal/gateway/callers", "internal/gateway/egressproxy", "internal/gateway/ledger", "internal/gateway/modelserver",
	"internal/kube/modelbackends", "internal/kube/identity", "internal/kube/metrics", "internal/kube/pki", "internal/kube/supervisorpolicy", "internal/kube/templates",
	"internal/redacted", "internal/tunnel",
}

// TestGatewayLinks follows imports from the gateway.
func TestGatewayLinks(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range readModule(t, "../..") {
		if !s.test() {
			imports[module+s.pkg] = append(imports[module+s.pkg], s.imports...)
		}
	}
	for _, pkg := range gatewayLinks {
		if reaches(imports, module+"cmd/gateway", func(imported string) bool { return imported == module+pkg }) == "" {
			t.Errorf("cmd/gateway does not link %s any more: remove it from gatewayLinks", pkg)
		}
	}
	other := func(imported string) bool {
		own, ours := strings.CutPrefix(imported, module)
		return ours && !slices.Contains(gatewayLinks, own)
	}
	if problem := reaches(imports, module+"cmd/gateway", other); problem != "" {
		t.Errorf("what the gateway links is in gatewayLinks, and this is not: %s", problem)
	}
}

// kubernetes says whether a package is a Kubernetes library, or ours for it.
func kubernetes(pkg string) bool {
	own := strings.TrimPrefix(pkg, module)
	return matches([]string{"k8s.io/", "sigs.k8s.io/", "api/", "internal/kube/", "controllers/"}, own)
}

// reaches returns a chain of imports from a package to one that is refused, or "".
func reaches(imports map[string][]string, from string, refused func(string) bool) string {
	seen := map[string]bool{}
	var walk func(pkg string, chain []string) string
	walk = func(pkg string, chain []string) string {
		chain = append(slices.Clip(chain), strings.TrimPrefix(pkg, module))
		if refused(pkg) {
			return strings.Join(chain, " imports ")
		}
		if seen[pkg] {
			return ""
		}
		seen[pkg] = true
		for _, next := range imports[pkg] {
			if found := walk(next, chain); found != "" {
				return found
			}
		}
		return ""
	}
	return walk(from, nil)
}

// readModule parses the Go files below root, except those of other modules and of testdata.
func readModule(t *testing.T, root string) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && skipped(path, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(entry.Name(), ".go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		s, err := readFile(path)
		if err != nil {
			return err
		}
		s.pkg, s.name = filepath.ToSlash(dir), entry.Name()
		sources = append(sources, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatalf("no Go files below %s", root)
	}
	return sources
}

// skipped says whether a directory holds no packages of this module.
func skipped(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

func readFile(path string) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	return facts(file)
}

// facts are what the rules look at in a file.
func facts(file *ast.File) (source, error) {
	var s source
	timeName := ""
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return s, err
		}
		s.imports = append(s.imports, imported)
		if imported == "time" {
			timeName = "time"
			if spec.Name != nil {
				timeName = spec.Name.Name
			}
			if timeName == "." {
				s.acts = append(s.acts, "dot import of time")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			s.embeds = append(s.embeds, embedded(n)...)
		case *ast.GoStmt:
			s.acts = append(s.acts, "go statement")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clocks, n.Sel.Name) {
				s.acts = append(s.acts, "time."+n.Sel.Name)
			}
		}
		return true
	})
	return s, nil
}

// clocks are what package time has that looks at the clock or waits for it.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

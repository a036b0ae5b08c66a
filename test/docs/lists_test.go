// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestAddToAList runs the commands of the page about lists with kubectl: two directives stay, and the API server refuses a patch for a Feature that
// has changed since. What kubectl says then is what the page shows.
func TestAddToAList(t *testing.T) {
	page := pages(t)["docs/tasks/add-to-a-list.md"]
	var commands []string
	said := ""
	for _, match := range block.FindAllStringSubmatch(page, -1) {
		switch match[2] {
		case "sh":
			commands = append(commands, match[3])
		case "text":
			said = strings.TrimSpace(match[3])
		}
	}
	if len(commands) != 3 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	add, create, list := commands[0], commands[1], commands[2]
	feature := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{
		Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Agent: v1alpha1.Agent{Runtime: "worker"},
	}}
	feature.Name, feature.Namespace = "add-login", env.Project(t)
	if err := env.Client.Create(t.Context(), feature); err != nil {
		t.Fatal(err)
	}
	kubeconfig := adminConfig(t)
	run := func(commands string) (string, bool) {
		t.Helper()
		shell := exec.Command("sh", "-ec", strings.ReplaceAll(commands, "--namespace shop", "--namespace "+feature.Namespace))
		shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		return strings.TrimSpace(string(out)), err == nil
	}
	want := func(ids ...string) {
		t.Helper()
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(feature), feature); err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, d := range feature.Spec.Directives {
			have = append(have, d.ID)
		}
		if strings.Join(have, " ") != strings.Join(ids, " ") {
			t.Errorf("directives %q, want %q", have, ids)
		}
	}
	if out, ok := run(list); !ok || out != "" {
		t.Errorf("see that there is no list: %s", out)
	}
	if out, ok := run(add); ok || out != said {
		t.Errorf("without a list: %v, %q, and the page says %q", ok, out, said)
	}
	want()
	old := feature.ResourceVersion
	if out, ok := run(create); !ok {
		t.Errorf("create the list: %s", out)
	}
	want("use-dict")
	if out, ok := run(add); !ok {
		t.Errorf("add to the list: %s", out)
	}
	want("use-dict", "no-inline")
	for name, patch := range map[string]string{"add": add, "create": create} { // after the version was read, another user has changed the Feature
		_, patch, _ = strings.Cut(strings.ReplaceAll(patch, "no-inline", "third"), "\n")
		if out, ok := run("version=" + old + "\n" + patch); ok || out != said {
			t.Errorf("%s to an old version: %v, %q, and the page says %q", name, ok, out, said)
		}
		want("use-dict", "no-inline")
	}
	if out, ok := run(list); !ok || !strings.Contains(out, "use-dict") || !strings.Contains(out, "no-inline") {
		t.Errorf("see the list: %s", out)
	}
}

// adminConfig is a kubeconfig of an administrator.
func adminConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"test": {Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}}, CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a file with which another process connects as a service account of the system, with the rights that
// dist/install.yaml gives it, and returns its path.
func (e *Env) Kubeconfig(t testing.TB, serviceAccount string) string {
	t.Helper()
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: e.Config.Host, CertificateAuthorityData: e.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: e.Config.CertData, ClientKeyData: e.Config.KeyData,
			Impersonate:       "system:serviceaccount:" + SystemNamespace + ":" + serviceAccount,
			ImpersonateGroups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + SystemNamespace},
		}},
		Contexts: map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}}, CurrentContext: "test",
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(file, path); err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return path
}

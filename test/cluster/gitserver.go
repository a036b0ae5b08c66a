// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	gitName = "git"
	gitPort = 8443
	gitRoot = "/srv/git"
	// publicFile in a repository lets everybody read it (git-daemon(1)).
	publicFile = "git-daemon-export-ok"
)

// GitServer is a Git server in the cluster: smart HTTP over TLS with a password, its own CA.
type GitServer struct {
	cluster   *Cluster
	namespace string
	pod       string
	dir       string
	// Host as the cluster knows it.
	Host string
	// User, Password and CA belong in a Feature's Secret.
	User, Password string
	CA             []byte
}

// StartGitServer runs a Git server in a namespace of its own and waits until it answers. dir keeps the CA for the
// Git commands that this process runs.
func (c *Cluster) StartGitServer(ctx context.Context, namespace, dir string) (*GitServer, error) {
	if err := c.Project(ctx, namespace); err != nil {
		return nil, err
	}
	g := &GitServer{
		cluster: c, namespace: namespace, dir: dir, Host: gitName + "." + namespace + ".svc",
		User: "tidewaiter", Password: rand.Text(),
	}
	cert, key, err := selfSigned(g.Host, "localhost")
	if err != nil {
		return nil, fmt.Errorf("make the Git server's certificate: %w", err)
	}
	g.CA = cert
	if err := os.WriteFile(g.caFile(), cert, 0o600); err != nil {
		return nil, fmt.Errorf("keep the Git server's CA: %w", err)
	}
	for _, o := range g.objects(cert, key) {
		// A server of an earlier run has another certificate and password: it is replaced, not joined.
		if err := c.replace(ctx, o); err != nil {
			return nil, err
		}
	}
	return g, Until(ctx, "the Git server to answer", g.ready)
}

func (g *GitServer) ready(ctx context.Context) (bool, error) {
	var pods corev1.PodList
	if err := g.cluster.List(ctx, &pods, client.InNamespace(g.namespace), client.MatchingLabels{"app": gitName}); err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		for _, cond := range p.Status.Conditions {
			if p.DeletionTimestamp == nil && cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				g.pod = p.Name
				return true, nil
			}
		}
	}
	return false, nil
}

func (g *GitServer) objects(cert, key []byte) []client.Object {
	meta := metav1.ObjectMeta{Name: gitName, Namespace: g.namespace}
	labels := map[string]string{"app": gitName}
	return []client.Object{
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"tls.crt": cert, "tls.key": key, "password": []byte(g.Password)}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt(gitPort)}},
		}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: g.podSpec()},
		}},
	}
}

func (g *GitServer) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), FSGroup: ptr.To[int64](1000),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: gitName, Image: g.cluster.Image,
			Command: []string{
				"/usr/local/bin/gitserver", "--listen", fmt.Sprintf(":%d", gitPort), "--dir", gitRoot,
				"--cert", "/tls/tls.crt", "--key", "/tls/tls.key", "--user", g.User, "--password", "$(PASSWORD)",
			},
			Env: []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}, {Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: gitName}, Key: "password"},
			}}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(gitPort)}},
				PeriodSeconds: 1,
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "repositories", MountPath: gitRoot}, {Name: "tls", MountPath: "/tls"}, {Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "repositories", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: gitName}}},
		},
	}
}

// URL of a repository as a Feature names it.
func (g *GitServer) URL(repository string) string {
	return "https://" + g.Host + "/" + repository + ".git"
}

// Secret with the credentials for a Feature in the project.
func (g *GitServer) Secret(project, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: project},
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{"username": []byte(g.User), "password": []byte(g.Password), "ca.crt": g.CA},
	}
}

// CASecret has the server's CA and no credentials, for a repository that everybody may read.
func (g *GitServer) CASecret(project, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: project}, Data: map[string][]byte{"ca.crt": g.CA}}
}

// Publish makes a repository on the server and pushes every branch of the local one as it is, and its HEAD as main.
func (g *GitServer) Publish(ctx context.Context, local, repository string) error {
	if _, _, err := g.cluster.Exec(ctx, g.namespace, g.pod, gitName, nil, "git", "init", "--quiet", "--bare", "--initial-branch=main", gitRoot+"/"+repository+".git"); err != nil {
		return fmt.Errorf("make repository %s: %w", repository, err)
	}
	_, err := g.Git(ctx, local, repository, "push", "--quiet", "REMOTE", "HEAD:refs/heads/main")
	return err
}

// Open lets everybody read a repository without credentials.
func (g *GitServer) Open(ctx context.Context, repository string) error {
	if _, _, err := g.cluster.Exec(ctx, g.namespace, g.pod, gitName, nil, "touch", gitRoot+"/"+repository+".git/"+publicFile); err != nil {
		return fmt.Errorf("let everybody read repository %s: %w", repository, err)
	}
	return nil
}

// Hook has the server run a script before it takes a push to a repository.
func (g *GitServer) Hook(ctx context.Context, repository, script string) error {
	path := gitRoot + "/" + repository + ".git/hooks/pre-receive"
	_, _, err := g.cluster.Exec(ctx, g.namespace, g.pod, gitName, strings.NewReader(script), "sh", "-c", "cat > "+path+" && chmod +x "+path)
	if err != nil {
		return fmt.Errorf("make a hook of repository %s: %w", repository, err)
	}
	return nil
}

// Git runs a git command in dir against a repository of the server; the argument REMOTE stands for its address.
func (g *GitServer) Git(ctx context.Context, dir, repository string, args ...string) (string, error) {
	port, stop, err := g.cluster.Forward(g.namespace, g.pod, gitPort)
	if err != nil {
		return "", err
	}
	defer stop()
	remote := fmt.Sprintf("https://localhost:%d/%s.git", port, repository)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "REMOTE", remote)
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// The CA goes by the variable, because a machine that sets it overrides the configuration. HTTP/1.1 is for the reason that internal/pod/git gives.
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_SSL_CAINFO="+g.caFile(), "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=credential.helper", "GIT_CONFIG_VALUE_0=",
		"GIT_CONFIG_KEY_1=http.extraHeader", "GIT_CONFIG_VALUE_1="+basicAuth(g.User, g.Password),
		"GIT_CONFIG_KEY_2=http.version", "GIT_CONFIG_VALUE_2=HTTP/1.1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// Branch returns the commit that a branch points to on the server, or "" if there is no such branch.
func (g *GitServer) Branch(ctx context.Context, repository, branch string) (string, error) {
	out, err := g.Git(ctx, g.dir, repository, "ls-remote", "REMOTE", "refs/heads/"+branch)
	commit, _, _ := strings.Cut(out, "\t")
	return commit, err
}

// Mirror fetches everything that the server has into a fresh bare repository and returns its folder.
func (g *GitServer) Mirror(ctx context.Context, repository string) (string, error) {
	dir, err := os.MkdirTemp(g.dir, repository+"-*.git")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	_, err = g.Git(ctx, g.dir, repository, "clone", "--quiet", "--mirror", "REMOTE", dir)
	return dir, err
}

func (g *GitServer) caFile() string { return filepath.Join(g.dir, "git-ca.crt") }

// selfSigned makes a certificate that is its own CA, good for a day.
func selfSigned(names ...string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, certErr := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	pkcs8, keyErr := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

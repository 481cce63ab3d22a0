package pki

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestAuthorityStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first.PEM), string(second.PEM)); diff != "" {
		t.Errorf("the authority changed (-first +second):\n%s", diff)
	}
	if err := os.WriteFile(first.CertFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateAuthority(dir, "ca"); err == nil {
		t.Error("an invalid authority was accepted")
	}
}

func TestIssue(t *testing.T) {
	dir := t.TempDir()
	ca, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	for name, c := range map[string]struct {
		request Request
		usage   x509.ExtKeyUsage
		valid   bool
	}{
		"client":              {Request{CommonName: "jane", Organizations: []string{"ops"}}, x509.ExtKeyUsageClientAuth, true},
		"client as a server":  {Request{CommonName: "jane"}, x509.ExtKeyUsageServerAuth, false},
		"server":              {Request{CommonName: "s", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, x509.ExtKeyUsageServerAuth, true},
		"server as a client":  {Request{CommonName: "s", DNSNames: []string{"localhost"}}, x509.ExtKeyUsageClientAuth, true},
		"server under a name": {Request{CommonName: "s", DNSNames: []string{"localhost"}}, x509.ExtKeyUsageServerAuth, true},
	} {
		pair, err := ca.Issue(c.request)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(pair.Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{c.usage}})
		if (err == nil) != c.valid {
			t.Errorf("%s: verification error %v, want valid %t", name, err, c.valid)
		}
		if diff := cmp.Diff(c.request.Organizations, cert.Subject.Organization); diff != "" {
			t.Errorf("%s: groups (-want +got):\n%s", name, diff)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	ca, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(Request{CommonName: "a:b"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config")
	if err := WriteKubeconfig(file, Kubeconfig("https://127.0.0.1:1", "a:b", ca, pair)); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || string(config.CertData) != string(pair.Cert) ||
		string(config.KeyData) != string(pair.Key) || string(config.CAData) != string(ca.PEM) {
		t.Errorf("the kubeconfig differs from the arguments: %v", config)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := CheckKubeconfigFile(file); err != nil {
		t.Errorf("a file written by devcluster was rejected: %v", err)
	}
	if err := CheckKubeconfigFile(filepath.Join(dir, "missing")); err != nil {
		t.Errorf("a missing file was rejected: %v", err)
	}
	if err := os.WriteFile(file, []byte("kind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckKubeconfigFile(file); err == nil {
		t.Error("a file of the user was accepted")
	}
}

func TestSigningKeyStaysTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	var contents []string
	for range 2 {
		if err := EnsureSigningKey(file); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(content))
	}
	if contents[0] != contents[1] {
		t.Error("the key changed")
	}
}

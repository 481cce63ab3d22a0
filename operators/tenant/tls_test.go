package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// A Redis whose certificate an authority of one's own has signed is reached with the authority's certificate, and not without it.
func TestARedisWithACertificateOfOnesOwnAuthority(t *testing.T) {
	t.Parallel()
	authority, other := t.TempDir(), t.TempDir()
	certify(t, authority)
	certify(t, other)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	server := &servers.Redis{Dir: t.TempDir(), Settings: []string{
		"tls-port " + port, "tls-auth-clients no", "tls-cert-file " + filepath.Join(authority, "cert.pem"), "tls-key-file " + filepath.Join(authority, "key.pem"),
	}}
	t.Cleanup(func() { _ = server.Kill() })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect := func(bundle string) (cache, error) {
		declared := declaration{TenantBackend: &v1.TenantBackend{}, admin: &corev1.Secret{Data: map[string][]byte{
			"username": []byte(servers.RedisAdmin), "password": []byte(server.AdminPassword()),
		}}}
		declared.Spec.Cache = &v1.CacheBackend{Redis: &v1.Redis{Nodes: []string{address}, TLS: true, CABundle: bundle}}
		return new(connector).cached(t.Context(), declared)
	}
	for bundle, reached := range map[string]bool{certificateIn(t, authority): true, certificateIn(t, other): false, "": false} {
		made, err := connect(bundle)
		if err != nil {
			t.Fatal(err)
		}
		err = made.check(t.Context())
		if reached != (err == nil) || !reached && (!errors.Is(err, redis.ErrUnreachable) || !strings.Contains(err.Error(), "certificate")) {
			t.Errorf("reached: %v, want it: %t", err, reached)
		}
		if err := made.close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := connect("no certificate"); !errors.Is(err, errSetUp) || !strings.Contains(err.Error(), "caBundle") {
		t.Errorf("a bundle without a certificate: %v", err)
	}
}

func certificateIn(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// certify writes a key and a certificate for 127.0.0.1 that is its own authority.
func certify(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

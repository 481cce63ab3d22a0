// Package pki issues the credentials of a development cluster: two certificate
// authorities, certificates signed by them, the key that signs ServiceAccount
// tokens, and kubeconfigs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityValidity   = 10 * 365 * 24 * time.Hour
	certificateValidity = 365 * 24 * time.Hour
	// clockSkew is how long before its creation a certificate becomes valid.
	clockSkew = time.Hour
)

// Authority is a certificate authority with its private key.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the certificate of the authority, PEM encoded.
	PEM []byte
	// CertFile and KeyFile are the files of the authority.
	CertFile, KeyFile string
}

// Request describes a certificate to issue.
type Request struct {
	// CommonName is the user name in the API server.
	CommonName string
	// Organizations are the groups of the user in the API server.
	Organizations []string
	// DNSNames and IPs are the addresses of a server. If both are empty, the
	// certificate is valid only for clients.
	DNSNames []string
	IPs      []net.IP
}

// Pair is a certificate with its private key, both PEM encoded.
type Pair struct {
	Cert, Key []byte
}

// LoadOrCreateAuthority reads the authority called name from dir. It creates the
// authority if it does not exist.
func LoadOrCreateAuthority(dir, name string) (*Authority, error) {
	a := &Authority{
		CertFile: filepath.Join(dir, name+".crt"),
		KeyFile:  filepath.Join(dir, name+".key"),
	}
	err := a.load()
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create("devcluster " + name)
	}
	if err != nil {
		return nil, fmt.Errorf("read certificate authority %s: %w", a.CertFile, err)
	}
	return a, nil
}

func (a *Authority) load() error {
	certPEM, err := os.ReadFile(a.CertFile)
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(a.KeyFile)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return errors.New("certificate is not PEM encoded")
	}
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return err
	}
	if time.Now().Add(certificateValidity).After(a.cert.NotAfter) {
		return errors.New("certificate expires within a year")
	}
	if block, _ = pem.Decode(keyPEM); block == nil {
		return errors.New("key is not PEM encoded")
	}
	if a.key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		return err
	}
	a.PEM = certPEM
	return nil
}

func (a *Authority) create(commonName string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	a.key, a.PEM = key, encodeCert(der)
	// Write the key first, so that a certificate on disk implies a complete
	// authority.
	if err := os.WriteFile(a.KeyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(a.CertFile, a.PEM, 0o600)
}

// Issue creates a new key and a certificate for it.
func (a *Authority) Issue(r Request) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.DNSNames)+len(r.IPs) > 0 {
		usage = append(usage, x509.ExtKeyUsageServerAuth)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certificateValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  usage,
		DNSNames:     r.DNSNames,
		IPAddresses:  r.IPs,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("create certificate for %s: %w", r.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: encodeCert(der), Key: keyPEM}, nil
}

// Write writes the pair to the files name.crt and name.key in dir, with mode 0600.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}

// EnsureSigningKey creates a private key in file. If the file exists, it checks
// that the file contains a key. The key signs ServiceAccount tokens, so it must
// stay the same between runs.
func EnsureSigningKey(file string) error {
	if keyPEM, err := os.ReadFile(file); err == nil {
		block, _ := pem.Decode(keyPEM)
		if block == nil {
			return fmt.Errorf("read signing key %s: not PEM encoded", file)
		}
		if _, err := x509.ParseECPrivateKey(block.Bytes); err != nil {
			return fmt.Errorf("read signing key %s: %w", file, err)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, keyPEM, 0o600)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// Command program is what the tests run in Pods:
//
//	program version          asks the API server for its version, with the address, the authority and the token that the Pod has
//	program self             prints the variable GREETING, its user, and whether the image has CA certificates
//	program lookup NAME...   prints the addresses of each name, or the error
//	program webhook          serves an admission webhook that refuses everything, with the certificate in /tls
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount"

func main() {
	var text string
	var err error
	switch os.Args[1] {
	case "version":
		text, err = version("https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + "/version")
	case "self":
		text, err = self()
	case "lookup":
		text = lookup(os.Args[2:])
	case "webhook":
		err = http.ListenAndServeTLS(":8443", "/tls/tls.crt", "/tls/tls.key", http.HandlerFunc(refuse)) //nolint:gosec // It ends with its Pod.
	}
	if err != nil {
		fmt.Println("program:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

func self() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(authorities) {
		return "", fmt.Errorf("the image has no certificates: %w", err)
	}
	return os.Getenv("GREETING") + " as " + u.Username + ", " + u.Gid + " with certificates", nil
}

// lookup resolves names as Go programs do, with the search list of the Pod.
func lookup(names []string) string {
	var lines []string
	for _, name := range names {
		addresses, err := net.DefaultResolver.LookupHost(context.Background(), name)
		slices.Sort(addresses)
		text := strings.Join(addresses, " ")
		if failure, ok := errors.AsType[*net.DNSError](err); ok {
			text = failure.Err
		}
		lines = append(lines, name+": "+text)
	}
	return strings.Join(lines, "\n")
}

// refuse answers an AdmissionReview.
func refuse(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := map[string]any{"uid": review.Request.UID, "allowed": false, "status": map[string]any{"message": "refused in a Pod"}}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
}

func version(url string) (string, error) {
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return "", err
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return "", errors.New("the authority is no certificate")
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.Status, " ", string(body)), err
}

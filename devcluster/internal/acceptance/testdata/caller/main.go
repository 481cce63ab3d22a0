// Command caller asks the API server for its version, as a program in a Pod does: with the address, the authority and the token that the Pod has.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount"

func main() {
	text, err := version("https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + "/version")
	if err != nil {
		fmt.Println("caller:", err)
		os.Exit(1)
	}
	fmt.Println(text)
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

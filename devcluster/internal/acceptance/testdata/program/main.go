// Command program is what the tests run in Pods:
//
//	program version   asks the API server for its version, with the address, the authority and the token that the Pod has
//	program webhook   serves an admission webhook that refuses everything, with the certificate in /tls
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount"

func main() {
	var text string
	var err error
	if len(os.Args) > 1 && os.Args[1] == "webhook" {
		err = http.ListenAndServeTLS(":8443", "/tls/tls.crt", "/tls/tls.key", http.HandlerFunc(refuse)) //nolint:gosec // It ends with its Pod.
	} else {
		text, err = version("https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + "/version")
	}
	if err != nil {
		fmt.Println("program:", err)
		os.Exit(1)
	}
	fmt.Println(text)
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

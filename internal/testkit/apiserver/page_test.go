package apiserver_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A test cannot make the storage of a real API server forget a snapshot: the messages are those of its source code.
func TestAnExpiredContinueTokenOffersToContinueAtThePresent(t *testing.T) {
	server := start(t)
	defer server.Close()
	maps := coreOf(t, server).CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c"} {
		if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := maps.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	server.ExpireWatches()
	_, err = maps.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "continue parameter is too old") {
		t.Fatalf("the expired token gives %v", err)
	}
	status, _ := err.(apierrors.APIStatus)
	if _, err := maps.Create(t.Context(), configMap("ab"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := maps.List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Items) == 0 || rest.Items[0].Name != "ab" {
		t.Errorf("the token in the answer gives %v, %v, want the list from object ab on", rest, err)
	}
	_, err = maps.List(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("an old resource version gives %v", err)
	}
}

package kube_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

func (s shelf) digestKey(namespace string) kube.DigestKey {
	return kube.DigestKey{Client: s.user, Place: types.NamespacedName{Namespace: namespace, Name: identity}, Owner: identity}
}

func TestAllProcessesHaveOneDigestKey(t *testing.T) {
	s := newShelf(t)
	first, err := s.digestKey("default").Load(t.Context())
	must(t, err)
	again, err := s.digestKey("default").Load(t.Context())
	must(t, err)
	if len(first) != 32 || !bytes.Equal(first, again) {
		t.Errorf("the first key has %d bytes, the second read returned %d others", len(first), len(again))
	}
	elsewhere, err := s.digestKey("kube-system").Load(t.Context())
	must(t, err)
	if bytes.Equal(first, elsewhere) {
		t.Error("two keys are equal")
	}
}

// Two processes find no key and both create one: the slower one uses that of the faster one.
func TestARaceForTheDigestKeyEndsWithOne(t *testing.T) {
	s := newShelf(t)
	var faster []byte
	remove := s.server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && faster == nil {
			faster = []byte{}
			var err error
			if faster, err = s.digestKey("default").Load(t.Context()); err != nil {
				t.Error(err)
			}
		}
		next.ServeHTTP(w, r)
	})
	defer remove()
	slower, err := s.digestKey("default").Load(t.Context())
	must(t, err)
	if !bytes.Equal(faster, slower) {
		t.Error("each has its own key")
	}
}

func TestWithoutADigestKeyTheErrorNamesTheRemedy(t *testing.T) {
	s := newShelf(t)
	_, err := s.digestKey("nowhere").Load(t.Context())
	if !errors.Is(err, kube.ErrNoKey) || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "create the namespace") || !strings.Contains(err.Error(), "StateNamespace") {
		t.Errorf("no namespace: %v", err)
	}
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: identity, Namespace: "default"}, Data: map[string][]byte{"digest-key": []byte("short-and-foreign")},
	}
	must(t, s.user.Create(t.Context(), foreign))
	_, err = s.digestKey("default").Load(t.Context())
	if !errors.Is(err, kube.ErrNoKey) || !strings.Contains(err.Error(), "delete the Secret") || strings.Contains(err.Error(), "short-and-foreign") {
		t.Errorf("a Secret without a key: %v", err)
	}
}

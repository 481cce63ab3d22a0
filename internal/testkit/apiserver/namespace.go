package apiserver

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// How long the controller of namespaces waits before it deletes the content of one, and until it looks again while
// content is left.
const (
	namespaceGrace = 5 * time.Second
	namespaceRetry = 8 * time.Second
)

// What the controller manager creates in each namespace.
const (
	rootCertificate = "kube-root-ca.crt"
	defaultAccount  = "default"
)

// WithNamespaceContent gives each namespace what the controller manager of a real cluster creates in it, shortly after it
// is created: ConfigMap kube-root-ca.crt and ServiceAccount default. They are there again when they are deleted.
func WithNamespaceContent() Option {
	return func(s *Server) error {
		s.furnished = true
		return nil
	}
}

// furnish creates what each namespace has, where it is missing.
func (s *Server) furnish(tx *store.Tx, namespace string) error {
	if !s.furnished {
		return nil
	}
	certificate := store.Key{Resource: configMaps, Namespace: namespace, Name: rootCertificate}
	if tx.Get(certificate) == nil {
		object := s.newFurniture(certificate, "ConfigMap")
		object.SetAnnotations(map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the " +
			"kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
			"No other usage is guaranteed across distributions of Kubernetes clusters."})
		object.Object["data"] = map[string]any{"ca.crt": "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"}
		tx.Put(certificate, object)
		if err := s.written(tx, certificate, object, nil); err != nil {
			return err
		}
	}
	account := store.Key{Resource: accounts, Namespace: namespace, Name: defaultAccount}
	if tx.Get(account) != nil {
		return nil
	}
	object := s.newFurniture(account, "ServiceAccount")
	tx.Put(account, object)
	return s.written(tx, account, object, nil)
}

func (s *Server) newFurniture(key store.Key, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(s.now())
	return object
}

// furniture reports whether an object is one that each namespace has.
func furniture(key store.Key) bool {
	return key.Resource == configMaps && key.Name == rootCertificate || key.Resource == accounts && key.Name == defaultAccount
}

// emptyNamespace deletes the content of a namespace, and the namespace when nothing is left in it.
func (c *collector) emptyNamespace(w *write, key store.Key) error {
	if !c.empty(w, func(child store.Key) bool { return child.Namespace == key.Name }) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.demandAfter(key, namespaceRetry)
		return nil
	}
	object := w.tx.Get(key)
	if len(object.GetFinalizers()) == 0 {
		return c.server.deleted(w.tx, key, w.tx.Delete(key))
	}
	finalized := object.DeepCopy()
	unstructured.RemoveNestedField(finalized.Object, "spec", "finalizers")
	if reflect.DeepEqual(finalized.Object, object.Object) {
		return nil
	}
	w.tx.Put(key, finalized)
	return c.server.written(w.tx, key, finalized, object)
}

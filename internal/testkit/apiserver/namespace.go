package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	left := c.empty(w, func(child store.Key) bool { return child.Namespace == key.Name })
	if err := c.report(w, key, left); err != nil {
		return err
	}
	if len(left) > 0 {
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
	return c.server.replace(w.tx, key, finalized, object)
}

// replace writes an object if it differs from the one before.
func (s *Server) replace(tx *store.Tx, key store.Key, object, before *unstructured.Unstructured) error {
	if reflect.DeepEqual(object.Object, before.Object) {
		return nil
	}
	tx.Put(key, object)
	return s.written(tx, key, object, before)
}

// report writes into the status of a namespace what its deletion waits for.
func (c *collector) report(w *write, key store.Key, left []*unstructured.Unstructured) error {
	before := w.tx.Get(key)
	now := c.server.now()
	remaining, finalizers := map[string]int{}, map[string]int{}
	for _, object := range left {
		kind := object.GroupVersionKind()
		if k := c.server.kinds.byKind(kind); k != nil {
			remaining[k.GroupResource().String()]++
		}
		for _, finalizer := range object.GetFinalizers() {
			finalizers[finalizer]++
		}
	}
	conditions := []any{
		namespaceCondition(now, corev1.NamespaceDeletionDiscoveryFailure, "ResourcesDiscovered", "All resources successfully discovered"),
		namespaceCondition(now, corev1.NamespaceDeletionGVParsingFailure, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		namespaceCondition(now, corev1.NamespaceDeletionContentFailure, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		namespaceCondition(now, corev1.NamespaceContentRemaining, "ContentRemoved", "All content successfully removed"),
		namespaceCondition(now, corev1.NamespaceFinalizersRemaining, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
	if len(remaining) > 0 {
		conditions[3] = namespaceCondition(now, corev1.NamespaceContentRemaining, "SomeResourcesRemain",
			"Some resources are remaining: "+counted(remaining, "%s has %d resource instances"))
	}
	if len(finalizers) > 0 {
		conditions[4] = namespaceCondition(now, corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+counted(finalizers, "%s in %d resource instances"))
	}
	object := before.DeepCopy()
	known, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err := unstructured.SetNestedSlice(object.Object, keepTransitions(conditions, known), "status", "conditions"); err != nil {
		return err
	}
	return c.server.replace(w.tx, key, object, before)
}

func counted(numbers map[string]int, form string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		texts = append(texts, fmt.Sprintf(form, name, numbers[name]))
	}
	return strings.Join(texts, ", ")
}

// namespaceCondition is true for the reasons that say that something remains.
func namespaceCondition(now metav1.Time, of corev1.NamespaceConditionType, reason, message string) map[string]any {
	status := metav1.ConditionFalse
	if strings.HasPrefix(reason, "Some") {
		status = metav1.ConditionTrue
	}
	return map[string]any{
		"type": string(of), "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
}

// keepTransitions keeps the time of conditions whose status is as it was.
func keepTransitions(conditions, known []any) []any {
	for i, condition := range conditions {
		if i >= len(known) {
			break
		}
		is, _ := condition.(map[string]any)
		was, _ := known[i].(map[string]any)
		if is["status"] == was["status"] {
			is["lastTransitionTime"] = was["lastTransitionTime"]
		}
	}
	return conditions
}

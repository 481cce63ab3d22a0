package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// deleteOptions reads the options of a deletion from the body, or from the query.
func deleteOptions(q *request) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if err := parameters(q, options, "DeleteOptions", validation.ValidateDeleteOptions); err != nil {
		return nil, err
	}
	body, err := readJSON(q.Request)
	if err != nil || len(body) == 0 {
		return options, err
	}
	if err := utiljson.Unmarshal(body, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if refused := validation.ValidateDeleteOptions(options); len(refused) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", refused)
	}
	return options, nil
}

func (s *Server) delete(w http.ResponseWriter, q *request) error {
	options, err := deleteOptions(q)
	if err != nil {
		return err
	}
	var result any
	err = s.store.Do(func(tx *store.Tx) error {
		writing := s.writing(tx, q)
		writing.dryRun = writing.dryRun || slices.Contains(options.DryRun, metav1.DryRunAll)
		left, gone, err := writing.delete(q.key(), options)
		switch {
		case err != nil:
			return err
		case gone && !returnsDeleted(q.kind.Kind):
			result = deletedStatus(q, left)
		default:
			result = q.form.apply(left)
		}
		return nil
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, result)
	return nil
}

// returnsDeleted tells of the few kinds whose deletion is answered with the object.
func returnsDeleted(kind string) bool {
	return slices.Contains([]string{"Pod", "PersistentVolumeClaim", "Service", "ServiceAccount"}, kind)
}

func deletedStatus(q *request, last *unstructured.Unstructured) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: last.GetName(), Group: q.kind.Group, Kind: q.kind.Plural, UID: last.GetUID()},
	}
}

// delete deletes an object, or marks it as being deleted if something has to happen first.
func (w *write) delete(key store.Key, options *metav1.DeleteOptions) (left *unstructured.Unstructured, gone bool, err error) {
	stored := w.tx.Get(key)
	if stored == nil {
		return nil, false, apierrors.NewNotFound(w.kind.GroupResource(), key.Name)
	}
	if err := w.preconditions(stored, options.Preconditions); err != nil {
		return nil, false, err
	}
	if key.Resource == namespaces && slices.Contains([]string{"default", "kube-system", "kube-public"}, key.Name) {
		return nil, false, apierrors.NewForbidden(corev1.Resource(namespaces), key.Name, errors.New("this namespace may not be deleted"))
	}
	object := stored.DeepCopy()
	finalizers := w.finalizersFor(object, options)
	if key.Resource == definitions && object.GetDeletionTimestamp() == nil && !slices.Contains(finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		finalizers = append(finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	object.SetFinalizers(slices.Clip(finalizers))
	if len(finalizers) == 0 {
		object.SetFinalizers(nil)
	}
	seconds := gracePeriod(key, object, options)
	w.markDeleting(key, object, seconds)
	if len(finalizers) == 0 && key.Resource != namespaces && seconds == 0 {
		if w.dryRun {
			return view(w.kind, object), true, nil
		}
		last := stored.DeepCopy()
		if key.Resource == pods {
			last.SetDeletionTimestamp(object.GetDeletionTimestamp())
			last.SetDeletionGracePeriodSeconds(&seconds)
		}
		w.tx.DeleteAs(key, last)
		return view(w.kind, last), true, w.server.deleted(w.tx, key, last)
	}
	if w.dryRun || reflect.DeepEqual(object.Object, stored.Object) {
		return view(w.kind, object), false, nil
	}
	w.tx.Put(key, object)
	return view(w.kind, object), false, w.server.written(w.tx, key, object, stored)
}

func (w *write) preconditions(stored *unstructured.Unstructured, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	resource := schema.GroupResource{Group: w.kind.Group, Resource: w.kind.Kind}
	if wanted.UID != nil && *wanted.UID != stored.GetUID() {
		return apierrors.NewConflict(resource, stored.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*wanted.UID, stored.GetUID()))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(resource, stored.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*wanted.ResourceVersion, stored.GetResourceVersion()))
	}
	return nil
}

// finalizersFor are the object's finalizers, with those that the propagation asks for.
func (w *write) finalizersFor(object *unstructured.Unstructured, options *metav1.DeleteOptions) []string {
	wanted := ""
	if w.kind.Orphans {
		wanted = metav1.FinalizerOrphanDependents
	}
	for _, finalizer := range object.GetFinalizers() {
		if finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents {
			wanted = finalizer
		}
	}
	if options.PropagationPolicy != nil {
		wanted = map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
			metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		}[*options.PropagationPolicy]
	}
	//nolint:staticcheck // Old clients use it.
	if orphan := options.OrphanDependents; orphan != nil {
		wanted = map[bool]string{true: metav1.FinalizerOrphanDependents}[*orphan]
	}
	kept := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return finalizer != wanted && (finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents)
	})
	if wanted != "" && !slices.Contains(kept, wanted) {
		kept = append(kept, wanted)
	}
	return kept
}

// markDeleting marks an object as being deleted, after so many seconds of grace. A later deletion can shorten them.
func (w *write) markDeleting(key store.Key, object *unstructured.Unstructured, seconds int64) {
	since := object.GetDeletionTimestamp()
	requested := w.server.now().Time
	if since != nil {
		requested = since.Add(-time.Duration(grace(object)) * time.Second)
	}
	if since == nil || seconds != grace(object) {
		at := metav1.NewTime(requested.Add(time.Duration(seconds) * time.Second))
		object.SetDeletionTimestamp(&at)
	}
	if key.Resource != namespaces {
		object.SetDeletionGracePeriodSeconds(&seconds)
	}
	if since != nil {
		return
	}
	if object.GetGeneration() > 0 {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	terminating(key, object)
}

// gracePeriod returns how many seconds a pod that runs on a node exists after its deletion was requested. Everything else has none.
func gracePeriod(key store.Key, object *unstructured.Unstructured, options *metav1.DeleteOptions) int64 {
	node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	ended := phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	if key.Resource != pods || node == "" || ended {
		return 0
	}
	seconds, _, _ := unstructured.NestedInt64(object.Object, "spec", "terminationGracePeriodSeconds")
	running := object.GetDeletionGracePeriodSeconds()
	if running != nil {
		seconds = *running
	}
	if asked := options.GracePeriodSeconds; asked != nil && (running == nil || *asked < seconds) {
		return *asked
	}
	return seconds
}

func (s *Server) deleteCollection(w http.ResponseWriter, q *request) error {
	options, err := deleteOptions(q)
	if err != nil {
		return err
	}
	selecting, err := optionsOf(q.query)
	if err != nil {
		return err
	}
	chosen, err := selectionOf(q, selecting)
	if err != nil {
		return err
	}
	asked, err := pageOf(selecting, q.namespace)
	if err != nil {
		return err
	}
	var deleted listed
	err = s.store.Do(func(tx *store.Tx) error {
		writing := s.writing(tx, q)
		if deleted, err = asked.list(tx, chosen, selecting); err != nil {
			return err
		}
		for _, object := range deleted.objects {
			if _, _, err := writing.delete(writing.key(object.GetNamespace(), object.GetName()), options.DeepCopy()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, q.form.list(q.kind, deleted))
	return nil
}

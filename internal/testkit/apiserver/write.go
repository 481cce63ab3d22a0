package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

const (
	optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"
	// Names are generated with so many random characters, at most so long, and tried so often.
	randomLength, maxGenerated, nameAttempts = 5, 63, 8
)

// write is one write within a transaction.
type write struct {
	server      *Server
	tx          *store.Tx
	kind        *kind.Kind
	subresource string
	manager     string
	dryRun      bool
}

func (s *Server) writing(tx *store.Tx, q *request) *write {
	return &write{server: s, tx: tx, kind: q.kind, subresource: q.subresource, manager: q.manager(), dryRun: q.dryRun()}
}

func (w *write) key(namespace, name string) store.Key {
	return store.Key{Resource: w.kind.Resource(), Namespace: namespace, Name: name}
}

// create writes a new object as a client sent it.
func (w *write) create(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wipe(object)
	return w.insert(w.manage(nil, object))
}

// wipe takes out what only the server sets.
func wipe(object *unstructured.Unstructured) {
	for _, owned := range []string{"creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", owned)
	}
}

// insert writes a new object whose managed fields are known.
func (w *write) insert(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := w.admitNew(object); err != nil {
		return nil, err
	}
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(w.server.now())
	if object.GetName() == "" && object.GetGenerateName() != "" {
		w.generateName(object)
	}
	w.kind.Prepare(object, nil, "")
	refused := w.kind.Validate(object, nil, "")
	if len(refused) == 0 {
		refused = metavalidation.ValidateObjectMetaAccessor(object, w.kind.Namespaced, validate.PathSegment, field.NewPath("metadata"))
	}
	if len(refused) > 0 {
		return nil, apierrors.NewInvalid(w.kind.GroupKind(), object.GetName(), refused)
	}
	if err := w.checked(object); err != nil {
		return nil, err
	}
	if object.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	key := w.key(object.GetNamespace(), object.GetName())
	if existing := w.tx.Get(key); existing != nil {
		taken := apierrors.NewAlreadyExists(w.kind.GroupResource(), object.GetName())
		if existing.GetDeletionTimestamp() != nil {
			taken.ErrStatus.Message = "object is being deleted: " + taken.ErrStatus.Message
		}
		return nil, taken
	}
	if w.dryRun {
		return object, nil
	}
	stored := w.kind.Stored(object)
	if err := fits(w.kind, stored); err != nil {
		return nil, err
	}
	w.tx.Put(key, stored)
	return view(w.kind, stored), w.server.written(w.tx, key, stored, nil)
}

func (w *write) generateName(object *unstructured.Unstructured) {
	base := object.GetGenerateName()
	base = base[:min(len(base), maxGenerated-randomLength)]
	for range nameAttempts {
		object.SetName(base + utilrand.String(randomLength))
		if w.tx.Get(w.key(object.GetNamespace(), object.GetName())) == nil {
			return
		}
	}
}

// change is how an existing object is changed.
type change struct {
	namespace, name string
	// uid is the precondition of a PUT.
	uid types.UID
	// create allows to create the object if it does not exist.
	create bool
	// mutate makes the new object. It owns what it is given; of a missing object that is nil.
	mutate func(live *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// update changes an object. It reports whether the object was created.
func (w *write) update(c change) (result *unstructured.Unstructured, created bool, err error) {
	key := w.key(c.namespace, c.name)
	stored := w.tx.Get(key)
	if stored == nil {
		return w.updateMissing(c)
	}
	live := view(w.kind, stored)
	if c.uid != "" && c.uid != live.GetUID() {
		return nil, false, w.preconditionFailed(key, c.uid, live.GetUID())
	}
	object, err := c.mutate(live.DeepCopy())
	if err != nil {
		return nil, false, err
	}
	if err := w.checkVersion(object, live); err != nil {
		return nil, false, err
	}
	object.SetResourceVersion(live.GetResourceVersion())
	if err := w.settle(object, live); err != nil {
		return nil, false, err
	}
	keepTimestamps(object, live)
	if live.GetDeletionTimestamp() != nil && grace(live) == 0 && !held(key, object) {
		if w.dryRun {
			return object, false, nil
		}
		last := w.tx.Delete(key)
		return object, false, w.server.deleted(w.tx, key, last)
	}
	kept := w.kind.Stored(object)
	if w.dryRun || reflect.DeepEqual(kept.Object, stored.Object) {
		return object, false, nil
	}
	if err := fits(w.kind, kept); err != nil {
		return nil, false, err
	}
	kept = kept.DeepCopy()
	w.tx.Put(key, kept)
	return view(w.kind, kept), false, w.server.written(w.tx, key, kept, stored)
}

// held reports whether an object that is being deleted has finalizers left.
func held(key store.Key, object *unstructured.Unstructured) bool {
	if key.Resource == namespaces {
		own, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "finalizers")
		return len(own)+len(object.GetFinalizers()) > 0
	}
	return len(object.GetFinalizers()) > 0
}

func (w *write) updateMissing(c change) (*unstructured.Unstructured, bool, error) {
	if !c.create || w.subresource != "" {
		return nil, false, apierrors.NewNotFound(w.kind.GroupResource(), c.name)
	}
	object, err := c.mutate(nil)
	if err != nil {
		return nil, false, err
	}
	wipe(object)
	object.SetResourceVersion("") // It is compared with that of an object that exists, and there is none.
	result, err := w.insert(object)
	return result, err == nil, err
}

func (w *write) preconditionFailed(key store.Key, wanted, is types.UID) error {
	where := fmt.Sprintf("/registry/%s/%s/%s/%s", w.kind.Group, w.kind.Plural, key.Namespace, key.Name)
	return apierrors.NewConflict(w.kind.GroupResource(), key.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", where, wanted, is))
}

// checkVersion checks that the object was made from the live one.
func (w *write) checkVersion(object, live *unstructured.Unstructured) error {
	version := object.GetResourceVersion()
	number, err := strconv.ParseUint(version, 10, 64)
	switch {
	case version == live.GetResourceVersion() || version == "" && w.kind.Unconditional:
		return nil
	case version == "" || err == nil && number == 0:
		invalid := field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")
		named := w.kind.GroupKind()
		named.Kind = w.kind.Plural
		return apierrors.NewInvalid(named, live.GetName(), field.ErrorList{invalid})
	case err != nil:
		return apierrors.NewInvalid(w.kind.GroupKind(), live.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), version, err.Error()),
		})
	}
	return apierrors.NewConflict(w.kind.GroupResource(), live.GetName(), errors.New(optimisticLock))
}

// settle resets what the request may not change, and checks the rest.
func (w *write) settle(object, live *unstructured.Unstructured) error {
	if generation := live.GetGeneration(); generation != 0 {
		object.SetGeneration(generation)
	} else {
		unstructured.RemoveNestedField(object.Object, "metadata", "generation")
	}
	w.kind.Prepare(object, live, w.subresource)
	if object.GetUID() == "" {
		object.SetUID(live.GetUID())
	}
	object.SetCreationTimestamp(live.GetCreationTimestamp())
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		object.SetDeletionTimestamp(deleted)
	}
	if grace := live.GetDeletionGracePeriodSeconds(); grace != nil && object.GetDeletionGracePeriodSeconds() == nil {
		object.SetDeletionGracePeriodSeconds(grace)
	}
	metadata := field.NewPath("metadata")
	refused := metavalidation.ValidateObjectMetaAccessor(object, w.kind.Namespaced, validate.PathSegment, metadata)
	refused = append(refused, metavalidation.ValidateObjectMetaAccessorUpdate(object, live, metadata)...)
	refused = append(refused, w.kind.Validate(object, live, w.subresource)...)
	if len(refused) > 0 {
		return apierrors.NewInvalid(w.kind.GroupKind(), object.GetName(), refused)
	}
	return w.checked(object)
}

// keepTimestamps makes a write that changes nothing but the times of managed fields one that changes nothing.
func keepTimestamps(object, live *unstructured.Unstructured) {
	const managed = "managedFields"
	is, was := object.Object["metadata"], live.Object["metadata"]
	metadata, _ := is.(map[string]any)
	before, _ := was.(map[string]any)
	if !sameManagers(metadata[managed], before[managed]) {
		return
	}
	compared, kept := maps.Clone(object.Object), maps.Clone(metadata)
	if fields, found := before[managed]; found {
		kept[managed] = fields
	}
	compared["metadata"] = kept
	if reflect.DeepEqual(compared, live.Object) {
		object.Object = live.DeepCopy().Object
	}
}

// sameManagers compares managed fields but for their times.
func sameManagers(is, was any) bool {
	some, _ := is.([]any)
	others, _ := was.([]any)
	return slices.EqualFunc(some, others, func(a, b any) bool {
		one, _ := a.(map[string]any)
		other, _ := b.(map[string]any)
		one, other = maps.Clone(one), maps.Clone(other)
		delete(one, "time")
		delete(other, "time")
		return reflect.DeepEqual(one, other)
	})
}

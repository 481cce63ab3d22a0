package apiserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// tooLargeRetry is when a client that is ahead of the server may ask again, in seconds.
const tooLargeRetry = 1

// selection is which objects a client asks for.
type selection struct {
	kind      *kind.Kind
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (s selection) matches(object *unstructured.Unstructured) bool {
	if object == nil || s.namespace != "" && object.GetNamespace() != s.namespace {
		return false
	}
	return s.labels.Matches(labels.Set(object.GetLabels())) && (s.fields.Empty() || s.fields.Matches(s.kind.Fields(object)))
}

func optionsOf(query url.Values) (*internalversion.ListOptions, error) {
	options := &internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(options, true)
	if refused := validation.ValidateListOptions(options, true); len(refused) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", refused)
	}
	return options, nil
}

func selectionOf(q *request, options *internalversion.ListOptions) (selection, error) {
	chosen := selection{kind: q.kind, namespace: q.namespace, labels: labels.Everything(), fields: fields.Everything()}
	if options.LabelSelector != nil {
		chosen.labels = options.LabelSelector
	}
	if options.FieldSelector != nil {
		chosen.fields = options.FieldSelector
	}
	for _, requirement := range chosen.fields.Requirements() {
		if !q.kind.Selects(requirement.Field) {
			return selection{}, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
	}
	return chosen, nil
}

// revisionOf reads a resource version: zero for none and for "0".
func revisionOf(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", version, err)
	}
	return int64(revision), nil
}

// notAhead refuses versions that do not exist yet.
func notAhead(revision, current int64) error {
	if revision <= current {
		return nil
	}
	ahead := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), tooLargeRetry)
	ahead.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return ahead
}

func (s *Server) get(w http.ResponseWriter, q *request) error {
	revision, err := revisionOf(q.query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	var found *unstructured.Unstructured
	err = s.store.Do(func(tx *store.Tx) error {
		if err := notAhead(revision, tx.Revision()); err != nil {
			return err
		}
		stored := tx.Get(q.key())
		if stored == nil {
			return apierrors.NewNotFound(q.kind.GroupResource(), q.name)
		}
		found = view(q.kind, stored)
		return nil
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, q.form.apply(found))
	return nil
}

// Objects returns a copy of each object that is stored, without a request: by API version and kind, in the order of their names. An object with
// several served versions has the last one, in alphabetical order.
func (s *Server) Objects() []unstructured.Unstructured {
	kinds := slices.Clone(s.kinds.all())
	slices.SortStableFunc(kinds, func(a, b *kind.Kind) int { return cmp.Compare(a.GroupVersion().String(), b.GroupVersion().String()) })
	last := map[string]*kind.Kind{}
	for _, k := range kinds {
		last[k.Resource()] = k
	}
	var found []unstructured.Unstructured
	_ = s.store.Do(func(tx *store.Tx) error { // It does not fail.
		for _, k := range kinds {
			if last[k.Resource()] != k {
				continue
			}
			for _, stored := range tx.List(k.Resource(), "") {
				found = append(found, *view(k, stored).DeepCopy())
			}
		}
		return nil
	})
	return found
}

// view shows a stored object in the version of the kind.
func view(k *kind.Kind, stored *unstructured.Unstructured) *unstructured.Unstructured {
	revision, _ := strconv.ParseInt(stored.GetResourceVersion(), 10, 64)
	return k.View(stored, revision)
}

func (s *Server) list(w http.ResponseWriter, q *request) error {
	options, err := optionsOf(q.query)
	if err != nil {
		return err
	}
	chosen, err := selectionOf(q, options)
	if err != nil {
		return err
	}
	asked, err := pageOf(options, q.namespace)
	if err != nil {
		return err
	}
	var found listed
	err = s.store.Do(func(tx *store.Tx) error {
		found, err = asked.list(tx, chosen, options)
		return err
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, q.form.list(q.kind, found))
	return nil
}

// list shows the objects chosen.
func (s selection) list(tx *store.Tx) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, stored := range tx.List(s.kind.Resource(), s.namespace) {
		if seen := view(s.kind, stored); s.matches(seen) {
			found = append(found, seen)
		}
	}
	return found
}

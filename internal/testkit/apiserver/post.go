package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// parameters reads the options in a query.
func parameters[T runtime.Object](q *request, options T, kind string, check func(T) field.ErrorList) error {
	if err := scheme.ParameterCodec.DecodeParameters(q.query, metav1.SchemeGroupVersion, options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if refused := check(options); len(refused) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", refused)
	}
	return nil
}

func (s *Server) post(w http.ResponseWriter, q *request) error {
	if err := parameters(q, &metav1.CreateOptions{}, "CreateOptions", validation.ValidateCreateOptions); err != nil {
		return err
	}
	object, warnings, err := readObject(q)
	if err != nil {
		return err
	}
	var result *unstructured.Unstructured
	err = s.store.Do(func(tx *store.Tx) error {
		result, err = s.writing(tx, q).create(object)
		return err
	})
	if err != nil {
		return err
	}
	warn(w, warnings)
	respond(w, http.StatusCreated, q.form.apply(result))
	return nil
}

func (s *Server) put(w http.ResponseWriter, q *request) error {
	if err := parameters(q, &metav1.UpdateOptions{}, "UpdateOptions", validation.ValidateUpdateOptions); err != nil {
		return err
	}
	object, warnings, err := readObject(q)
	if err != nil {
		return err
	}
	if err := hasName(object, q.name); err != nil {
		return err
	}
	var result *unstructured.Unstructured
	var created bool
	err = s.store.Do(func(tx *store.Tx) error {
		writing := s.writing(tx, q)
		result, created, err = writing.update(change{
			namespace: q.namespace, name: q.name, uid: object.GetUID(), create: q.kind.CreateOnUpdate,
			mutate: func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return writing.manage(live, object), nil
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	warn(w, warnings)
	respond(w, code(created), q.form.apply(result))
	return nil
}

func code(created bool) int { //nolint:revive // It is the answer's code, not a mode.
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// manage notes who has changed what.
func (w *write) manage(live, object *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		live = w.kind.New()
	}
	managed, is := w.kind.Manager(w.subresource).UpdateNoErrors(live, object, w.manager).(*unstructured.Unstructured)
	if !is {
		return object
	}
	return managed
}

func (s *Server) patch(w http.ResponseWriter, q *request) error {
	patchType := types.PatchType(mediaType(q.Request))
	supported := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if !q.kind.Custom() {
		supported = append(supported, string(types.StrategicMergePatchType))
	}
	supported = append(supported, string(types.ApplyYAMLPatchType))
	known := false
	for _, accepted := range supported {
		known = known || accepted == string(patchType)
	}
	if !known {
		return unsupported(supported...)
	}
	body, err := readBody(q.Request)
	if err != nil {
		return err
	}
	options := &metav1.PatchOptions{}
	err = parameters(q, options, "PatchOptions", func(o *metav1.PatchOptions) field.ErrorList {
		return validation.ValidatePatchOptions(o, patchType)
	})
	if err != nil {
		return err
	}
	p := &patcher{request: q, options: options, patchType: patchType, body: body}
	if err := p.check(); err != nil {
		return err
	}
	var result *unstructured.Unstructured
	var created bool
	err = s.store.Do(func(tx *store.Tx) error {
		p.write = s.writing(tx, q)
		result, created, err = p.write.update(change{
			namespace: q.namespace, name: q.name, create: patchType == types.ApplyYAMLPatchType, mutate: p.apply,
		})
		return err
	})
	if err != nil {
		return err
	}
	warn(w, p.warnings)
	respond(w, code(created), q.form.apply(result))
	return nil
}

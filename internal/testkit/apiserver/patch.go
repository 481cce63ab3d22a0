package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// patcher applies the patch in a request.
type patcher struct {
	request   *request
	options   *metav1.PatchOptions
	patchType types.PatchType
	body      []byte
	write     *write
	warnings  []string
}

// check refuses a body that is no patch of its type, whatever it is applied to.
func (p *patcher) check() error {
	switch {
	case json.Valid(p.body):
		return nil
	case p.patchType == types.ApplyYAMLPatchType:
		return apierrors.NewBadRequest("the API server for tests reads a server-side apply as JSON only, as client libraries send it")
	}
	return apierrors.NewBadRequest("invalid JSON patch")
}

// apply makes the patched object of the live one.
func (p *patcher) apply(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var patched *unstructured.Unstructured
	var err error
	switch p.patchType {
	case types.ApplyYAMLPatchType:
		patched, err = p.serverSide(live)
	default:
		patched, err = p.text(live)
	}
	if err != nil {
		return nil, err
	}
	if uid := patched.GetUID(); live == nil && uid != "" {
		return nil, apierrors.NewConflict(p.request.kind.GroupResource(), p.request.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := inNamespace(patched, p.request.namespace); err != nil {
		return nil, err
	}
	return patched, hasName(patched, p.request.name)
}

// text patches the object's text.
func (p *patcher) text(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(live.Object)
	if err != nil {
		return nil, err
	}
	patched, problems, err := p.patchText(text)
	if err != nil {
		return nil, err
	}
	object, more, err := decode(p.request.kind, patched)
	if err == nil {
		p.warnings, err = strictnessOf(p.request.query).judge(append(problems, more...))
	}
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(patched), err.Error()),
		})
	}
	return p.write.manage(live, object), nil
}

func (p *patcher) patchText(text []byte) (patched []byte, problems []string, err error) {
	switch p.patchType {
	case types.JSONPatchType:
		return p.jsonPatch(text)
	case types.MergePatchType:
		problems, err = p.strict(&map[string]any{})
		if err != nil {
			return nil, nil, err
		}
		patched, err = jsonpatch.MergePatch(text, p.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, problems, err
	default:
		patched, err = p.strategic(text)
		return patched, nil, err
	}
}

// strict tells what is odd about the patch itself.
func (p *patcher) strict(into any) ([]string, error) {
	problems, err := kjson.UnmarshalStrict(p.body, into)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	var texts []string
	for _, problem := range problems {
		texts = append(texts, "json patch "+problem.Error())
	}
	return texts, nil
}

func (p *patcher) jsonPatch(text []byte) (patched []byte, problems []string, err error) {
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	if strictnessOf(p.request.query) != metav1.FieldValidationIgnore {
		if problems, err = p.strict(&operations); err != nil {
			return nil, nil, err
		}
	}
	patch, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	patched, err = patch.Apply(text)
	if err != nil {
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", emptyResource(), "", err.Error(), 0, false)
	}
	return patched, problems, nil
}

func (p *patcher) strategic(text []byte) ([]byte, error) {
	var change map[string]any
	if err := utiljson.Unmarshal(p.body, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	patched, err := strategicpatch.StrategicMergePatch(text, p.body, p.request.kind.Example)
	switch {
	case err == nil:
		return patched, nil
	case mergepatch.IsPreconditionFailed(err), errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList):
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", emptyResource(), "", err.Error(), 0, false)
}

// serverSide is server-side apply.
func (p *patcher) serverSide(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(p.body, &applied.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if live == nil {
		live = p.request.kind.New()
	}
	force := p.options.Force != nil && *p.options.Force
	merged, err := p.request.kind.Manager(p.request.subresource).Apply(live, applied, p.options.FieldManager, force)
	if err != nil {
		return nil, err
	}
	object, is := merged.(*unstructured.Unstructured)
	if !is {
		return live, nil
	}
	if strictnessOf(p.request.query) == metav1.FieldValidationStrict {
		if err := yaml.UnmarshalStrict(p.body, &map[string]any{}); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
	}
	return object, nil
}

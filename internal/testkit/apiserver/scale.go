package apiserver

import (
	"encoding/json"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

func scaleKind() schema.GroupVersionKind { return autoscalingv1.SchemeGroupVersion.WithKind("Scale") }

// scale serves the number of replicas of a workload.
func (s *Server) scale(w http.ResponseWriter, q *request) error {
	if q.Method != http.MethodGet && q.Method != http.MethodPut && q.Method != http.MethodPatch {
		return apierrors.NewMethodNotSupported(q.kind.GroupResource(), q.Method)
	}
	var body []byte
	var err error
	if q.Method != http.MethodGet {
		if body, err = readBody(q.Request); err != nil {
			return err
		}
	}
	var result *unstructured.Unstructured
	err = s.store.Do(func(tx *store.Tx) error {
		if q.Method == http.MethodGet {
			if result = tx.Get(q.key()); result == nil {
				return apierrors.NewNotFound(q.kind.GroupResource(), q.name)
			}
			return nil
		}
		writing := s.writing(tx, q)
		result, _, err = writing.update(change{
			namespace: q.namespace, name: q.name,
			mutate: func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				object, err := scaled(q, live, body)
				if err != nil {
					return nil, err
				}
				return writing.manage(live, object), nil
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	shown, err := scaleOf(result)
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, shown)
	return nil
}

// scaled is the object with the replicas that the request asks for.
func scaled(q *request, live *unstructured.Unstructured, body []byte) (*unstructured.Unstructured, error) {
	before, err := scaleOf(live)
	if err != nil {
		return nil, err
	}
	if body, err = scaleText(q, before, body); err != nil {
		return nil, err
	}
	asked := &autoscalingv1.Scale{}
	if err := json.Unmarshal(body, asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if asked.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(scaleKind().GroupKind(), q.name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), asked.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	object := live.DeepCopy()
	object.SetResourceVersion(asked.ResourceVersion)
	return object, unstructured.SetNestedField(object.Object, int64(asked.Spec.Replicas), "spec", "replicas")
}

// scaleText is the Scale that a request asks for.
func scaleText(q *request, before *autoscalingv1.Scale, body []byte) ([]byte, error) {
	if q.Method == http.MethodPut {
		return body, nil
	}
	text, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	switch types.PatchType(mediaType(q.Request)) {
	case types.MergePatchType, types.StrategicMergePatchType:
		text, err = jsonpatch.MergePatch(text, body)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(text)
		}
	default:
		return nil, unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return text, nil
}

func scaleOf(object *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
	var read struct {
		Spec struct {
			Replicas int32                 `json:"replicas"`
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
		Status struct {
			Replicas int32 `json:"replicas"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(read.Spec.Selector)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: autoscalingv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
			ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: read.Spec.Replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: read.Status.Replicas, Selector: selector.String()},
	}, nil
}

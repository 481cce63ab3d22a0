package einmal

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/crd"
)

// Resource is a kind made of two structs, for operators in one file: it needs no generated code and no API package.
// Give its name to For with the option GVK, which also registers the kind and its list in the operator's scheme. If the
// option CRDs does not define the kind, the command crds prints a definition of a namespaced kind whose spec and status
// accept all fields.
//
//	type Greeting = einmal.Resource[GreetingSpec, GreetingStatus]
//
//	greetings := einmal.For[Greeting](op, einmal.GVK("example.com", "v1", "Greeting"))
//
// Embed Records in Status to keep the record of an object there. Otherwise it is kept in an annotation.
//
// The fields of Spec and Status are plain data, exported and with JSON names. They are copied by reflection, or by
// their DeepCopyInto if they have one. A copy of an object with some twenty fields takes about 9 µs, half of what a
// round trip through JSON takes. Each kind needs its own structs.
type Resource[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec Spec `json:"spec,omitempty"`
	// Status is the observed state.
	Status Status `json:"status,omitempty"`
}

// DeepCopyInto copies the object into out.
func (r *Resource[Spec, Status]) DeepCopyInto(out *Resource[Spec, Status]) {
	out.TypeMeta = r.TypeMeta
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	copyValue(reflect.ValueOf(&out.Spec).Elem(), reflect.ValueOf(&r.Spec).Elem())
	copyValue(reflect.ValueOf(&out.Status).Elem(), reflect.ValueOf(&r.Status).Elem())
}

// DeepCopy returns a copy of the object, nil for nil.
func (r *Resource[Spec, Status]) DeepCopy() *Resource[Spec, Status] {
	if r == nil {
		return nil
	}
	out := new(Resource[Spec, Status])
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject returns a copy of the object.
func (r *Resource[Spec, Status]) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// emptyList returns an empty list of the kind.
func (r *Resource[Spec, Status]) emptyList() client.ObjectList { return &ResourceList[Spec, Status]{} }

// ResourceList is a list of Resources, for Change.Client.
type ResourceList[Spec, Status any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects.
	Items []Resource[Spec, Status] `json:"items"`
}

// DeepCopyObject returns a copy of the list.
func (l *ResourceList[Spec, Status]) DeepCopyObject() runtime.Object {
	out := &ResourceList[Spec, Status]{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Resource[Spec, Status], len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// nameless is a Go type that can stand for any kind: a Resource.
type nameless interface {
	client.Object
	emptyList() client.ObjectList
}

// kindOf returns the group, version and kind of a Go type. named is the value of the option GVK, or empty. Errors name
// the remedy.
func (op *Operator) kindOf(of client.Object, named schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if resource, is := of.(nameless); is {
		return named, op.register(resource, named)
	}
	_, free := of.(*unstructured.Unstructured)
	switch {
	case named.Empty():
		found, err := apiutil.GVKForObject(of, op.scheme)
		if err != nil {
			return found, fmt.Errorf("%w; add its package with einmal.Scheme, or name it with einmal.GVK", err)
		}
		return found, nil
	case free:
		return named, nil
	}
	registered, _, err := op.scheme.ObjectKinds(of)
	if err != nil {
		return named, fmt.Errorf("option GVK: %w; add its package with einmal.Scheme", err)
	}
	if slices.Contains(registered, named) {
		return named, nil
	}
	return named, fmt.Errorf("option GVK: the Go type is registered as %s, not as %s: leave the option out, or use the Go type of that kind", registered[0], named)
}

// register adds a Resource and its list to the scheme under a name.
func (op *Operator) register(resource nameless, name schema.GroupVersionKind) error {
	if name.Group == "" || name.Version == "" || name.Kind == "" {
		return errors.New("a Resource has no kind of its own: give its group, version and kind with einmal.GVK")
	}
	if before, _, err := op.scheme.ObjectKinds(resource); err == nil && before[0] != name {
		return fmt.Errorf("option GVK: the structs of this Resource are already registered as %s and cannot also be %s: use separate structs for each kind", before[0], name)
	}
	if known, is := op.scheme.AllKnownTypes()[name]; is && known != reflect.TypeOf(resource).Elem() {
		return fmt.Errorf("option GVK: %s is already registered with the Go type %s: use that type, or another name", name, known)
	}
	op.scheme.AddKnownTypeWithName(name, resource)
	op.scheme.AddKnownTypeWithName(name.GroupVersion().WithKind(name.Kind+"List"), resource.emptyList())
	metav1.AddToGroupVersion(op.scheme, name.GroupVersion())
	return nil
}

// definitions returns the operator's CustomResourceDefinitions: those of the option CRDs, and a generated one for each
// Resource that has none there.
func (op *Operator) definitions() ([][]byte, error) {
	if op.undefined != nil {
		return nil, op.undefined
	}
	all := op.crds.Manifests()
	for _, declared := range op.kinds {
		if !op.definesItself(declared) {
			continue
		}
		text, err := crd.Open(declared.kind.GVK)
		if err != nil {
			return nil, err //nolint:wrapcheck // It names the kind.
		}
		all = append(all, text)
	}
	return all, nil
}

// resources returns the kinds that the operator's CustomResourceDefinitions define.
func (op *Operator) resources() map[schema.GroupKind]crd.Resource {
	all := op.crds.Resources()
	for _, declared := range op.kinds {
		if op.definesItself(declared) {
			all[declared.kind.GVK.GroupKind()] = crd.ResourceOf(declared.kind.GVK)
		}
	}
	return all
}

// definesItself reports whether the kind is a Resource without a definition in the option CRDs.
func (op *Operator) definesItself(declared *declaredKind) bool {
	_, is := declared.kind.New().(nameless)
	return is && !op.crds.Has(declared.kind.GVK.GroupKind())
}

// copyValue makes a deep copy of a value. Both values are addressable and have the same type. Unexported fields are
// copied by assignment.
func copyValue(out, in reflect.Value) {
	if copiedByItself(out, in) {
		return
	}
	out.Set(in)
	switch in.Kind() { //nolint:exhaustive // The others refer to nothing.
	case reflect.Struct:
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				copyValue(out.Field(i), in.Field(i))
			}
		}
	case reflect.Array:
		for i := range in.Len() {
			copyValue(out.Index(i), in.Index(i))
		}
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if !in.IsNil() {
			copyReferred(out, in)
		}
	}
}

// copiedByItself copies a value with the DeepCopyInto of its type. It reports whether there is one.
func copiedByItself(out, in reflect.Value) bool {
	if in.Type().PkgPath() == "" || reflect.PointerTo(in.Type()).NumMethod() == 0 {
		return false // Looking up a method by name would cost time.
	}
	own := in.Addr().MethodByName("DeepCopyInto")
	if !own.IsValid() || own.Type().NumIn() != 1 || own.Type().In(0) != out.Addr().Type() {
		return false
	}
	own.Call([]reflect.Value{out.Addr()})
	return true
}

// copyReferred makes a deep copy of what a pointer, interface, slice or map refers to.
func copyReferred(out, in reflect.Value) {
	switch in.Kind() { //nolint:exhaustive // Only these refer to something.
	case reflect.Pointer:
		out.Set(reflect.New(in.Type().Elem()))
		copyValue(out.Elem(), in.Elem())
	case reflect.Interface:
		out.Set(copied(in.Elem()))
	case reflect.Slice:
		out.Set(reflect.MakeSlice(in.Type(), in.Len(), in.Len()))
		for i := range in.Len() {
			copyValue(out.Index(i), in.Index(i))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(in.Type(), in.Len()))
		for entries := in.MapRange(); entries.Next(); {
			out.SetMapIndex(entries.Key(), copied(entries.Value()))
		}
	}
}

// copied returns a deep copy of a value that is not addressable.
func copied(in reflect.Value) reflect.Value {
	from, to := reflect.New(in.Type()).Elem(), reflect.New(in.Type()).Elem()
	from.Set(in)
	copyValue(to, from)
	return to
}

// Records is a field for the status of a kind, in which operators store their records of an object, by operator
// identity. Embed it inline:
//
//	type ClaimStatus struct {
//		einmal.Records `json:",inline"`
//		Phase string `json:"phase,omitempty"`
//	}
//
// With it, the status of an object and its record are written in one request, and the record survives kubectl replace.
// Without it, the record is stored in the annotation <identity>/record. Handlers never see the record.
//
// +kubebuilder:object:generate=false
type Records struct {
	// Records belongs to the operators that handle this object. Do not change it.
	// +optional
	Records map[string]string `json:"records,omitempty"`
}

// DeepCopyInto copies r into out. Generated deep copies of types that embed Records call it.
func (r *Records) DeepCopyInto(out *Records) { out.Records = maps.Clone(r.Records) }

// DeepCopy returns a copy of r, nil for nil.
func (r *Records) DeepCopy() *Records {
	if r == nil {
		return nil
	}
	out := new(Records)
	r.DeepCopyInto(out)
	return out
}

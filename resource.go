package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Resource is a kind made of two structs, for operators of one file: nothing is generated, and no API package is written. Give
// For its name with GVK; it is then known to the operator's scheme, with its list. Where the option CRDs has no definition of
// it, the verb crds prints a namespaced one, whose spec and status may hold anything.
//
//	type Greeting = einmal.Resource[GreetingSpec, GreetingStatus]
//
//	greetings := einmal.For[Greeting](op, einmal.GVK("example.com", "v1", "Greeting"))
//
// Embed Records in Status, so that the record of an object is kept there; else it is kept in an annotation. The fields of Spec
// and Status are plain data, exported and with JSON names. They are copied by reflection, or by their DeepCopyInto if they
// have one: a copy of an object of some twenty fields takes about 9 µs, half of what a round trip through JSON would.
//
// Each kind needs structs of its own.
type Resource[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec Spec `json:"spec,omitempty"`
	// Status is what is there.
	Status Status `json:"status,omitempty"`
}

// DeepCopyInto copies the object into another.
func (r *Resource[Spec, Status]) DeepCopyInto(out *Resource[Spec, Status]) {
	out.TypeMeta = r.TypeMeta
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	copyValue(reflect.ValueOf(&out.Spec).Elem(), reflect.ValueOf(&r.Spec).Elem())
	copyValue(reflect.ValueOf(&out.Status).Elem(), reflect.ValueOf(&r.Status).Elem())
}

// DeepCopy copies the object; nil stays nil.
func (r *Resource[Spec, Status]) DeepCopy() *Resource[Spec, Status] {
	if r == nil {
		return nil
	}
	out := new(Resource[Spec, Status])
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies the object.
func (r *Resource[Spec, Status]) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// emptyList is an empty list of such objects.
func (r *Resource[Spec, Status]) emptyList() client.ObjectList { return &ResourceList[Spec, Status]{} }

// ResourceList is a list of Resources, for Change.Client.
type ResourceList[Spec, Status any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects.
	Items []Resource[Spec, Status] `json:"items"`
}

// DeepCopyObject copies the list.
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

// nameless is a Go type without a kind of its own: a Resource.
type nameless interface {
	client.Object
	emptyList() client.ObjectList
}

// kindOf finds what kind a Go type stands for; named is what the option GVK says, if it is there. What is wrong comes with its
// remedy.
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
	return named, fmt.Errorf("option GVK: its package says that it is %s, not %s; leave the option out, or use the type of that kind", registered[0], named)
}

// register makes a Resource and its list known under a name.
func (op *Operator) register(resource nameless, name schema.GroupVersionKind) error {
	if name.Group == "" || name.Version == "" || name.Kind == "" {
		return errors.New("a Resource has no name of its own: give its group, version and kind with einmal.GVK")
	}
	if before, _, err := op.scheme.ObjectKinds(resource); err == nil && before[0] != name {
		return fmt.Errorf("option GVK: these structs stand for %s already, and cannot stand for %s too; give each kind structs of its own", before[0], name)
	}
	if known, is := op.scheme.AllKnownTypes()[name]; is && known != reflect.TypeOf(resource).Elem() {
		return fmt.Errorf("option GVK: %s is %s in this operator; leave out the one or the other", name, known)
	}
	op.scheme.AddKnownTypeWithName(name, resource)
	op.scheme.AddKnownTypeWithName(name.GroupVersion().WithKind(name.Kind+"List"), resource.emptyList())
	metav1.AddToGroupVersion(op.scheme, name.GroupVersion())
	return nil
}
